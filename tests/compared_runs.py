"""Runs of a comparison without training."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ledger_entries import scores_of

from fognn.experiments.compared import ComparedRun
from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.pool import Job, Outcome, Summary
from fognn.experiments.tables import Run, portable

Scores = Callable[[Run], tuple[float, float] | str]


def compared_entry(planned: Run, val: float, test: float | None) -> LedgerEntry:
    """A finished run with these metrics at the best epoch over items; all its other figures are
    far from them."""
    config = portable(planned.config)

    def scores(best: float) -> dict[str, dict[str, float]]:
        return {
            "last": {"batches": best + 50, "items": best + 60, "loss": 1.0},
            "best": {"batches": best + 70, "items": best, "loss": 1.0},
        }

    found = None if test is None else scores(test)
    result = {"train": scores(val), "val": scores(val), "test": found, "stopped": "epochs"}
    return scores_of(planned, config, parameters=10_000, peak_memory=300 * 2**20, **result)


class FakeTraining:
    """Adds runs to the ledger: ``scores(run)`` is its validation and its test metric, or the
    reason why it fails."""

    def __init__(self, results: Path, scores: Scores) -> None:
        self.results, self.scores = results, scores
        self.trained: list[Run] = []
        self.after: Callable[[int], None] = lambda count: None

    def __call__(self, some: Sequence[Run], *_: object, **__: object) -> Summary:
        trained, failed, skipped = [], [], []
        for run in some:
            assert isinstance(run, ComparedRun)
            ledger = ledger_of(run.table, self.results)
            if run.key in {entry.key for entry in ledger.entries()}:
                skipped.append(run.key)
                continue
            self.trained.append(run)
            found = self.scores(run)
            if isinstance(found, str):
                failed.append(Outcome(Job(run.key, run.config, Path()), found))
            else:
                ledger.add(compared_entry(run, *found))
                trained.append(run.key)
        self.after(len(trained) + len(failed))
        return Summary(tuple(trained), tuple(skipped), tuple(failed), 1.0)
