r"""The ledger of measured runs: one line a finished run in ``results/TABLE.jsonl``; runs that are
not of the paper's tables are in ``results/runs.jsonl``."""

import json
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from fognn.paper.jsonl_file import JsonlFile
from fognn.paper.protocols import command_of
from fognn.paper.tables import Planned, other_key, runs_of
from fognn.training import Config, Result
from fognn.training.data import data_fingerprint
from fognn.training.own_data import is_file
from fognn.training.run_folder import TIMES, read_metrics

__all__ = ["Ledger", "LedgerEntry", "ledger_entry"]

_DIGITS = 7  # of a curve's numbers: more than a plot can show


@dataclass(frozen=True)
class LedgerEntry:
    r"""One finished run.

    Args:
        key (str): Names the run: :attr:`fognn.paper.tables.Planned.key`.
        table (str): Its table, or ``"runs"``.
        row (str): The id of its row, as ``"zinc/gcn+fog"``.
        variant (str): As in :class:`fognn.paper.tables.Planned`.
        label (str): As in :class:`fognn.paper.tables.Planned`.
        model (str): Name of the network.
        data (str): Name of the dataset.
        seed (int): The seed.
        config (dict): All settings, as in ``config.yaml``, without folders.
        result (dict): As in ``result.json``, see :class:`fognn.training.Result`; its ``command``
            repeats the run from a fresh clone.
        curve (dict): Lists with a number for each epoch: ``"epoch"``, ``"lr"``, ``"train_loss"``,
            ``"val_loss"``, ``"train"`` and ``"val"`` (the metric over items), ``"seconds"``. A
            number that is not finite is :obj:`None`.
        finished (str): When it ended, in ISO form and UTC.
        more (dict): Fields that a later version wrote and this one does not know.
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


def ledger_of(table: str, results: Path) -> Ledger:
    r"""The ledger of a table, or of the runs that are not of the paper's tables (``"runs"``)."""
    return Ledger(Path(results) / f"{table}.jsonl")


def enter(folder: Path, results: Path) -> list[str]:
    r"""Enters a finished run into the ledger of each table that it is a run of, or into
    ``runs.jsonl``.

    Args:
        folder (Path): The run folder.
        results (Path): The folder of the ledgers.

    Returns:
        The keys of the lines.
    """
    config = _config(folder)
    entries = [ledger_entry(run, folder) for run in runs_of(config)] or [run_entry(folder)]
    for entry in entries:
        ledger_of(entry.table, results).add(entry)
    return [entry.key for entry in entries]


def ledger_entry(planned: Planned, folder: Path) -> LedgerEntry:
    r"""The line of a finished run of a table.

    Args:
        planned (Planned): The run.
        folder (Path): Its folder. Raises if it holds another run, or one that has not finished.
    """
    config = _config(folder)
    differences = config.differences(planned.config)
    if differences:
        raise ValueError(
            f"folder {str(folder)!r} must hold {planned.key}, but it holds another run "
            f"({'; '.join(differences[:4])}, there and here)"
        )
    return _entry(
        folder, config, planned.key, planned.table, planned.row, planned.variant, planned.label
    )


def run_entry(folder: Path) -> LedgerEntry:
    r"""The line of any finished run, as of the table ``"runs"``, which has no rows."""
    config = _config(folder)
    return _entry(folder, config, other_key(config), "runs", "", "", config.model.name)


def relabelled(entry: LedgerEntry, planned: Planned) -> LedgerEntry:
    r"""The line of the same run for another table that has it."""
    names = {name: getattr(planned, name) for name in ("key", "table", "row", "variant", "label")}
    return replace(entry, **names)


def _config(folder: Path) -> Config:
    Result.read(folder)  # raises unless the run has finished
    return Config.read(Path(folder) / "config.yaml")


def _entry(
    folder: Path, config: Config, key: str, table: str, row: str, variant: str, label: str
) -> LedgerEntry:
    file = Path(folder) / "result.json"
    epochs = Result.read(folder).epochs
    # JSON has no NaN, such as the loss of a fold at an epoch that the other folds chose.
    result = json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    # No path of anybody's machine: the command as anybody can give it.
    result["command"] = command_of(config)
    result["fingerprint"] = result.get("fingerprint") or data_fingerprint(config)
    named: dict[str, str | None] = {"data.folder": None}
    if is_file(config.data):
        result["data"] = named["data.name"] = Path(config.data.name).name
    history = read_metrics(folder)
    if len(history) != epochs:
        raise ValueError(
            f"folder {str(folder)!r} must hold one run: result.json is of {epochs} epochs, "
            f"metrics.csv of {len(history)}"
        )
    return LedgerEntry(
        key=key,
        table=table,
        row=row,
        variant=variant,
        label=label,
        model=config.model.name,
        data=result["data"],
        seed=config.seed,
        config=config.with_values(named).to_dict(),
        result=result,
        curve=_curve(history, config.training.metric),
        finished=datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds"),
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
