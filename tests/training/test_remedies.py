"""Whatever a message about a run tells the user to do works. Those about memory are in
``test_out_of_memory.py``. Not followed in any test, because they need the network or another disk:
``pip install``, to download a file again, and to free space."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, molecules, tiny
from torch_geometric.data import Data

from fognn.cli import main
from fognn.paper import protocol
from fognn.sweep.compare_runs import networks
from fognn.sweep.reproduce import collect
from fognn.training import (
    Config,
    Result,
    Stopped,
    TrainingError,
    evaluate,
    export,
    fit,
    load,
    loop,
    predict,
)
from fognn.training.checkpoint import read_checkpoint, write_checkpoint
from fognn.training.signals import StopSignals
from fognn.utils.errors import FileError

DAMAGES = ["missing", "damaged", "of another epoch"]


class Stop(StopSignals):
    """Stops a run after its first batch."""

    asked = True

    def __init__(self) -> None:
        self.before = {}


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


def follow(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the files that a message names, and runs its command."""
    found = re.search(r"remove (.+) and train the run again \((fognn .+)\)", message)
    assert found is not None
    for path in found[1].split(", "):
        Path(path).unlink(missing_ok=True)
    monkeypatch.setattr(sys, "argv", found[2].split())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0


def same_weights(one: Path, other: Path) -> bool:
    ours, theirs = load(one).state_dict(), load(other).state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("state", ["last", "earlier"])
@pytest.mark.parametrize("which", ["best", "last"])
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_checkpoint_of_a_finished_run(
    tmp_path: Path,
    runs: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    which: str,
    damage: str,
) -> None:
    folder = shutil.copytree(runs[state], tmp_path / "run")
    spoil(folder / f"{which}.ckpt", damage)
    commands: list[Callable[[], Any]] = [
        lambda: load(folder, which),
        lambda: evaluate(folder, checkpoint=which, threads=1),
        lambda: predict(folder, "graphs.pt", tmp_path / "out.csv", which),
        lambda: export(folder, tmp_path / "hub", which),
    ]
    for command in commands:
        words = rf"{which}\.ckpt .*: remove .*/run/result\.json, "
        with pytest.raises(FileError, match=words) as caught:
            command()
    follow(str(caught.value), monkeypatch)
    load(folder, which)
    evaluate(folder, checkpoint=which, threads=1)
    assert same_weights(folder, runs[state])


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_checkpoint_of_a_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    generator, nodes = torch.Generator().manual_seed(0), 60
    masks = {
        f"{name}_mask": torch.stack([(torch.arange(nodes) + fold) % 3 == n for fold in range(2)], 1)
        for n, name in enumerate(("train", "val", "test"))
    }
    graph = Data(
        x=torch.randn(nodes, 4, generator=generator),
        edge_index=torch.randint(0, nodes, (2, 200), generator=generator),
        y=torch.randint(0, 2, (nodes,), generator=generator),
        **masks,
    )
    torch.save(graph, tmp_path / "graph.pt")
    values = {"epochs": 2, "model.channels": 8, "data.split": "all", "machine.threads": 1}
    config = protocol(str(tmp_path / "graph.pt"), "gcn", 0, values)
    whole = fit(config, tmp_path / "whole", quiet=True)
    folder = shutil.copytree(whole.folder, tmp_path / "run")
    spoil(folder / "fold-2" / "best.ckpt", damage)
    with pytest.raises(FileError, match=r"fold-2/best\.ckpt .*: remove ") as caught:
        evaluate(folder, threads=1)
    follow(str(caught.value), monkeypatch)
    assert evaluate(folder, threads=1) == evaluate(whole.folder, threads=1)
    assert Result.read(folder).metrics == whole.metrics
    # The same for a run that was killed in its second fold.
    (folder / "result.json").unlink()
    (folder / "fold-2" / "result.json").unlink()
    with pytest.raises(ValueError, match=r"finished all its folds, or name one .*run/fold-1, got"):
        evaluate(folder, threads=1)
    evaluate(folder / "fold-1", threads=1)
    with pytest.raises(ValueError, match=r"must name one fold .* such as .*run/fold-1, got"):
        load(folder)
    load(folder / "fold-1")
    spoil(folder / "fold-2" / "last.ckpt", damage)
    if damage == "damaged":
        with pytest.raises(FileError, match=r"fold-2/last\.ckpt is damaged .*: remove it to train"):
            fit(config, folder, quiet=True)
        (folder / "fold-2" / "last.ckpt").unlink()
    assert fit(config, folder, quiet=True).metrics == whole.metrics


