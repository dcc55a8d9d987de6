r"""The configuration of a run: by the row of a table, by the paper's protocol for a dataset and a
network, or by a recipe, which is a file of settings that are not the paper's."""

import dataclasses
import inspect
import re
import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from torch.nn import Module

from fognn.data.catalog import dataset_info
from fognn.data.opening import PYTHON
from fognn.data.pyg_datasets import PREFIX
from fognn.data.user_data import UserData
from fognn.experiments.rows import Row, all_rows, image_settings, model_settings, name_of
from fognn.models import Task, list_models
from fognn.models.budget import budget_settings
from fognn.models.hosts import FOG_SETTINGS, HOSTS
from fognn.models.registry import host_of, new_model
from fognn.nn import fog_widths
from fognn.training import Config, DataConfig, ModelConfig, TrainingConfig
from fognn.training.config import flat, setting_name
from fognn.training.data import (
    PLAIN_ZINC,
    few_shot,
    is_user_data,
    open_data,
    task_of,
    user_data_name,
    user_objective,
)
from fognn.utils import checks
from fognn.utils.files import user_path

BUDGET = 103_900  # parameters of a recipe's network within 1 %, so that it has at most 105,000
RECIPES = ("modern",)  # each a file of settings
Values = Mapping[str, Any]  # settings by name
_SHOTS = re.compile(r"(.+)-(\d+)way-(\d+)shot", re.IGNORECASE)
_STEPS = 1000  # iterations in an epoch of few-shot learning, unless the row has another number
_SEEDS = 1024  # nodes in a batch, each with sampled neighbours


def build(row: Row, **settings: Any) -> Module:
    r"""Builds the network of a row, with exactly the printed number of parameters.

    Args:
        row (Row): A row of :func:`fognn.experiments.rows`.
        **settings (optional): Settings to change, as in :func:`fognn.create_model`:
            ``norm="sym"`` gives the GCN of the paper's equation (the default for GCN+FOG),
            ``aggr="mean"`` its GraphSAGE, ``gate="after"`` its GatedGCN; ``benchmark=True`` gives
            the GraphSAGE of the public benchmark, whose figures the paper quotes.
    """
    task = task_of(config_of(row).data)
    return new_model(name_of(row), task, **(model_settings(row) | settings))


def config_of(row: Row, seed: int = 0, **settings: Any) -> Config:
    r"""Returns the configuration of a row of :func:`fognn.experiments.rows`, by the paper's
    protocol, with settings of the network as in :func:`fognn.experiments.build`."""
    model = ModelConfig(name_of(row), model_settings(row) | settings)
    config = Config(_episodes(_data(row.dataset), row), model, _training(row), seed)
    return config.with_values(row.values)


def protocol(
    data: str,
    model: str,
    seed: int = 0,
    values: Values | None = None,
    opened: UserData | None = None,
) -> Config:
    r"""Returns the configuration of a dataset and a network: that of the paper's row, or of our
    own, if there is one.

    Without such a row, the network has 64 channels and 4 layers (3 layers for images), and is
    trained like FOG on the same dataset (for images: like the first row of the same dataset). On
    your own data, it is trained with the defaults of :class:`~fognn.training.TrainingConfig`; with
    ``data.neighbors``, in batches of 1,024 nodes, and GCN with the mean over neighbours.

    Args:
        data (str): The name of a dataset, ``pyg:CLASS/NAME`` for a dataset of PyG, or your own file
            or folder.
        model (str): The name of a network in :func:`fognn.list_models`.
        seed (int, optional): The seed. (default: :obj:`0`)
        values (dict, optional): Settings to change, by name: ``{"lr": 1e-3, "model.h1": 8}``.
        opened (UserData, optional): The user's data, if they are open. (default: opened here)
    """
    values = {setting_name(name): value for name, value in (values or {}).items()}
    model = model.lower()
    own = is_user_data(DataConfig(data))
    wanted = DataConfig(data) if own else _data(data)
    images = few_shot(wanted)
    if images:
        names = ("n_way", "k_shot")
        shots = {key: values.get(f"data.{key}", getattr(wanted, key)) for key in names}
        wanted = dataclasses.replace(wanted, **shots)
        model = f"fewshot-{model}" if f"fewshot-{model}" in list_models() else model
    if not model.startswith(PYTHON):
        checks.known("train", "model", model, list_models())
    if own:
        return _own(data, model, seed, values, opened)
    if images != model.startswith("fewshot-"):
        needed = "a 'fewshot-' network" if images else "no 'fewshot-' network"
        raise ValueError(f"train: model must be {needed} for {wanted.name}, got {model!r}")
    alike = [row for row in all_rows() if _data(row.dataset) == wanted]
    found = [row for row in alike if name_of(row) == model]
    if found:
        return config_of(found[0], seed).with_values(values)
    settings = _usual_network(model)
    if images:
        # A number of classes or of shots, or a network, that no row has.
        same = [row for row in all_rows() if _data(row.dataset).name == wanted.name]
        alike = [row for row in same if _data(row.dataset).k_shot == wanted.k_shot] or same
        settings = {"layers": 3, **image_settings(wanted.name)}
        wanted = _episodes(wanted, alike[0])
    elif settings:
        settings["dropout"] = alike[0].dropout
    config = Config(wanted, ModelConfig(model, settings), _training(alike[0]), seed)
    return config.with_values(values)


