from collections.abc import Callable
from pathlib import Path

from fognn.experiments.pool import Job, Outcome, Summary
from fognn.training import Config


def test_all_went_well() -> None:
    text = str(Summary(("a", "b"), ("c",), (), 3725.0))
    assert text == "3 of 3 runs are finished: 1 skipped, 2 trained in 1 h 02 min"


def test_a_failure_has_its_reason_and_its_log(tiny_config: Callable[..., Config]) -> None:
    job = Job("zinc/gcn-seed0", tiny_config(), Path("runs/zinc/gcn-seed0"))
    lost = Job("zinc/gin-seed0", tiny_config(), Path("runs/zinc/gin-seed0"))
    outcomes = (Outcome(job, "the loss is nan", Path("runs/zinc/gcn-seed0.log")),)
    text = str(Summary(("a",), (), (*outcomes, Outcome(lost, "killed")), 1.0)).split("\n")
    assert text == [
        "1 of 3 runs are finished: 0 skipped, 1 trained in 1 s",
        "failed twice: zinc/gcn-seed0: the loss is nan",
        "  its output: runs/zinc/gcn-seed0.log",
        "failed twice: zinc/gin-seed0: killed",
        "the same command resumes the failed runs from their last checkpoints",
    ]
