"""The rows of our own with a training of a few steps, on a few random images."""

import dataclasses
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tiny_images import write_cifar

from fognn.experiments.rows import _rows
from fognn.experiments.tables import TableRun, _known_runs, plan

SMALL: dict[str, Any] = {"epochs": 6, "step": 4, "steps": 2, "batch_size": 10, "episodes": 12}


def use_small_rows(patch: pytest.MonkeyPatch) -> None:
    """Each row of our own is trained for 3 epochs of 2 steps, and tested on 12 episodes."""
    own = tuple(dataclasses.replace(row, **SMALL) for row in _rows("extra_rows"))
    # fognn.experiments has a function of this name
    module = import_module("fognn.experiments.rows")
    patch.setattr(module, "_rows", lambda name: own if "extra" in name else _rows(name))
    # It remembers the runs of the rows.
    patch.setattr("fognn.experiments.tables._known_runs", _known_runs.__wrapped__)


def small_plan(folder: Path, models: list[str], seeds: int = 1) -> list[TableRun]:
    """Runs of the table CIFAR-FS by the protocol of its rows; use_small_rows comes first."""
    if not (folder / "cifar_fs").exists():
        write_cifar(folder, images=8)
    values = {"data.folder": str(folder), "machine.threads": 1}
    return plan("cifar-fs", models, seeds, values=values)
