"""Runs of a comparison without training."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fognn.experiments.compared import Compared
from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.pool import Job, Outcome, Summary
from fognn.experiments.tables import Planned, portable

Scores = Callable[[Planned], tuple[float, float] | str]


def compared_entry(planned: Planned, val: float, test: float | None) -> LedgerEntry:
    """A finished run with these metrics at the best epoch over items; all its other figures are
    far from them."""
    config = portable(planned.config)

    def scores(best: float) -> dict[str, dict[str, float]]:
        return {
            "last": {"batches": best + 50, "items": best + 60, "loss": 1.0},
            "best": {"batches": best + 70, "items": best, "loss": 1.0},
        }

    metric = config.training.metric
    return LedgerEntry(
        key=planned.key,
        table=planned.table,
        row=planned.row,
        variant=planned.variant,
        label=planned.label,
        model=config.model.name,
        data=config.data.name,
        seed=config.seed,
        config=config.to_dict(),
        result={
            "parameters": 10_000, "metric": metric, "higher_is_better": metric != "mae",
            "epochs": 2, "best_epoch": 1, "seconds_per_epoch": 1.5, "seconds": 3.0,
            "train": scores(val), "val": scores(val),
            "test": None if test is None else scores(test),
            "spread": None, "folds": [], "stopped": "epochs", "command": "fognn train",
            "device": "cpu", "threads": 1, "machine": {"cpu": "Abacus 3000"}, "commit": "0123abcd",
            "peak_memory": 300 * 2**20,
        },
        curve={name: [0.5, 0.4] for name in ("lr", "train_loss", "val_loss", "train", "seconds")}
        | {"epoch": [1, 2], "val": [0.5, 0.4]},
        finished="2026-01-02T03:04:05+00:00",
    )  # fmt: skip


class FakeTraining:
    """Adds runs to the ledger: ``scores(run)`` is its validation and its test metric, or the
    reason why it fails."""

    def __init__(self, results: Path, scores: Scores) -> None:
        self.results, self.scores = results, scores
        self.trained: list[Planned] = []
        self.after: Callable[[int], None] = lambda count: None

    def __call__(self, some: Sequence[Planned]) -> Summary:
        trained, failed, skipped = [], [], []
        for run in some:
            assert isinstance(run, Compared)
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