def command_of(config: Config) -> str:
    r"""Returns the command that trains a run from a fresh clone: ``fognn train`` with each setting
    that is not :func:`protocol`'s. A user's file has no folder outside the working directory."""
    if config.data.name.startswith(PYTHON) or config.model.name.startswith(PYTHON):
        return f"fognn.train(data, model, seed={config.seed}, ...) in Python, with the same objects"
    data, model, own = config.data, config.model.name, is_user_data(config.data)
    name = user_data_name(data) if own else data.name.lower()
    if own and Path(data.name).is_relative_to(Path.cwd()):
        name = str(Path(data.name).relative_to(Path.cwd()))
        name = name if is_user_data(DataConfig(name)) else f"./{name}"  # a folder
    if few_shot(data):
        name = f"{name}-{data.n_way}way-{data.k_shot}shot"
    usual = _own_start(data, model, config.seed) if own else protocol(name, model, config.seed)
    theirs = flat(usual.to_dict())
    arguments = ["fognn", "train", name, model, "--seed", str(config.seed)]
    for key, value in flat(config.to_dict()).items():
        if value != theirs.get(key) and key != "data.folder":
            text = yaml.safe_dump(value, default_flow_style=True).strip().removesuffix("\n...")
            arguments += ["--set", f"{key}={text}"]
    return shlex.join(arguments)


def _own(data: str, model: str, seed: int, values: Values, opened: UserData | None) -> Config:
    name = (
        data
        if data.startswith(PREFIX) or data.startswith(PYTHON)
        else str(user_path(data).resolve())
    )
    split = str(values.get("data.split"))
    if split.endswith((".json", ".csv", ".csv.gz")):
        values = {**values, "data.split": str(user_path(split).resolve())}
    start = _own_start(DataConfig(name), model, seed)
    start = start.with_values({k: v for k, v in values.items() if k.startswith("data.")})
    opened = opened or open_data(start.data)
    objective = user_objective(start.data, opened)
    usual: dict[str, Any] = {f"training.{k}": v for k, v in objective.items()}
    if start.data.neighbors is not None:
        usual["training.batch_size"] = _SEEDS
        if model.partition("+")[0] == "gcn":
            # The symmetric norm needs the degrees of neighbours, of which a sample has only a part.
            usual["model.norm"] = "mean"
    host = host_of(model)
    if host is not None and host.jumping and opened.level == "graph":
        # The sum over the nodes of all layers begins with huge logits.
        usual["model.readout"] = "mean"
    return start.with_values({**usual, **values})


def _own_start(data: DataConfig, model: str, seed: int) -> Config:
    network, training = ModelConfig(model, _usual_network(model)), TrainingConfig("l1", "mae")
    return Config(DataConfig(data.name), network, training, seed)


def _usual_network(model: str) -> dict[str, Any]:
    return {} if model.startswith(PYTHON) else {"channels": 64, "layers": 4, "dropout": 0.0}


