r"""The state of a run that a checkpoint keeps beside the weights."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fognn.training.objective import HIGHER_IS_BETTER

__all__ = ["State", "step_seed"]


@dataclass
class State:
    r"""Where a run stands, but for the weights.

    Args:
        history: One row an epoch, as in ``metrics.csv``.
        batch: Batches of the unfinished epoch that are done.
        meter: What the meter saw of them.
        seconds: How long they took.
        best_epoch: The epoch of ``best.ckpt``.
        stopped: Why the training ended, if it did.
        commits: The commits of fognn that trained it, one after another.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    batch: int = 0
    meter: dict[str, Tensor] | None = None
    seconds: float = 0.0
    best_epoch: int = 0
    stopped: str = ""
    commits: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        # One tensor is saved much faster than a thousand numbers.
        names = list(self.history[0]) if self.history else []
        rows = [[row[name] for name in names] for row in self.history]
        return vars(self) | {"history": torch.tensor(rows, dtype=torch.float64), "names": names}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "State":
        rest = dict(content)
        names = rest.pop("names")
        rows = [dict(zip(names, row, strict=True)) for row in rest.pop("history").tolist()]
        return cls([row | {"epoch": int(row["epoch"])} for row in rows], **rest)

    def is_best(self, metric: str) -> bool:
        r"""Whether the last epoch is the best one, by its validation metric over items; of equal
        ones the first is."""
        *before, last = (row[f"val_{metric}_items"] for row in self.history)
        if not before:
            return True
        return last > max(before) if HIGHER_IS_BETTER[metric] else last < min(before)


def step_seed(seed: int, epoch: int, batch: int, rank: int = 0) -> int:
    r"""The seed of the random numbers (of dropout) that one rank draws in one step.

    It is a fixed function of where the run stands, so that a resumed run draws the same numbers
    and a checkpoint need not hold the state of any generator.
    """
    text = f"{seed} {epoch} {batch} {rank}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
