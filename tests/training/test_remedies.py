"""Whatever a message tells the user to do works."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, molecules, tiny

from fognn.paper import protocol
from fognn.training import Config, Result, TrainingError, fit, load
from fognn.training.checkpoint import read_checkpoint, write_checkpoint
from fognn.utils.errors import FileError

DAMAGES = ["missing", "damaged", "of another epoch"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Finished runs whose best epoch is the last one, or an earlier one."""
    root = tmp_path_factory.mktemp("runs")
    last = fit(tiny(training__epochs=1), root / "last", quiet=True)
    earlier = fit(tiny(), root / "earlier", quiet=True)
    assert (last.best_epoch, earlier.best_epoch < 3) == (1, True)
    return {"last": last.folder, "earlier": earlier.folder}


def interrupted(finished: Path, folder: Path) -> tuple[Path, Config]:
    """A copy of a run that was killed before it wrote its result."""
    shutil.copytree(finished, folder)
    (folder / "result.json").unlink()
    return folder, Config.read(folder / "config.yaml")


def spoil(path: Path, damage: str) -> None:
    if damage == "missing":
        path.unlink()
    elif damage == "damaged":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        content = read_checkpoint(path)
        config = Config.from_dict(content["config"])
        write_checkpoint(path, config, None, {"model": content["model"], "epoch": 77})


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_best_epoch_is_the_last(tmp_path: Path, runs: dict[str, Path], damage: str) -> None:
    folder, config = interrupted(runs["last"], tmp_path / "run")
    spoil(folder / "best.ckpt", damage)
    assert fit(config, folder, quiet=True).metrics == Result.read(runs["last"]).metrics
    ours, theirs = load(folder).state_dict(), load(runs["last"]).state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert "best.ckpt was missing or damaged: written again" in (folder / "log.txt").read_text()


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_best_epoch_is_lost(tmp_path: Path, runs: dict[str, Path], damage: str) -> None:
    folder, config = interrupted(runs["earlier"], tmp_path / "run")
    spoil(folder / "best.ckpt", damage)
    with pytest.raises(FileError, match=rf"best\.ckpt is {damage}, and .* are in no") as caught:
        fit(config, folder, quiet=True)
    remove = re.search(r"remove (\S+) to train the run from the beginning", str(caught.value))
    assert remove is not None
    Path(remove[1]).unlink()
    assert fit(config, folder, quiet=True).metrics == Result.read(runs["earlier"]).metrics
    assert metrics(folder) == metrics(runs["earlier"])
    load(folder)


def test_a_damaged_last_checkpoint(tmp_path: Path, runs: dict[str, Path]) -> None:
    folder, config = interrupted(runs["earlier"], tmp_path / "run")
    spoil(folder / "last.ckpt", "damaged")
    with pytest.raises(FileError, match=r"last\.ckpt is damaged .*: remove it to train from"):
        fit(config, folder, quiet=True)
    (folder / "last.ckpt").unlink()
    assert fit(config, folder, quiet=True).metrics == Result.read(runs["earlier"]).metrics


@pytest.mark.parametrize("which", ["best", "last"])
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_checkpoint_of_a_finished_run(
    tmp_path: Path, runs: dict[str, Path], which: str, damage: str
) -> None:
    folder = shutil.copytree(runs["last"], tmp_path / "run")
    config = Config.read(folder / "config.yaml")
    spoil(folder / f"{which}.ckpt", damage)
    with pytest.raises(FileError, match=rf"{which}\.ckpt .*: remove the folder .*/run to train"):
        load(folder, which)
    shutil.rmtree(folder)
    fit(config, folder, quiet=True)
    load(folder, which)


def test_the_best_checkpoint_of_an_unfinished_run(tmp_path: Path, runs: dict[str, Path]) -> None:
    folder, config = interrupted(runs["last"], tmp_path / "run")
    spoil(folder / "best.ckpt", "damaged")
    with pytest.raises(FileError, match=r"best\.ckpt is damaged .*: resume the run"):
        load(folder)
    fit(config, folder, quiet=True)
    load(folder)


def test_a_copied_checkpoint(tmp_path: Path, runs: dict[str, Path]) -> None:
    copied = tmp_path / "mine.ckpt"
    shutil.copy(runs["last"] / "best.ckpt", copied)
    spoil(copied, "damaged")
    with pytest.raises(FileError, match=r"mine\.ckpt is damaged .*: copy it again from its run"):
        load(copied)
    shutil.copy(runs["last"] / "best.ckpt", copied)
    load(copied)


def test_a_damaged_result(tmp_path: Path, runs: dict[str, Path]) -> None:
    folder = shutil.copytree(runs["last"], tmp_path / "run")
    config = Config.read(folder / "config.yaml")
    (folder / "result.json").write_text("{")
    with pytest.raises(ValueError, match=r"result\.json .*: remove it and train the run again"):
        fit(config, folder, quiet=True)
    (folder / "result.json").unlink()
    assert fit(config, folder, quiet=True).metrics == Result.read(runs["last"]).metrics
    assert "resumes after epoch 1" in (folder / "log.txt").read_text()


@pytest.mark.parametrize("remedy", ["name another folder", "remove this one"])
def test_another_run_in_the_folder(tmp_path: Path, runs: dict[str, Path], remedy: str) -> None:
    folder = shutil.copytree(runs["last"], tmp_path / "run")
    other = tiny(seed=99, training__epochs=1)
    with pytest.raises(ValueError, match=rf"holds another run .*: .*{remedy}"):
        fit(other, folder, quiet=True)
    if remedy == "remove this one":
        shutil.rmtree(folder)
    else:
        folder = tmp_path / "other"
    fit(other, folder, quiet=True)


@pytest.mark.parametrize("remedy", ["name another folder", "restore the data"])
def test_other_data(tmp_path: Path, remedy: str) -> None:
    def write(seed: int) -> None:
        torch.save(molecules(40, seed), file)

    file, folder = tmp_path / "mine.pt", tmp_path / "run"
    write(0)
    values: dict[str, Any] = {"epochs": 1, "model.channels": 8, "machine.threads": 1}
    config = protocol(str(file), "gcn", 0, values)
    whole = fit(config, tmp_path / "whole", quiet=True)
    shutil.copytree(whole.folder, folder)
    (folder / "result.json").unlink()
    write(1)
    with pytest.raises(ValueError, match=rf"have changed since .*: .*{remedy}"):
        fit(config, folder, quiet=True)
    if remedy == "restore the data":
        write(0)
        assert fit(config, folder, quiet=True).metrics == whole.metrics
    else:
        fit(config, tmp_path / "other", quiet=True)


def test_a_lower_learning_rate(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"try a lower learning rate \(--lr 1e\+29\)"):
        fit(tiny(training__lr=1e30), tmp_path / "a", quiet=True)
    fit(tiny(training__lr=1e-3), tmp_path / "b", quiet=True)
