"""A run that is resumed with more epochs is the run that had them from the beginning."""

import json
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, tiny

from fognn.training import Config, Result, Stopped, fit, loop
from fognn.training.networks import read_checkpoint
from fognn.training.objective import forward_batch

# A plateau that lowers the rate within the epochs, too.
SCHEDULES: list[dict[str, Any]] = [
    {"training__patience": 0},
    {"training__schedule": "step", "training__step": 2},
    {"training__schedule": "none"},
]


def of(epochs: int, **values: Any) -> Config:
    return tiny(training__epochs=epochs, model__dropout=0.3, **values)


def assert_same_run(folder: Path, whole: Path) -> None:
    """The same bits, but for times."""
    assert metrics(folder) == metrics(whole)
    assert (folder / "config.yaml").read_text() == (whole / "config.yaml").read_text()
    for name in ("last.ckpt", "best.ckpt"):
        mine, other = read_checkpoint(folder / name), read_checkpoint(whole / name)
        for key, value in other["model"].items():
            assert torch.equal(mine["model"][key], value), key
    assert mine["epoch"] == other["epoch"]
    mine, other = (json.loads((path / "result.json").read_text()) for path in (folder, whole))
    for name in ("epochs", "best_epoch", "stopped", "train", "val", "test", "fingerprint"):
        assert mine[name] == other[name], name


@pytest.mark.parametrize("values", SCHEDULES, ids=["plateau", "step", "none"])
def test_a_finished_run(tmp_path: Path, values: dict[str, Any]) -> None:
    fit(of(2, **values), tmp_path / "run", quiet=True)
    result = fit(of(5, **values), tmp_path / "run", quiet=True)
    fit(of(5, **values), tmp_path / "whole", quiet=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")
    assert Result.read(tmp_path / "run") == result
    assert "resumes after epoch 2" in (tmp_path / "run" / "log.txt").read_text()


def _answer(steps: Iterator[int], last: int, *args: Any) -> Any:
    if next(steps) == last:
        signal.raise_signal(signal.SIGINT)
    return forward_batch(*args)


@pytest.mark.parametrize("step", [3, 4])
def test_an_interrupted_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    for epochs in (2, 3):  # interrupted, extended, and interrupted again
        with monkeypatch.context() as patch:
            steps = iter(range(1, 1000))
            at = step if epochs == 2 else 2
            patch.setattr(loop, "forward_batch", partial(_answer, steps, at))
            with pytest.raises(Stopped):
                fit(of(epochs), tmp_path / "run", quiet=True)
        assert not (tmp_path / "run" / "result.json").exists()
    assert Config.read(tmp_path / "run" / "config.yaml") == of(3)
    fit(of(3), tmp_path / "run", quiet=True)
    fit(of(3), tmp_path / "whole", quiet=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")
