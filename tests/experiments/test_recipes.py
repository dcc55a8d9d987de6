"""Recipes: all settings of a run, at most 105,000 parameters, and a command that repeats it."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules

import fognn
from fognn.data.graph_files import write_graphs
from fognn.experiments import Row, build, config_of, protocol
from fognn.experiments.protocols import command_of, recipe
from fognn.experiments.rows import name_of, rows_of
from fognn.experiments.tables import runs_of
from fognn.models import count_parameters
from fognn.models.registry import new_model
from fognn.training import Config
from fognn.training.config import assignments
from fognn.training.data import task_of


def size_of(config: Config) -> int:
    with torch.device("meta"):
        net = new_model(config.model.name, task_of(config.data), **config.model.settings)
    return count_parameters(net)


def from_command(config: Config) -> Config:
    words = shlex.split(command_of(config))
    return protocol(words[2], words[3], int(words[5]), assignments(words[7::2]))


@pytest.mark.parametrize("host", ["gin", "fog"])
def test_modern_on_zinc(host: str) -> None:
    sizes = []
    for name in [host] if host == "fog" else [host, f"{host}+fog"]:
        config = recipe("modern", "zinc", name, 1)
        settings, training = config.model.settings, config.training
        assert (settings["layers"], settings["ffn"], settings["readout"]) == (10, 2, "sum")
        assert (config.data.rwse, config.seed, settings["edge_features"]) == (20, 1, True)
        assert (training.optimizer, training.schedule, training.clip) == ("adamw", "cosine", 1.0)
        assert (training.loss, training.metric) == ("l1", "mae")
        sizes.append(size_of(config))
        assert from_command(config) == config
    assert all(102_000 < size <= 105_000 for size in sizes)
    assert sizes == sorted(sizes, reverse=True), "FOG not more than the host"


def test_given_settings_come_first() -> None:
    values: dict[str, Any] = {"lr": 5e-4, "epochs": 8, "model.ffn": 1, "model.channels": 20}
    config = recipe("modern", "zinc", "gin+fog", values=values)
    assert (config.training.lr, config.training.epochs, config.training.warmup) == (5e-4, 8, 5)
    settings = config.model.settings
    assert (settings["channels"], settings["ffn"], settings["fog_channels"]) == (20, 1, 10)
    assert from_command(config) == config
    values = {"schedule": "plateau", "warmup": 0, "rwse": 0}
    config = recipe("modern", "zinc", "gin", values=values)
    assert (config.training.schedule, config.data.rwse) == ("plateau", 0)


def test_what_does_not_fit_is_left_out() -> None:
    def settings(data: str, model: str) -> dict[str, Any]:
        return recipe("modern", data, model, values={"model.channels": 16}).model.settings

    assert not {"readout", "edge_features"} & settings("pattern", "gcn+fog").keys()
    assert "edge_features" not in settings("zinc", "gatedgcn")
    assert "fog_act_first" not in settings("zinc", "gin")
    assert settings("zinc", "gcn+fog")["fog_act_first"] is False
    with pytest.raises(ValueError, match="recipe"):
        recipe("modern", "miniimagenet-5way-1shot", "gnn")
    with pytest.raises(ValueError, match="'moderm'"):
        recipe("moderm", "zinc", "gin")


def test_train_by_a_recipe(tmp_path: Path) -> None:
    write_graphs(tmp_path / "graphs.npz", molecules(20))
    values: dict[str, Any] = {"model.channels": 8, "model.layers": 2, "threads": 1, "epochs": 2}
    values |= {"warmup": 1, "folder": tmp_path / "run", "quiet": True}
    result = fognn.train(tmp_path / "graphs.npz", "gin+fog", recipe="modern", **values)
    config = Config.read(tmp_path / "run" / "config.yaml")
    assert config.model.settings["edge_features"] is True
    assert (config.training.optimizer, config.training.epochs, config.data.rwse) == ("adamw", 2, 20)
    # The file has all of it.
    again = fognn.train(config=tmp_path / "run" / "config.yaml", folder=tmp_path / "b", quiet=True)
    assert again.val == result.val
    with pytest.raises(ValueError, match="recipe"):
        fognn.train(config=tmp_path / "run" / "config.yaml", recipe="modern")


@pytest.mark.parametrize("row", rows_of("modern"), ids=lambda row: row.id)
def test_the_table_has_the_recipe(row: Row) -> None:
    less = {"data.rwse": 0, "model.edge_features": False}
    config = recipe("modern", "zinc", name_of(row), 3, less if row.inputs == "atoms only" else {})
    assert config == config_of(row, 3)
    assert [run.key for run in runs_of(config)] == [f"{row.id}-seed3"]
    assert size_of(config) == count_parameters(build(row)) == row.params
