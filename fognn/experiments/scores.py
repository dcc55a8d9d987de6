r"""The figures of a run that a table shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fognn.experiments.ledger import LedgerEntry

__all__ = [
    "Score",
    "check_result",
    "fold_scores",
    "held_out_of",
    "peak_memory",
    "score_of",
    "validation_of",
]


@dataclass(frozen=True)
class Score:
    r"""The figure of a run.

    Args:
        value (float): The figure.
        spread (float, optional): Its standard deviation over folds, for a run over folds.
            (default: :obj:`None`)
        interval (float, optional): Half of its 95 % confidence interval over the test episodes, for
            few-shot images; only of the average over items. (default: :obj:`None`)
    """

    value: float
    spread: float | None = None
    interval: float | None = None


def check_result(entry: LedgerEntry) -> None:
    r"""Raises if the result of a run lacks a figure."""
    if "test" not in entry.result:
        raise ValueError(f"ledger line {entry.key!r}: result.test must be given, or be null")
    for name, kind in (("parameters", int), ("epochs", int), ("seconds_per_epoch", float)):
        _number(entry.result, entry.key, name, kind=kind)
    for at in ("last", "best"):
        for over in ("batches", "items"):
            _score(entry, "val" if entry.result["test"] is None else "test", at, over)


def score_of(entry: LedgerEntry, at: str, over: str) -> Score:
    r"""Returns the figure of a run on its test split; without a test split, as on IMDB-MULTI, on
    its validation split at the best epoch, over items.

    Args:
        entry (LedgerEntry): The run.
        at (str): The epoch: ``"last"`` or ``"best"``.
        over (str): The average: over ``"batches"`` or over ``"items"``.
    """
    return _score(entry, *_where(entry, at, over))


def held_out_of(entry: LedgerEntry) -> Score | None:
    r"""Returns the validation figure at the last epoch, which was not chosen by any figure, of a
    run without a test split; otherwise :obj:`None`."""
    if entry.result["test"] is not None:
        return None
    return _score(entry, "val", "last", "items")


def validation_of(entry: LedgerEntry) -> float:
    r"""Returns the figure that a search compares: the validation metric over items, at the best
    epoch."""
    return float(_number(entry.result, entry.key, "val", "best", "items"))


def peak_memory(entries: Sequence[LedgerEntry]) -> int | None:
    r"""Returns the largest memory of runs in bytes; :obj:`None` if it was not measured."""
    found = [entry.result.get("peak_memory") for entry in entries]
    return max((memory for memory in found if memory is not None), default=None)


def fold_scores(entry: LedgerEntry, at: str, over: str) -> dict[int, float]:
    r"""Returns the figure of :func:`score_of` for each fold; an empty dict for a run without
    folds."""
    where = _where(entry, at, over)
    return {
        _number(fold, entry.key, "fold", kind=int): _number(fold, entry.key, *where)
        for fold in entry.result.get("folds") or []
    }


def _where(entry: LedgerEntry, at: str, over: str) -> tuple[str, str, str]:
    return ("val", "best", "items") if entry.result["test"] is None else ("test", at, over)


def _score(entry: LedgerEntry, split: str, at: str, over: str) -> Score:
    value = _number(entry.result, entry.key, split, at, over)
    if entry.result.get("spread") is None:
        interval = entry.result[split][at].get("interval")
        return Score(value, interval=interval if over == "items" else None)
    return Score(value, _number(entry.result, entry.key, "spread", at, over))


def _number(content: Any, key: str, *names: str, kind: type = float) -> Any:
    value = content
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, (kind, int)):
        raise ValueError(
            f"ledger line {key!r}: result.{'.'.join(names)} must be a number, got {value!r}"
        )
    return value
