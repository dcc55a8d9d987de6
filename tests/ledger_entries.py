"""Lines of a ledger without training."""

import statistics
from collections.abc import Sequence
from typing import Any

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.tables import Run, TableRun
from fognn.training import Config


def entry(planned: TableRun, value: float, **result: Any) -> LedgerEntry:
    """A run with ``value`` on the test split at the last epoch over batches; each of its other
    figures is another number."""

    def scores(first: float) -> dict[str, Any]:
        return {
            "last": {"batches": first, "items": first + 0.001, "loss": 1.0},
            "best": {"batches": first + 0.002, "items": first + 0.003, "loss": 1.0},
        }

    usual = {
        "parameters": planned.paper.params or 1,
        "train": scores(value + 0.2),
        "val": scores(value + 0.1),
        "test": scores(value),
    }
    return scores_of(planned, planned.config, **usual | result)


def scores_of(planned: Run, config: Config, **result: Any) -> LedgerEntry:
    """A line of two epochs with a result."""
    metric = config.training.metric
    names = {name: getattr(planned, name) for name in ("key", "table", "row", "variant", "label")}
    about = {"model": config.model.name, "data": config.data.name, "seed": config.seed}
    content = {
        **about, "metric": metric, "higher_is_better": metric not in ("mae", "rmse"),
        "epochs": 2, "best_epoch": 1, "seconds_per_epoch": 1.5, "seconds": 3.0, "spread": None,
        "folds": [], "stopped": "rate", "command": "fognn train", "device": "cpu", "threads": 1,
        "ranks": 1, "versions": {}, "machine": {"cpu": "Abacus 3000"},
        "commit": "0123456789abcdef",
    }  # fmt: skip
    columns = ("lr", "train_loss", "val_loss", "train", "seconds")
    return LedgerEntry(
        **names,
        **about,
        config=config.to_dict(),
        result=content | result,
        curve={"epoch": [1, 2], "val": [0.5, 0.4]} | {name: [0.5, 0.4] for name in columns},
        finished="2026-01-02T03:04:05+00:00",
    )


def fold_entry(planned: TableRun, best: Sequence[float], last: Sequence[float]) -> LedgerEntry:
    """A run over folds, with these accuracies at the best epoch and at the last one."""
    vals = [{"best": _both(b), "last": _both(a)} for b, a in zip(best, last, strict=True)]
    return entry(
        planned,
        0.0,
        test=None,
        val={"best": _both(statistics.fmean(best)), "last": _both(statistics.fmean(last))},
        spread={"best": _both(statistics.stdev(best)), "last": _both(statistics.stdev(last))},
        folds=[
            {"fold": number, "val": val, "test": None, "epochs": 2}
            for number, val in enumerate(vals, 1)
        ],
    )


def _both(value: float) -> dict[str, float]:
    return {"batches": value - 1, "items": value, "loss": 1.0}
