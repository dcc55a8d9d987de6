r"""Named recipes: settings of networks and trainings that are not the paper's.

A recipe is no state of a run: its settings are written to ``config.yaml`` like any others.
"""

import dataclasses
import inspect
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import yaml

from fognn.data import UserData
from fognn.data.opening import is_python_name
from fognn.experiments.protocols import protocol
from fognn.models import Task
from fognn.models.budget import budget_settings
from fognn.models.registry import FOG_SETTINGS, HOSTS
from fognn.nn import fog_widths
from fognn.training import Config, ModelConfig
from fognn.training.config import setting_name
from fognn.training.data import few_shot, task_of
from fognn.training.user_data import is_user_data, open_data
from fognn.utils import checks

__all__ = ["BUDGET", "RECIPES", "default_settings", "recipe"]

BUDGET = 103_900
"""The number of parameters of a recipe's network within 1 %, so that it has at most 105,000."""

RECIPES = ("modern",)
"""The recipes, each a file of settings. Those that do not fit are left out, see :func:`recipe`."""

_WIDTHS = ("channels", "hidden", "head_channels", "fog_channels", "h1", "h2")


def recipe(
    name: str,
    data: str,
    model: str,
    seed: int = 0,
    values: Mapping[str, Any] | None = None,
    opened: UserData | None = None,
) -> Config:
    r"""Returns the configuration of a dataset and a network by a recipe.

    What is not in the recipe (the loss, the metric, the data) is that of
    :func:`fognn.experiments.protocol`. The widths of the network are those of
    :func:`fognn.models.budget.budget_settings` for :obj:`BUDGET` parameters, so that a host and the
    host with FOG have the same number; if a width is given, the others are 36 channels and the
    defaults of :func:`fognn.create_model`. Left out are edge features if the data have none or the
    network's layers do not take them, the readout if outputs are not on graphs, and for one graph
    the random-walk encodings and the batch size. The warm-up is at most a quarter of the epochs.
    """
    checks.one_of("train", "recipe", name, RECIPES)
    given = {setting_name(key): value for key, value in (values or {}).items()}
    of_data = {key: value for key, value in given.items() if key.startswith("data.")}
    text = files("fognn.experiments").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    usual: dict[str, Any] = yaml.safe_load(text)
    base = protocol(data, model, seed, of_data, opened)
    if few_shot(base.data):
        raise ValueError(f"train: recipe must be None for images, got {name!r}")
    if is_user_data(base.data):
        opened = opened or open_data(base.data)
    if opened is not None and opened.nodes is not None:
        del usual["data.rwse"], usual["training.batch_size"]
    epochs = given.get("training.epochs", usual["training.epochs"])
    if isinstance(epochs, int):
        usual["training.warmup"] = min(usual["training.warmup"], epochs // 4)
    if given.get("training.schedule", "cosine") != "cosine":
        del usual["training.warmup"], usual["training.min_lr"]
    others = {key: value for key, value in usual.items() if not key.startswith("model.")}
    config = base.with_values(others | of_data)
    if not is_python_name(config.model.name):
        settings = _network(config, usual, given, opened)
        config = dataclasses.replace(config, model=ModelConfig(config.model.name, settings))
    return config.with_values(given)


def _network(
    config: Config, usual: dict[str, Any], given: dict[str, Any], opened: UserData | None
) -> dict[str, Any]:
    r"""Returns all settings of the network, so that none is taken from the paper's row."""
    name, task = config.model.name, task_of(config.data, opened)
    assert task is not None  # not of images
    chosen = {key: value for key, value in usual.items() if _fits(key, name, task)}
    chosen |= {key: value for key, value in given.items() if key.startswith("model.")}
    settings = {
        key.removeprefix("model."): value
        for key, value in chosen.items()
        if key.startswith("model.")
    }
    if is_user_data(config.data) and "norm" in config.model.settings:
        settings = {"norm": config.model.settings["norm"], **settings}  # for sampled neighbours
    if not any(f"model.{key}" in given for key in _WIDTHS):
        host = name.removesuffix("+fog")
        shared = {key: v for key, v in settings.items() if key not in FOG_SETTINGS}
        settings |= budget_settings(host, task, BUDGET, **shared)[name]
    settings.setdefault("channels", 36)
    return settings | default_settings(name, settings)


def _fits(setting: str, name: str, task: Task) -> bool:
    host = None if name == "fog" else HOSTS[name.removesuffix("+fog")]
    if setting == "model.edge_features":
        edges = task.edge_tokens is not None or task.edge_channels is not None
        return edges and (host is None or "edge_dim" in host.given or host.edges == "features")
    if setting == "model.readout":
        return task.level == "graph"
    return not setting.startswith("model.fog_") or name.endswith("fog")


def default_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    r"""Returns the settings of a network that are not given, with their default values: the paper's
    row of the same network may have others, which ``fognn train`` would take.
    """
    host, _, fog = name.rpartition("+") if name.endswith("fog") else (name, "", "")
    found: dict[str, Any] = {}
    if host:
        options = inspect.signature(HOSTS[host].conv).parameters
        usual = {name: options[name].default for name in HOSTS[host].options if name in options}
        found |= {name: value for name, value in usual.items() if value is not None}
    if fog:
        channels = settings["channels"]
        own = settings.get("fog_channels", channels // 2 if host else channels)
        h1, h2 = fog_widths(own)
        found |= {"fog_channels": own, "h1": h1, "h2": h2}
    return {name: value for name, value in found.items() if name not in settings}
