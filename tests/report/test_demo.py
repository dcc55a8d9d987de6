"""The comparison of ``make demo``, except the training, which has tests of its own."""

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from run_folders import write_run

from fognn.experiments.pool import Job, Outcome
from fognn.experiments.reproduce import reproduce
from fognn.training.settings import flat

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
SCORES = {"gcn": (53.5, 54.0), "gcn+fog": (57.0, 57.4)}


class WritingPool:
    """Writes run folders in place of training; both networks prefer the second learning rate."""

    asked: list[Job]

    def __init__(self, workers: int, threads: int | None = None) -> None:
        assert workers == 2
        self.jobs: list[Job] = []

    free = True

    def start(self, job: Job) -> None:
        self.asked.append(job)
        self.jobs.append(job)

    def running(self) -> list[Job]:
        return self.jobs

    def wait(self, seconds: float) -> list[Outcome]:
        ended = [Outcome(job) for job in self.jobs]
        for job in self.jobs:
            score = SCORES[job.config.model.name][job.config.seed]
            worse = 5 * (job.config.training.lr == 0.003)
            val = (20.0, 35.0, 41.0 - worse, 40.5 - worse)
            write_run(job.folder, job.config, score, val)
        self.jobs = []
        return ended

    def close(self) -> None:
        assert not self.jobs


def test_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(WritingPool, "asked", [], raising=False)
    monkeypatch.setattr(sys.modules[reproduce.__module__], "LocalPool", WritingPool)
    arguments = ["--output", str(tmp_path / "out"), "--epochs", "3", "--seeds", "2"]
    monkeypatch.setattr(sys, "argv", ["demo.py", *arguments])
    for _ in range(2):
        runpy.run_path(str(DEMO), run_name="__main__")
    asked = [flat(job.config.to_dict()) for job in WritingPool.asked]
    # Nothing is trained twice: each network tries both rates, then has one more seed.
    assert [(own["model.name"], own["training.lr"], own["seed"]) for own in asked] == [
        *(("gcn", 0.003, 0), ("gcn", 0.001, 0), ("gcn+fog", 0.003, 0), ("gcn+fog", 0.001, 0)),
        *(("gcn", 0.001, 1), ("gcn+fog", 0.001, 1)),
    ]
    # The two differ in FOG alone, and in the widths that make up for its parameters.
    host, fog = asked[0], asked[2]
    different: set[Any] = {name for name in host | fog if host.get(name) != fog.get(name)}
    assert {"model.name", "model.channels"} <= different
    of_fog = {"model.fog_channels", "model.h1", "model.h2"}
    assert different <= {"model.name", "model.channels", "model.head_channels", *of_fog}
    report = tmp_path / "out" / "report" / "index.html"
    text = report.read_text(encoding="utf-8")
    assert "<h1>GCN, with and without FOG, on PATTERN</h1>" in text
    printed = capsys.readouterr().out
    assert report.as_uri() in printed
    for words in (text, printed):
        assert "GCN+FOG was better by 3.45 ± 0.64 points of balanced accuracy over 2 seeds" in words
    assert "GCN+FOG" in printed


@pytest.mark.parametrize(
    ("option", "value"),
    [("--fraction", "2"), ("--epochs", "0"), ("--seeds", "0"), ("--budget", "9")],
)
def test_settings_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, value: str
) -> None:
    # Here the trainer is the real one.
    output = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["demo.py", "--output", str(output), option, value])
    with pytest.raises(SystemExit, match=rf"demo: .* must .*, got {value}"):
        runpy.run_path(str(DEMO), run_name="__main__")
    assert not output.exists()
