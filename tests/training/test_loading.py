import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from tiny_runs import tiny
from torch.nn import Module

from fognn.models import TASKS, PretrainedNet
from fognn.training import Result, export, fit, load
from fognn.training.checkpoint import load_run
from fognn.training.config import Config
from fognn.utils.errors import FileError


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


def test_ready_to_predict(run: Result) -> None:
    net = load(run.folder)
    assert not any(module.training for module in net.modules())
    graph = torch.tensor([0, 1, 2]), torch.tensor([[0, 1, 2], [1, 2, 0]])
    assert torch.equal(net(*graph), net(*graph)), "dropout is off"
    assert sum(value.numel() for value in net.parameters()) == run.parameters


def test_how_it_was_made(run: Result) -> None:
    net, config, task = load_run(run.folder)
    assert config == Config.read(run.folder / "config.yaml")
    assert task == TASKS["cluster"]
    assert same(net, load(run.folder))


def test_loading_leaves_the_callers_random_numbers(run: Result) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    load(run.folder)
    assert torch.equal(torch.rand(3), expected)


def test_a_home_folder(run: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    export(run.folder, run.folder.parent / "exported")
    monkeypatch.setenv("HOME", str(run.folder.parent))
    assert same(load("~/run"), load(run.folder))
    net = load("~/exported")
    assert isinstance(net, PretrainedNet)
    assert same(net.module, load(run.folder))


def test_a_checkpoint_stands_for_itself(run: Result, tmp_path: Path) -> None:
    shutil.copy(run.folder / "best.ckpt", tmp_path / "mine.ckpt")
    assert same(load(tmp_path / "mine.ckpt"), load(run.folder))


def test_wrong_arguments(run: Result, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"run must be a run folder or a checkpoint, got '.*none'"):
        load(tmp_path / "none")
    with pytest.raises(ValueError, match=r"load: checkpoint must be .*got 'first'"):
        load(run.folder, "first")


def test_a_run_that_has_not_finished_an_epoch(run: Result, tmp_path: Path) -> None:
    shutil.copy(run.folder / "config.yaml", tmp_path)
    with pytest.raises(ValueError, match=r"best\.ckpt does not exist: the run has not finished"):
        load(tmp_path)


def test_a_run_over_folds(run: Result, tmp_path: Path) -> None:
    shutil.copy(run.folder / "config.yaml", tmp_path)
    shutil.copytree(run.folder, tmp_path / "fold-1")
    with pytest.raises(ValueError, match=r"run must name one fold .*/fold-1, got '"):
        load(tmp_path)
    assert same(load(tmp_path / "fold-1"), load(run.folder))


class Trap:
    """An object that would run a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_a_checkpoint_runs_no_code(tmp_path: Path, how: str) -> None:
    path, sprung = tmp_path / "a.ckpt", tmp_path / "sprung"
    content = {"format": 1, "model": Trap(sprung)}
    if how == "torch":
        torch.save(content, path)
    else:
        path.write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(FileError, match=r"a\.ckpt is damaged"):
        load(path)
    assert not sprung.exists()
    with open(path, "rb") as file:
        if how == "pickle":
            pickle.load(file)
            assert sprung.exists(), "the trap works"


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    torch.save({"format": 99}, tmp_path / "a.ckpt")
    with pytest.raises(FileError, match="is not a checkpoint of this version of fognn"):
        load(tmp_path / "a.ckpt")
    (tmp_path / "b.ckpt").write_text("hello")
    with pytest.raises(FileError, match=r"b\.ckpt is damaged"):
        load(tmp_path / "b.ckpt")
