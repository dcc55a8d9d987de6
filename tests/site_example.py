"""Ledgers as finished runs leave them, with made-up numbers around the paper's."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.tables import TableRun, plan

EPOCHS = 60


def make_entry(planned: TableRun, value: float, epochs: int = EPOCHS) -> LedgerEntry:
    """A finished run whose test figure at the last epoch over batches is ``value``."""
    config, row = planned.config, planned.paper
    dice = random.Random(planned.key)
    mae = config.training.metric == "mae"
    losses = [
        0.8 * value * (1 + 4 / (epoch + 1)) if mae else 2 / epoch**0.3
        for epoch in range(1, epochs + 1)
    ]
    losses = [loss * dice.uniform(0.97, 1.03) for loss in losses]
    metric = losses if mae else [value * (1 - 0.5 / epoch) for epoch in range(1, epochs + 1)]
    best = (min if mae else max)(range(epochs), key=lambda epoch: metric[epoch]) + 1

    def scores(number: float) -> dict[str, dict[str, float]]:
        return {
            "last": {"loss": losses[-1], "items": number * 1.001, "batches": number},
            "best": {"loss": losses[best - 1], "items": number * 0.999, "batches": number * 0.998},
        }

    folds = []
    if row.dataset == "IMDB-MULTI":
        folds = [
            {"fold": fold, "val": scores(value + dice.gauss(0, 4)), "test": None, "epochs": epochs}
            for fold in range(1, 11)
        ]
    result: dict[str, Any] = {
        "command": f"fognn train {row.dataset.lower()} {config.model.name} --seed {config.seed}",
        "data": config.data.name, "model": config.model.name, "seed": config.seed,
        "parameters": row.params, "metric": config.training.metric, "higher_is_better": not mae,
        "epochs": epochs, "best_epoch": best, "stopped": "rate",
        "seconds_per_epoch": round(dice.uniform(2, 4), 3),
        "seconds": 3.0 * epochs, "train": scores(value * 0.9), "val": scores(value),
        "test": None if folds else scores(value),
        "device": "cpu", "threads": 1, "ranks": 1,
        "versions": {"python": "3.11.2", "torch": "2.13.0"},
        "commit": "4ad1a90" * 5, "machine": {"system": "Linux", "cores": 2},
        "spread": scores(4.0) if folds else None, "folds": folds,
    }  # fmt: skip
    return LedgerEntry(
        key=planned.key, table=planned.table, row=planned.row, variant=planned.variant,
        label=planned.label, model=config.model.name, data=config.data.name, seed=config.seed,
        config=config.to_dict(), result=result, finished="2026-11-16T03:04:05+00:00",
        curve={
            "epoch": list(range(1, epochs + 1)), "lr": [0.001] * epochs,
            "train_loss": [0.9 * loss for loss in losses], "val_loss": losses,
            "train": [0.9 * number for number in metric], "val": metric,
            "seconds": [2.5] * epochs,
        },
    )  # fmt: skip


def near_the_paper(planned: TableRun) -> float:
    """The printed mean, moved by a draw of its own from the printed s.d."""
    row = planned.paper
    return row.mean + random.Random(planned.key).gauss(0, row.sd)


def write_ledger(
    results: Path,
    table: str,
    models: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 1,
    value: Callable[[TableRun], float] = near_the_paper,
    **settings: Any,
) -> list[LedgerEntry]:
    """Adds runs to the ledger of a table; ``settings`` as in ``plan``."""
    entries = [make_entry(p, value(p)) for p in plan(table, models, seeds, **settings)]
    ledger = ledger_of(table, results)
    for entry in entries:
        ledger.add(entry)
    return entries


def by_model(values: Mapping[str, Sequence[float]]) -> Callable[[TableRun], float]:
    """The values of each network of the paper, one a seed."""
    return lambda planned: values[planned.paper.model][planned.config.seed]
