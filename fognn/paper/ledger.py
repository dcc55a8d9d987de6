r"""What was measured: one line a finished run in ``results/TABLE.jsonl``."""

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from fognn.paper.jsonl_file import JsonlFile
from fognn.paper.tables import Planned
from fognn.training import Config, Result
from fognn.training.run_folder import TIMES, read_metrics

__all__ = ["Ledger", "LedgerEntry", "ledger_entry"]

_DIGITS = 7  # of a curve's numbers: more than a plot can show


@dataclass(frozen=True)
class LedgerEntry:
    r"""One finished run.

    Args:
        key: Which run it is: :attr:`fognn.paper.tables.Planned.key`.
        table, row, variant, label: As in :class:`fognn.paper.tables.Planned`.
        model: Name of the network.
        data: Name of the dataset.
        seed: The seed.
        config: All settings, as in ``config.yaml``.
        result: What it found, as in ``result.json``; see :class:`fognn.training.Result`.
        curve: Lists with a number for each epoch: ``"epoch"``, ``"lr"``, ``"train_loss"``,
            ``"val_loss"``, ``"train"`` and ``"val"`` (the metric over items), ``"seconds"``. A
            number that is not finite is :obj:`None`.
        finished: When it ended, in ISO form and UTC.
        more: What a later version wrote and this one does not know.
    """

    key: str
    table: str
    row: str
    variant: str
    label: str
    model: str
    data: str
    seed: int
    config: dict[str, Any]
    result: dict[str, Any]
    curve: dict[str, list[Any]]
    finished: str
    more: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        r"""As it stands in the ledger."""
        content = {name: getattr(self, name) for name in _KINDS}
        return content | {key: self.more[key] for key in sorted(self.more)}

    @classmethod
    def from_dict(cls, content: dict[str, Any], where: str = "entry") -> "LedgerEntry":
        r"""The opposite of :meth:`to_dict`; a value that is missing or wrong is an error."""
        for name, kind in _KINDS.items():
            if type(content.get(name)) is not kind:
                got = repr(content[name])[:60] if name in content else "nothing"
                raise ValueError(f"{where}: {name} must be of type {kind.__name__}, got {got}")
        more = {name: value for name, value in content.items() if name not in _KINDS}
        return cls(**{name: content[name] for name in _KINDS}, more=more)


# What JSON gives for the types of a line's values.
_KINDS = {
    name: get_origin(hint) or hint
    for name, hint in get_type_hints(LedgerEntry).items()
    if name != "more"
}


class Ledger:
    r"""The finished runs of a table.

    Adding is atomic, and processes that add at once lose nothing: see
    :class:`~fognn.paper.jsonl_file.JsonlFile`.

    Args:
        path: Its file, as ``results/zinc.jsonl``. It need not be there.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lines = JsonlFile(self.path)

    def entries(self) -> list[LedgerEntry]:
        r"""All runs, in the order in which they were added; a damaged line is an error."""
        return [
            LedgerEntry.from_dict(content, f"{self.path}, {content['key']}")
            for content in self._lines.read()
        ]

    def add(self, entry: LedgerEntry) -> None:
        r"""Adds a run, in the place of an earlier one with the same key."""
        self._lines.put(entry.to_dict())


def ledger_entry(planned: Planned, folder: Path) -> LedgerEntry:
    r"""The line of a finished run.

    Args:
        planned: The run.
        folder: Its folder; one of another run, or of one that has not finished, is an error.
    """
    folder = Path(folder)
    result = Result.read(folder)
    config = Config.read(folder / "config.yaml")
    differences = config.differences(planned.config)
    if differences:
        raise ValueError(
            f"folder {str(folder)!r} must hold {planned.key}, but it holds another run "
            f"({'; '.join(differences[:4])}, there and here)"
        )
    history = read_metrics(folder)
    if len(history) != result.epochs:
        raise ValueError(
            f"folder {str(folder)!r} must hold one run: result.json is of {result.epochs} epochs, "
            f"metrics.csv of {len(history)}"
        )
    file = folder / "result.json"
    ended = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return LedgerEntry(
        key=planned.key,
        table=planned.table,
        row=planned.row,
        variant=planned.variant,
        label=planned.label,
        model=config.model.name,
        data=config.data.name,
        seed=config.seed,
        # Where the data lie is of interest to nobody else.
        config=config.with_values({"data.folder": None}).to_dict(),
        # JSON has no NaN, such as the loss of a fold at an epoch that the other folds chose.
        result=json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None),
        curve=_curve(history, config.training.metric),
        finished=ended.isoformat(timespec="seconds"),
    )


def _curve(history: list[dict[str, Any]], metric: str) -> dict[str, list[Any]]:
    names = {
        **{name: name for name in ("lr", "train_loss", "val_loss")},
        **{split: f"{split}_{metric}_items" for split in ("train", "val")},
    }
    return {
        "epoch": [row["epoch"] for row in history],
        **{new: [_rounded(row[old]) for row in history] for new, old in names.items()},
        "seconds": [_rounded(sum(row[name] for name in TIMES)) for row in history],
    }


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def run_entry(folder: Path) -> LedgerEntry:
    r"""The line of any finished run, as of the table ``"runs"``, which has no rows."""
    # A stand-in until the function of the main branch is merged.
    from types import SimpleNamespace

    config = Config.read(Path(folder) / "config.yaml")
    data, model = Path(config.data.name).name, config.model.name
    planned: Any = SimpleNamespace(
        key=f"{data}/{model}-seed{config.seed}-{config.digest()}",
        **{"table": "runs", "row": "", "variant": "", "label": model, "config": config},
    )
    return ledger_entry(planned, folder)
