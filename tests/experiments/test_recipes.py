"""Recipes: all settings of a run, at most 105,000 parameters, and a command that repeats it."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from ledger_entries import entry
from tiny_runs import molecules

import fognn
from fognn.data.graph_files import write_graphs
from fognn.experiments import Row, config_of, protocol
from fognn.experiments.comparison import compare
from fognn.experiments.protocols import command_of
from fognn.experiments.protocols import RECIPES, recipe
from fognn.experiments.rows import build, name_of
from fognn.experiments.rows import rows_of
from fognn.experiments.tables import plan, runs_of
from fognn.models import count_parameters
from fognn.models.registry import new_model
from fognn.training import Config
from fognn.training.data import task_of
from fognn.training.settings import assignments


def size_of(config: Config) -> int:
    with torch.device("meta"):
        net = new_model(config.model.name, task_of(config.data), **config.model.settings)
    return count_parameters(net)


def from_command(config: Config) -> Config:
    words = shlex.split(command_of(config))
    data, model, seed = words[2], words[3], int(words[5])
    assert words[6::2] == ["--set"] * len(words[6::2])
    return protocol(data, model, seed, assignments(words[7::2]))


@pytest.mark.parametrize("host", ["gin", "fog"])
def test_modern_on_zinc(host: str) -> None:
    names = [host] if host == "fog" else [host, f"{host}+fog"]
    sizes = []
    for name in names:
        config = recipe("modern", "zinc", name, 1)
        settings = config.model.settings
        assert (settings["layers"], settings["ffn"], settings["readout"]) == (10, 2, "sum")
        assert settings["edge_features"] is True
        assert (config.data.rwse, config.seed) == (20, 1)
        training = config.training
        assert (training.optimizer, training.schedule, training.clip) == ("adamw", "cosine", 1.0)
        assert (training.loss, training.metric) == ("l1", "mae")
        sizes.append(size_of(config))
        assert from_command(config) == config
        assert Config.from_dict(config.to_dict()) == config
    assert all(102_000 < size <= 105_000 for size in sizes)
    assert sizes == sorted(sizes, reverse=True), "FOG not more than the host"


def test_given_settings_come_first() -> None:
    values: dict[str, Any] = {"lr": 5e-4, "epochs": 8, "model.ffn": 1, "model.channels": 20}
    config = recipe("modern", "zinc", "gin+fog", values=values)
    assert (config.training.lr, config.training.epochs, config.training.warmup) == (5e-4, 8, 2)
    settings = config.model.settings
    assert (settings["channels"], settings["ffn"], settings["fog_channels"]) == (20, 1, 10)
    assert from_command(config) == config
    values = {"schedule": "plateau", "rwse": 0, "model.hidden": 9}
    config = recipe("modern", "zinc", "gin", values=values)
    assert (config.model.settings["channels"], config.model.settings["hidden"]) == (36, 9)
    assert (config.training.schedule, config.training.warmup, config.data.rwse) == ("plateau", 0, 0)


def test_what_does_not_fit_is_left_out(tmp_path: Path) -> None:
    def settings(data: str, model: str) -> dict[str, Any]:
        return recipe("modern", data, model, values={"model.channels": 16}).model.settings

    nodes = settings("pattern", "gcn+fog")
    assert "readout" not in nodes
    assert "edge_features" not in nodes
    assert "edge_features" not in settings("zinc", "gatedgcn")
    assert "fog_act_first" not in settings("zinc", "gin")
    assert settings("zinc", "gcn+fog")["fog_act_first"] is False
    with pytest.raises(ValueError, match="recipe must be None for images, got 'modern'"):
        recipe("modern", "miniimagenet-5way-1shot", "gnn")
    with pytest.raises(ValueError, match="recipe 'moderm'"):
        recipe("moderm", "zinc", "gin")
    graphs = molecules(20)
    write_graphs(tmp_path / "graphs.npz", graphs)
    own = recipe("modern", str(tmp_path / "graphs.npz"), "gin+fog", values={"model.channels": 16})
    assert own.model.settings["edge_features"] is True
    assert (own.training.loss, own.data.rwse) == ("l1", 20)


def test_train_by_a_recipe(tmp_path: Path) -> None:
    write_graphs(tmp_path / "graphs.npz", molecules(20))
    values: dict[str, Any] = {"model.channels": 8, "model.layers": 2, "threads": 1, "epochs": 2}
    result = fognn.train(
        tmp_path / "graphs.npz",
        "gin+fog",
        folder=tmp_path / "run",
        recipe="modern",
        quiet=True,
        **values,
    )
    assert result.epochs == 2
    config = Config.read(tmp_path / "run" / "config.yaml")
    for key, value in RECIPES["modern"].items():
        part, name = key.split(".")
        found = config.to_dict()[part][name]
        changed = {"layers": 2, "epochs": 2, "warmup": 0}
        assert found == changed.get(name, value), key
    # The file has all of it.
    again = fognn.train(config=tmp_path / "run" / "config.yaml", folder=tmp_path / "b", quiet=True)
    assert again.val == result.val
    with pytest.raises(ValueError, match=r"recipe must be None with config.*'modern'"):
        fognn.train(config=tmp_path / "run" / "config.yaml", recipe="modern")


@pytest.mark.parametrize("row", rows_of("modern"), ids=lambda row: row.id)
def test_the_table_has_the_recipe(row: Row) -> None:
    less = {"data.rwse": 0, "model.edge_features": False}
    values = less if row.inputs == "atoms only" else {}
    config = recipe("modern", "zinc", name_of(row), 3, values)
    assert config == config_of(row, 3)
    assert [run.key for run in runs_of(config)] == [f"{row.id}-seed3"]
    assert size_of(config) == count_parameters(build(row)) == row.params
    assert row.params is not None
    assert row.params <= 105_000


def test_a_host_has_the_inputs_of_its_line() -> None:
    entries = [entry(run, 0.1 + 0.01 * place) for place, run in enumerate(plan("modern"))]
    lines = {line.label: line.paired for line in compare("modern", entries)}
    assert lines["GIN"] is None
    assert lines["GIN, atoms only"] is None
    for label, host in {"GIN+FOG": "GIN", "GIN+FOG, atoms only": "GIN, atoms only"}.items():
        paired = lines[label]
        assert paired is not None
        assert (paired.host, round(paired.difference, 6)) == (host, 0.01)
