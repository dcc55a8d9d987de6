"""Paths that begin with an unknown home directory, and numbers of threads, in each command: one
line, and nothing is written."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import Run
from tiny_runs import molecules

from fognn.experiments import protocol
from fognn.training import fit

X = "~nosuchuser/x"
SMALL = ["--epochs", "1", "--set", "model.channels=8", "-q"]
ROW = ["reproduce", "zinc", "--models", "gcn", "--no-ours"]
PATHS = [
    ["train", "mine.pt", "gcn", *SMALL, "-o", X],
    ["train", "mine.pt", "gcn", *SMALL, "--results", X],
    ["train", "zinc", "gcn", *SMALL, f"--data={X}"],
    ["train", f"{X}.pt", "gcn", *SMALL],
    ["train", "--config", X],
    ["train", "mine.pt", "gcn", "--import", X],
    ["evaluate", X],
    ["evaluate", "run", "--data", X],
    ["predict", X, "mine.pt", "-o", "o.csv"],
    ["predict", "run", f"{X}.pt", "-o", "o.csv"],
    ["predict", "run", "mine.pt", "-o", f"{X}.csv"],
    ["export", X, "-o", "ex"],
    ["export", "run", "-o", X],
    *(["compare", "mine.pt", option, X] for option in ("--runs", "--results", "-o", "--data")),
    *([*ROW, option, X] for option in ("--runs", "--results", "--data")),
    [*ROW, "--export", "slurm", "-o", X],
    ["table", "zinc", "--results", X],
    ["collect", X],
    ["collect", "run", "--results", X],
    ["report", "-o", X],
    ["report", "-o", "pages", "--results", X],
    ["report", X, "-o", "pages"],
    ["data", "--data", X],
    ["data", f"{X}.csv"],
    ["data", "cluster", "-o", f"{X}.png"],
    ["generate", "tsp", "--graphs", "1", "-o", f"{X}.npz"],
]
Failed = Callable[..., str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    torch.save(molecules(40), folder / "mine.pt")
    values = {"epochs": 1, "model.channels": 8, "machine.threads": 1}
    fit(protocol(str(folder / "mine.pt"), "gcn", 0, values), folder / "run", quiet=True)
    return folder


@pytest.fixture
def failed(run: Run, files: Path, monkeypatch: pytest.MonkeyPatch) -> Failed:
    """Runs a command that must fail; returns its line."""
    monkeypatch.chdir(files)

    def call(*arguments: str) -> str:
        before = sorted(files.rglob("*"))
        done = run(*arguments)
        assert done.returncode == 1
        assert sorted(files.rglob("*")) == before
        (line,) = done.stderr.splitlines()
        assert line.startswith("fognn: ")
        return line

    return call


@pytest.mark.parametrize("arguments", PATHS, ids=" ".join)
def test_an_unknown_home(failed: Failed, arguments: list[str]) -> None:
    assert "~nosuchuser/x" in (line := failed(*arguments))
    assert "begins with a home directory that is not known: name the folder in full" in line


@pytest.mark.parametrize("name", ["FOGNN_CACHE", "FOGNN_DATA"])
def test_of_the_environment(failed: Failed, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, X)
    assert "begins with a home directory that is not known" in failed("data", "zinc", "--draw", "0")


def test_a_home_that_is_known(run: Run, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(files))
    done = run("predict", "~/run", "~/mine.pt", "-o", "~/out.csv")
    assert done.returncode == 0, done.stderr
    assert (files / "out.csv").exists()


@pytest.mark.parametrize("threads", ["1000", "4000"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "mine.pt", "gcn", *SMALL, "--threads"],
        ["evaluate", "run", "--threads"],
        ["predict", "run", "mine.pt", "-o", "o.csv", "--threads"],
        ["compare", "mine.pt", "--hosts", "gin", "--budget", "5000", "--runs", "r", "--threads"],
        [*ROW, "--runs", "r", "--results", "s", "--set"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_threads(
    failed: Failed, monkeypatch: pytest.MonkeyPatch, arguments: list[str], threads: str
) -> None:
    monkeypatch.setattr("fognn.training.environment.cores", lambda: 2)
    value = f"machine.threads={threads}" if arguments[-1] == "--set" else threads
    line = failed(*arguments, value)
    assert (
        f"machine.threads must be at most 64 on this machine, which has 2 cores, got {threads}"
        in line
    )