def _data(name: str) -> DataConfig:
    if name.lower() == PLAIN_ZINC.lower():
        return DataConfig(PLAIN_ZINC)
    shots = _SHOTS.fullmatch(name)
    if shots is None:
        return DataConfig(dataset_info(name).name)
    return DataConfig(dataset_info(shots[1]).name, n_way=int(shots[2]), k_shot=int(shots[3]))


def _episodes(data: DataConfig, row: Row) -> DataConfig:
    r"""Returns the data with the episodes and the fraction of a row, where it has them."""
    return dataclasses.replace(data, **_given(row, "n_query", "episodes", "fraction"))


def _given(row: Row, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names if getattr(row, name) is not None}


def _training(row: Row) -> TrainingConfig:
    names = ("batch_size", "lr", "weight_decay", "schedule", "patience", "min_lr", "steps")
    lengths = _given(row, "epochs", "step")
    if row.few_shot:
        lengths = {key: count // (row.steps or _STEPS) for key, count in lengths.items()}
    settings = _given(row, *names) | lengths
    loss, metric = ("l1" if row.metric == "mae" else "cross_entropy"), row.metric
    if row.dataset in ("PATTERN", "CLUSTER"):
        loss, metric = f"balanced_{loss}", f"balanced_{metric}"
    return TrainingConfig(**{"loss": loss, "metric": metric, **settings})


def recipe(
    name: str,
    data: str,
    model: str,
    seed: int = 0,
    values: Values | None = None,
    opened: UserData | None = None,
) -> Config:
    r"""Returns the configuration of :func:`protocol` with the settings of a recipe that fit the
    network and the data, and with widths for :obj:`BUDGET` parameters, so that a host and the host
    with FOG have the same number; given ``values`` come first."""
    checks.one_of("train", "recipe", name, RECIPES)
    text = files("fognn.experiments").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    usual: dict[str, Any] = yaml.safe_load(text)
    given = {setting_name(key): value for key, value in (values or {}).items()}
    of_data = {key: value for key, value in given.items() if key.startswith("data.")}
    base = protocol(data, model, seed, of_data, opened)
    if few_shot(base.data):
        raise ValueError(f"train: recipe must be None for images, got {name!r}")
    own = [key for key in usual if key.startswith("model.")]
    config = base.with_values({k: v for k, v in (usual | given).items() if k not in own})
    network, task = config.model.name, task_of(config.data, opened)
    if task is None or network.startswith(PYTHON):
        return config
    fitting = {key: usual[key] for key in own if _fits(key, network, task)} | given
    settings = {k.removeprefix("model."): v for k, v in fitting.items() if k.startswith("model.")}
    if "channels" not in settings:
        shared = {key: value for key, value in settings.items() if key not in FOG_SETTINGS}
        host = network.removesuffix("+fog")
        settings = budget_settings(host, task, BUDGET, **shared)[network] | settings
    # All settings, so that none is taken from the paper's row.
    settings |= default_settings(network, settings)
    return dataclasses.replace(config, model=ModelConfig(network, settings))


def _fits(setting: str, model: str, task: Task) -> bool:
    r"""Whether a setting of a recipe is one of this network on these data."""
    if setting == "model.edge_features":
        host = host_of(model)
        edges = task.edge_tokens is not None or task.edge_channels is not None
        return edges and (host is None or host.takes_edge_features)
    if setting == "model.readout":
        return task.level == "graph"
    return not setting.startswith("model.fog_") or model.endswith("fog")


def default_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    r"""Returns the settings of a network that are not given, with their default values: the paper's
    row of the same network may have others, which ``fognn train`` would take."""
    host = name.removesuffix("fog").removesuffix("+")
    found: dict[str, Any] = {}
    if host:
        options = inspect.signature(HOSTS[host].conv).parameters
        usual = {name: options[name].default for name in HOSTS[host].options if name in options}
        found = {name: value for name, value in usual.items() if value is not None}
    if name.endswith("fog"):
        channels = settings["channels"]
        own = settings.get("fog_channels", channels // 2 if host else channels)
        h1, h2 = fog_widths(own)
        found |= {"fog_channels": own, "h1": h1, "h2": h2}
    return {name: value for name, value in found.items() if name not in settings}
