import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, tiny
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

import fognn
from fognn.training import Config, Result, TrainingError, fit, run
from fognn.training.loop import LostRankError
from fognn.training.run import _cause
from fognn.training.run_folder import check_folder

EPOCHS = 25
# The average over batches is over those of each rank: two ranks have twice as many.
OF_RANKS = {"train_balanced_accuracy_batches"}


def config(ranks: int) -> Config:
    return tiny(training__epochs=EPOCHS, machine__ranks=ranks)


def arguments(folder: Path) -> list[str]:
    """The same run as a command."""
    text = "train cluster gcn+fog --fraction 0.0008 --batch-size 4 --lr 0.001 --threads 1 --quiet"
    settings = {"model.channels": 16, "model.fog_channels": 8, "model.h1": 4, "model.h2": 2}
    changes = [word for name, n in settings.items() for word in ("--set", f"{name}={n}")]
    results = ["--results", str(folder.parent / "results")]
    return [*text.split(), "--epochs", str(EPOCHS), *changes, *results, "-o", str(folder)]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return fit(config(1), tmp_path_factory.mktemp("one"), quiet=True)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Two ranks, started by torchrun."""
    folder = tmp_path_factory.mktemp("two") / "run"
    program = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*program, "-m", "fognn", *arguments(folder)],
        env=os.environ | {"PYTHONPATH": str(Path(fognn.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    result = Result.read(folder)
    assert done.stdout == f"{result}\n{folder}\n", "only one rank prints"
    assert len((folder.parent / "results" / "runs.jsonl").read_text().splitlines()) == 1
    return result


def test_two_ranks_are_like_one(one: Result, two: Result) -> None:
    assert (one.ranks, two.ranks) == (1, 2)
    check_folder(two.folder, config(1))
    alone, shared = metrics(one.folder), metrics(two.folder)
    assert len(alone) == len(shared) == EPOCHS
    assert float(shared[0]["train_loss"]) == pytest.approx(float(alone[0]["train_loss"]), rel=1e-5)
    # Sums in another order differ in the last bit, and each epoch multiplies that.
    for first, second in zip(alone[:5], shared[:5], strict=True):
        for name in first.keys() - OF_RANKS:
            assert float(second[name]) == pytest.approx(float(first[name]), rel=1e-4), name
    assert two.test is not None
    assert one.test is not None
    assert two.test["last"]["loss"] == pytest.approx(one.test["last"]["loss"], rel=1e-2)
    # They are two ranks that learn, not one that learns alone.
    assert shared != alone


def children() -> list[int]:
    """The ranks that this process started, the first one first."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = re.search(r"^PPid:\s+(\d+)", (path / "status").read_text(), re.M)
            command = (path / "cmdline").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if parent and int(parent[1]) == os.getpid() and "spawn_main" in command:
            found.append(int(path.name))
    return sorted(found)


@contextmanager
def killing(rank: int, number: signal.Signals, folder: Path) -> Iterator[list[int]]:
    """Sends a signal to a rank once the run has finished its first epochs."""
    killed: list[int] = []

    def work() -> None:
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            file = folder / "metrics.csv"
            if file.exists() and len(file.read_text().splitlines()) > 3:
                killed.append(children()[rank])
                os.kill(killed[0], number)
                return
            time.sleep(0.005)

    thread = threading.Thread(target=work)
    thread.start()
    yield killed
    thread.join()


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_killed_rank(tmp_path: Path, two: Result, rank: int) -> None:
    folder = tmp_path / "run"
    before = signal.getsignal(signal.SIGINT)
    message = rf"rank {rank} of 2 ended \(killed by SIGKILL\).*in {folder}; to resume: fognn again"
    with (
        killing(rank, signal.SIGKILL, folder) as killed,
        pytest.raises(TrainingError, match=message),
    ):
        fit(config(2), folder, "fognn again", quiet=True)
    assert killed
    assert children() == []
    assert signal.getsignal(signal.SIGINT) is before
    before = len(metrics(folder))
    assert 3 <= before < EPOCHS
    assert not (folder / "result.json").exists()
    result = fit(config(2), folder, "fognn again", quiet=True)
    assert metrics(folder) == metrics(two.folder)
    assert result.test == two.test
    assert f"resumes after epoch {before}" in (folder / "log.txt").read_text()


@pytest.mark.parametrize(("error", "waits"), [(LostRankError("x"), 1), (TrainingError("x"), 0)])
def test_a_rank_that_lost_another_ends_after_it(
    error: TrainingError, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the launcher may find both ended, and names the lower one."""
    slept: list[float] = []

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(run, "fit_one", fail)
    monkeypatch.setattr(run.time, "sleep", slept.append)
    with pytest.raises(SystemExit):
        run._rank(config(2).to_dict(), "run", "fognn again", True, None)
    assert len(slept) == waits
    assert all(seconds > 2 * run._INTERVAL for seconds in slept)


def test_a_finished_run_starts_no_ranks(one: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: object) -> None:
        pytest.fail("a rank was started")

    monkeypatch.setattr(run, "elastic_launch", launch)
    assert fit(config(2), one.folder) == one


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model__hh": 3}, "no setting 'hh'"),
        ({"machine__device": "cuda"}, "device must be one that this machine has"),
        ({"training__lr": 0.5}, r"holds another run \(training.lr: 0.001 and 0.5"),
    ],
)
def test_what_is_wrong_is_said_before_ranks_are_started(
    one: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.setattr(run, "elastic_launch", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    folder = one.folder if "training__lr" in values else tmp_path / "run"
    with pytest.raises(ValueError, match=message):
        fit(tiny(training__epochs=EPOCHS, machine__ranks=2, **values), folder)
    assert not (tmp_path / "run").exists()


def test_the_cause_is_not_a_rank_that_aborted_because_of_it() -> None:
    def failed(rank: int, exit_code: int, seconds: int) -> ProcessFailure:
        failure = ProcessFailure(rank, 100 + rank, exit_code, "no-such-file")
        failure.timestamp = seconds
        return failure

    aborted, killed = failed(0, -signal.SIGABRT, 1), failed(1, -signal.SIGKILL, 2)
    assert _cause(ChildFailedError("fognn", {0: aborted, 1: killed})) == (1, killed)
    assert _cause(ChildFailedError("fognn", {0: aborted})) == (0, aborted)
    late = failed(2, 1, 3)
    assert _cause(ChildFailedError("fognn", {2: late, 1: killed})) == (1, killed)
