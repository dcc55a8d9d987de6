r"""The state of a run that a checkpoint stores in addition to the weights."""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fognn.training.objective import HIGHER_IS_BETTER

__all__ = ["State", "step_seed"]


@dataclass
class State:
    r"""The progress of a run.

    Args:
        history (list, optional): One dict for each finished epoch, as in ``metrics.csv``.
            (default: :obj:`[]`)
        batch (int, optional): Number of finished batches of the unfinished epoch.
            (default: :obj:`0`)
        meter (dict, optional): State of the meter after these batches. (default: :obj:`None`)
        seconds (float, optional): Time of these batches. (default: :obj:`0.0`)
        best_epoch (int, optional): The epoch of ``best.ckpt``, from 1. (default: :obj:`0`)
        stopped (str, optional): The reason why the training ended, see
            :class:`~fognn.training.Result`; empty if it has not. (default: :obj:`""`)
        commits (list, optional): The commits of fognn that trained the run, in order.
            (default: :obj:`[]`)
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    batch: int = 0
    meter: dict[str, Tensor] | None = None
    seconds: float = 0.0
    best_epoch: int = 0
    stopped: str = ""
    commits: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        r"""Returns tensors and plain values, for a checkpoint."""
        # One tensor is saved much faster than thousands of numbers.
        names = list(self.history[0]) if self.history else []
        rows = [[row[name] for name in names] for row in self.history]
        return vars(self) | {"history": torch.tensor(rows, dtype=torch.float64), "names": names}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "State":
        r"""Builds the state from the result of :meth:`to_dict`."""
        rest = dict(content)
        names = rest.pop("names")
        rows = [dict(zip(names, row, strict=True)) for row in rest.pop("history").tolist()]
        return cls([row | {"epoch": int(row["epoch"])} for row in rows], **rest)

    def is_best(self, metric: str) -> bool:
        r"""Returns whether the validation metric over items of the last epoch is better than that
        of all epochs before; one that is not finite is worse than any."""
        *before, last = (row[f"val_{metric}_items"] for row in self.history)
        before = [value for value in before if math.isfinite(value)]
        if not before:
            return True
        return last > max(before) if HIGHER_IS_BETTER[metric] else last < min(before)


def step_seed(seed: int, epoch: int, batch: int, rank: int = 0) -> int:
    r"""Returns the seed of the random numbers (of dropout) of one rank in one step.

    It depends only on the arguments, so that a resumed run draws the same numbers without the state
    of a generator in the checkpoint.

    Args:
        seed (int): The seed of the run.
        epoch (int): The epoch, from 0.
        batch (int): The batch, from 0.
        rank (int, optional): The rank. (default: :obj:`0`)
    """
    text = f"{seed} {epoch} {batch} {rank}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
