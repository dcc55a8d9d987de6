"""A run on one graph: stopped within an epoch, its loaders and its fingerprint."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import metrics, open_split

from fognn.data import FullGraphLoader, NeighborLoader
from fognn.experiments import protocol
from fognn.training import Config, Stopped, fit, loop
from fognn.training.data import RunData, data_fingerprint, fingerprint, open_data

NODES = 60


@pytest.fixture
def file(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    kinds = np.stack([random.permutation(np.arange(NODES) % 3) for _ in range(4)], 1)
    np.savez(
        tmp_path / "graph.npz",
        x=random.standard_normal((NODES, 3)),
        edge_index=random.integers(NODES, size=(2, 300)),
        y=np.arange(NODES) // 2 % 2,
        train_mask=kinds == 0,
        val_mask=kinds == 1,
        test_mask=kinds == 2,
    )
    return tmp_path / "graph.npz"


def config_of(file: Path, **values: Any) -> Config:
    usual = {"training.epochs": 3, "model.channels": 16, "model.layers": 2, "machine.threads": 1}
    values = {name.replace("__", "."): value for name, value in values.items()}
    return protocol(str(file), "gin+fog", 0, usual | {"model.dropout": 0.3} | values)


@pytest.mark.parametrize("step", [3, 5])
def test_a_resumed_run_has_the_same_neighbours(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    config = config_of(file, data__neighbors=[3, 2], training__batch_size=6)
    fit(config, tmp_path / "whole", quiet=True)
    steps, original = iter(range(1, 1000)), loop.forward_batch

    def stopping(*args: Any) -> Any:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "forward_batch", stopping)
        with pytest.raises(Stopped, match="to resume"):
            fit(config, tmp_path / "run", quiet=True)
    fit(config, tmp_path / "run", quiet=True)
    assert metrics(tmp_path / "run") == metrics(tmp_path / "whole")


def test_the_loaders(file: Path) -> None:
    whole = config_of(file)
    data = open_data(whole.data)
    train, val = (RunData(whole, data).loader(split) for split in ("train", "val"))
    assert isinstance(train, FullGraphLoader)
    assert isinstance(val, FullGraphLoader)
    assert train.graph is val.graph  # sorted once
    assert not bool((train.mask & val.mask).any())
    sampled = open_split(config_of(file, data__neighbors=[3], training__batch_size=6), "test")
    assert isinstance(sampled, NeighborLoader)
    assert (sampled.shuffle, sampled.batch_size, len(sampled)) == (False, 6, 4)
    shorter = open_split(config_of(file, data__fraction=0.5), "train")
    assert isinstance(shorter, FullGraphLoader)
    assert int(shorter.mask.sum()) == 10


def test_the_fingerprint(file: Path) -> None:
    first, second = config_of(file), config_of(file, data__fold=2)
    assert fingerprint(open_split(first, "train")) != fingerprint(open_split(first, "val"))
    assert data_fingerprint(first) != data_fingerprint(second)
    every = config_of(file, data__split="all")
    assert len(RunData(every).folds) == 4
    assert RunData(first).folds == []
    assert data_fingerprint(every) not in (data_fingerprint(first), data_fingerprint(second))
    # The neighbours are a setting of the run, and not data.
    assert data_fingerprint(config_of(file, data__neighbors=[3])) == data_fingerprint(first)
