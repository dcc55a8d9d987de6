"""Run folders as finished runs leave them, without training."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fognn.training import Config


def write_run(
    folder: Path,
    config: Config,
    test: float | None,
    val: Sequence[float] = (20.0, 35.0, 41.0, 40.5),
    result: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a run whose test metric at the last epoch over batches is ``test``, and whose
    validation metric is ``val``; ``result`` changes values of ``result.json``."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config.to_yaml())
    metric = config.training.metric
    higher = metric != "mae"
    best = (max if higher else min)(range(len(val)), key=lambda epoch: val[epoch]) + 1
    with open(folder / "metrics.csv", "w", newline="") as file:
        columns = ["epoch", "lr", "train_loss", f"train_{metric}_batches", f"train_{metric}_items"]
        columns += ["val_loss", f"val_{metric}_batches", f"val_{metric}_items"]
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*columns, "train_seconds", "val_seconds"])
        for epoch, value in enumerate(val, 1):
            loss = 1.8 / epoch**0.3
            train = [loss, value + 0.9, value + 1.0, loss + 0.1, value - 0.1, value]
            writer.writerow([epoch, 0.01, *train, 1.5, 0.5])

    def scores(last: float) -> dict[str, dict[str, float]]:
        return {
            "best": {"loss": 1.0, "items": last + 0.3, "batches": last + 0.2},
            "last": {"loss": 1.1, "items": last + 0.1, "batches": last},
        }

    content: dict[str, Any] = {
        "command": f"fognn train cluster {config.model.name} --seed {config.seed}",
        "data": config.data.name, "model": config.model.name, "seed": config.seed,
        "parameters": 100_000, "metric": metric, "higher_is_better": higher, "epochs": len(val),
        "best_epoch": best, "stopped": "epochs", "seconds_per_epoch": 2.0,
        "seconds": 2.0 * len(val), "train": scores(val[-1] + 1), "val": scores(val[-1]),
        "test": None if test is None else scores(test), "device": "cpu", "threads": 2, "ranks": 1,
        "versions": {"python": "3.11.2", "torch": "2.13.0"}, "commit": "b6506b8" * 5,
        "machine": {"system": "Linux", "cores": 2}, "fingerprint": "0123abcd",
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(content | dict(result or {})))
    return folder
