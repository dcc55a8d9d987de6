from typing import Any

import pytest
from tiny_runs import tiny

from fognn.training.loop import show_epoch

ROW: dict[str, Any] = {
    "epoch": 4,
    "lr": 5e-4,
    "train_loss": 1.23456,
    "val_balanced_accuracy_items": 56.789,
    "train_seconds": 2.0,
    "val_seconds": 0.5,
}


@pytest.mark.parametrize("quiet", [False, True])
def test_a_line_for_each_epoch(capsys: pytest.CaptureFixture[str], quiet: bool) -> None:
    show_epoch(tiny(training__epochs=100), ROW, quiet)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 0 if quiet else 1)
    if not quiet:
        assert "epoch 4/100: loss 1.2346, val balanced accuracy 56.7890, lr 5.0e-04, 2.5 s" in err
        assert "at most 0:04:00 left" in err
