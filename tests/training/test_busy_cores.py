import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, molecules, tiny

from fognn.experiments import protocol
from fognn.training import busy_cores as module
from fognn.training import evaluate, fit, predict
from fognn.training.busy_cores import BusyCores


class Clock:
    """Each look at the time takes a second, of which the processor works a part."""

    def __init__(self, part: float) -> None:
        self.now, self.part = 0.0, part

    def perf_counter(self) -> float:
        self.now += 1
        return self.now

    def process_time(self) -> float:
        return self.part * self.now


@pytest.mark.parametrize(("threads", "part", "warned"), [(2, 0.2, 1), (2, 0.3, 0), (1, 0.2, 0)])
def test_cores_that_others_use(
    monkeypatch: pytest.MonkeyPatch, threads: int, part: float, warned: int
) -> None:
    monkeypatch.setattr(module, "time", Clock(part))
    busy = BusyCores(threads)
    found = [text for _ in range(50) if (text := busy.message())]
    assert len(found) == warned
    if warned:
        assert "used 2.0 seconds of processor time with 2 threads" in found[0]
        assert "--threads 1" in found[0]


def test_a_run_says_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", Clock(0.1))
    monkeypatch.setattr(module, "_ENOUGH", 1.5)
    with pytest.warns(UserWarning, match="--threads 1 may be faster") as caught:
        fit(tiny(machine__threads=2), tmp_path / "two", quiet=True)
    assert sum("--threads 1" in str(one.message) for one in caught) == 1
    assert (tmp_path / "two" / "log.txt").read_text().count("--threads 1") == 1
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*--threads 1")
        fit(tiny(machine__threads=1), tmp_path / "one", quiet=True)
    assert len(metrics(tmp_path / "one")) == 3


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_evaluation_and_prediction_say_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    torch.save(molecules(40), tmp_path / "mine.pt")
    run = fit(
        protocol(str(tmp_path / "mine.pt"), "gcn", 0, {"epochs": 1, "model.channels": 8}),
        tmp_path / "run",
        quiet=True,
    )
    monkeypatch.setattr(module, "time", Clock(0.1))
    monkeypatch.setattr(module, "_ENOUGH", 1.5)

    def call(threads: int) -> Any:
        if command == "evaluate":
            return evaluate(run.folder, "train", threads=threads, batch_size=2)
        source, output = tmp_path / "mine.pt", tmp_path / "out.csv"
        return predict(run.folder, source, output, batch_size=2, threads=threads)

    with pytest.warns(UserWarning, match="--threads 1 may be faster") as caught:
        two = call(2)
    assert sum("--threads 1" in str(one.message) for one in caught) == 1
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*--threads 1")
        one = call(1)
    assert one == pytest.approx(two)
