"""Folders as runs leave them."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes the folder of a run whose validation metric is given, epoch by epoch."""

    def make(
        name: str,
        model: str,
        val: Sequence[float],
        test: float | Sequence[float] | None = None,
        *,
        metric: str = "balanced_accuracy",
        seed: int = 0,
        finished: bool = True,
        parameters: int = 100_000,
        seconds: float = 2.0,
        config: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
    ) -> Path:
        """``test``: best over items, best over batches, last over items, last over batches."""
        folder = tmp_path / name
        folder.mkdir(parents=True)
        settings: dict[str, Any] = {
            "data": {"name": "CLUSTER", "fraction": 0.1},
            "model": {"name": model, "channels": 160},
            "training": {"lr": 0.01, "batch_size": 128, "epochs": 12},
            "seed": seed,
            "machine": {"device": "cpu", "threads": 2},
        }
        for key, value in (config or {}).items():
            section, _, setting = key.partition(".")
            settings[section] = settings[section] | {setting: value} if setting else value
        (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        with open(folder / "metrics.csv", "w", newline="") as file:
            columns = ["epoch", "lr", "train_loss", f"train_{metric}_batches"]
            columns += [f"train_{metric}_items", "val_loss", f"val_{metric}_batches"]
            columns += [f"val_{metric}_items", "train_seconds", "val_seconds"]
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for epoch, value in enumerate(val, 1):
                loss = 1.8 / epoch**0.3
                train = [loss, value + 0.9, value + 1.0, loss + 0.1, value - 0.1, value]
                writer.writerow([epoch, 0.01, *train, 0.75 * seconds, 0.25 * seconds])
        if finished:
            higher = metric != "mae"
            best = (max if higher else min)(range(len(val)), key=lambda i: val[i]) + 1
            tests = [test] * 4 if isinstance(test, float) else test

            def scores(values: Sequence[float]) -> dict[str, dict[str, float]]:
                return {
                    "best": {"loss": 1.0, "items": values[0], "batches": values[1]},
                    "last": {"loss": 1.1, "items": values[2], "batches": values[3]},
                }

            content: dict[str, Any] = {
                "command": f"fognn train cluster {model} --seed {seed} --folder {name}",
                "data": "CLUSTER", "model": model, "seed": seed, "parameters": parameters,
                "metric": metric, "higher_is_better": higher, "epochs": len(val),
                "best_epoch": best, "stopped": "epochs", "seconds_per_epoch": seconds,
                "seconds": seconds * len(val), "train": scores([val[best - 1]] * 2 + [val[-1]] * 2),
                "val": scores([val[best - 1]] * 2 + [val[-1]] * 2),
                "test": scores(tests) if tests else None, "device": "cpu", "threads": 2, "ranks": 1,
                "versions": {"python": "3.11.2", "torch": "2.13.0"}, "commit": "b6506b8" * 5,
                "machine": {"system": "Linux", "cores": 2},
            }  # fmt: skip
            (folder / "result.json").write_text(json.dumps(content | (result or {})))
        return folder

    return make
