import shutil
from pathlib import Path

import pytest
import torch
from tiny_runs import tiny
from torch.nn import Module

from fognn.training import Result, fit, load


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Result:
    config = tiny(training__lr=0.05, training__epochs=4, model__dropout=0.5)
    return fit(config, tmp_path_factory.mktemp("runs") / "run", quiet=True)


def weights(net: Module) -> list[torch.Tensor]:
    return list(net.state_dict().values())


def same(first: Module, second: Module) -> bool:
    pairs = zip(weights(first), weights(second), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_best_and_last(run: Result) -> None:
    assert run.best_epoch < run.epochs, "else the two are the same"
    for name in ("best", "last"):
        saved = torch.load(run.folder / f"{name}.ckpt", weights_only=True)["model"]
        net = load(run.folder, name)
        assert saved.keys() == net.state_dict().keys()
        assert all(torch.equal(a, b) for a, b in zip(weights(net), saved.values(), strict=True))
    assert same(load(run.folder), load(run.folder, "best"))
    assert not same(load(run.folder), load(run.folder, "last"))
    assert same(load(run.folder / "last.ckpt"), load(run.folder, "last"))
    assert same(load(str(run.folder)), load(run.folder))


def test_a_checkpoint_stands_for_itself(run: Result, tmp_path: Path) -> None:
    shutil.copy(run.folder / "best.ckpt", tmp_path / "mine.ckpt")
    assert same(load(tmp_path / "mine.ckpt"), load(run.folder))


def test_wrong_arguments(run: Result, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"run must be a run folder or a checkpoint, got '.*none'"):
        load(tmp_path / "none")
    with pytest.raises(ValueError, match=r"load: checkpoint must be .*got 'first'"):
        load(run.folder, "first")


def test_a_run_over_folds(run: Result, tmp_path: Path) -> None:
    shutil.copy(run.folder / "config.yaml", tmp_path)
    shutil.copytree(run.folder, tmp_path / "fold-1")
    with pytest.raises(ValueError, match=r"run must name one fold .*/fold-1, got '"):
        load(tmp_path)
    assert same(load(tmp_path / "fold-1"), load(run.folder))