@pytest.mark.parametrize("which", ["best", "last"])
def test_a_run_of_a_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(molecules(40), "mine.pt")
    run = networks("mine.pt", ["gin"], 5000, {"epochs": 1, "threads": 1})[0]
    folder = run.folder(tmp_path / "runs")
    fit(run.config, folder, quiet=True)
    collect([run], tmp_path / "runs", tmp_path / "results")
    spoil(folder / f"{which}.ckpt", "damaged")
    # The same command would skip it, because the ledger has it.
    assert collect([run], tmp_path / "runs", tmp_path / "results")[0] == []
    with pytest.raises(FileError, match=rf"{which}\.ckpt is damaged") as caught:
        predict(folder, "mine.pt", "out.csv", which)
    follow(str(caught.value), monkeypatch)
    assert predict(folder, "mine.pt", "out.csv", which) == 40


@pytest.mark.parametrize("damage", ["missing", "damaged"])
@pytest.mark.parametrize("which", ["best", "last"])
def test_within_the_first_epoch(
    tmp_path: Path, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, which: str, damage: str
) -> None:
    folder, config = tmp_path / "run", Config.read(runs["earlier"] / "config.yaml")
    with monkeypatch.context() as patch:
        patch.setattr(loop, "StopSignals", Stop)
        with pytest.raises(Stopped, match=r"stopped in epoch 1 after batch 1 of 2, .*to resume: "):
            fit(config, folder, quiet=True)
    with pytest.raises(ValueError, match=r"best\.ckpt does not exist: the run has not finished an"):
        load(folder)
    if which == "last":
        spoil(folder / "last.ckpt", damage)
    elif damage == "damaged":
        (folder / "best.ckpt").write_bytes(b"PK")
    if (which, damage) == ("last", "damaged"):
        with pytest.raises(FileError, match=r"last\.ckpt is damaged .*: remove it to train from"):
            fit(config, folder, quiet=True)
        (folder / "last.ckpt").unlink()
    assert fit(config, folder, quiet=True).metrics == Result.read(runs["earlier"]).metrics
    assert same_weights(folder, runs["earlier"])


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


def test_the_last_checkpoint_of_an_unfinished_run(tmp_path: Path, runs: dict[str, Path]) -> None:
    folder, config = interrupted(runs["last"], tmp_path / "run")
    (folder / "last.ckpt").unlink()
    with pytest.raises(FileError, match=r"last\.ckpt does not exist: train the run again"):
        load(folder, "last")
    fit(config, folder, quiet=True)
    load(folder, "last")


def test_one_rank_resumes_within_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "StopSignals", Stop)
        with pytest.raises(Stopped, match="; to resume: fognn train --config ") as caught:
            fit(tiny(training__epochs=1), tmp_path / "run", quiet=True)
    # Raised before any rank is started.
    with pytest.raises(TrainingError, match=r"machine\.ranks must be 1 to resume it, got 2"):
        fit(tiny(training__epochs=1, machine__ranks=2), tmp_path / "run", quiet=True)
    monkeypatch.setattr(sys, "argv", str(caught.value).partition("to resume: ")[2].split())
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert Result.read(tmp_path / "run").epochs == 1
