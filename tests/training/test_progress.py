from typing import Any

import pytest
from tiny_runs import tiny

from fognn.training.progress import RunProgress, duration


def row(epoch: int) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "lr": 5e-4,
        "train_loss": 1.23456,
        "val_balanced_accuracy_items": 56.789,
        "train_seconds": 2.0,
        "val_seconds": 0.5,
    }


@pytest.mark.parametrize("quiet", [False, True])
def test_a_line_for_each_epoch(capsys: pytest.CaptureFixture[str], quiet: bool) -> None:
    progress = RunProgress(tiny(training__epochs=5), 2, 2, quiet)
    for epoch in (3, 4):
        progress.epoch(epoch)
        progress.step(1.0)
        progress.end(row(epoch))
    progress.close()
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.startswith("epoch")]
    assert (out, len(lines)) == ("", 0 if quiet else 2)
    if not quiet:
        assert "epoch 4/5: loss 1.2346, val balanced accuracy 56.7890, lr 5.0e-04, 2.5 s" in err
        assert "at most 0 s left" in lines[-1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.7, "1 min 00 s"), (200, "3 min 20 s"), (3720, "1 h 02 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text
