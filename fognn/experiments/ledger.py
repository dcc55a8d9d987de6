r"""The ledger of measured runs: one line for each finished run in ``results/TABLE.jsonl``. Runs
that are not in the paper's tables are in ``results/runs.jsonl``, those of ``fognn compare`` in
``results/compare/NAME.jsonl``."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from fognn.experiments.entry_checks import check_content
from fognn.experiments.jsonl_file import JsonlFile
from fognn.experiments.protocols import command_of
from fognn.experiments.tables import Planned, other_key, portable
from fognn.training import Config, Result
from fognn.training.data import data_fingerprint
from fognn.training.run_folder import TIMES, read_metrics

__all__ = ["Ledger", "LedgerEntry", "ledger_entry"]

_DIGITS = 7  # significant digits of a curve: enough for any plot


@dataclass(frozen=True)
class LedgerEntry:
    r"""A line of the ledger: one finished run.

    Args:
        key (str): The unique name of the run, :attr:`fognn.experiments.tables.Planned.key`.
        table (str): Its table, ``"compare/NAME"`` or ``"runs"``.
        row (str): The id of its row, such as ``"zinc/gcn+fog"``; empty in ``"runs"``.
        variant (str): As in :class:`fognn.experiments.tables.Planned`.
        label (str): As in :class:`fognn.experiments.tables.Planned`.
        model (str): Name of the network.
        data (str): Name of the dataset.
        seed (int): The seed.
        config (dict): All settings, as in ``config.yaml``, without folders.
        result (dict): As in ``result.json``, see :class:`fognn.training.Result`; its ``command``
            repeats the run from a fresh clone.
        curve (dict): Lists with a number for each epoch: ``"epoch"``, ``"lr"``, ``"train_loss"``,
            ``"val_loss"``, ``"train"`` and ``"val"`` (the metric over items), ``"seconds"``. A
            number that is not finite is :obj:`None`.
        finished (str): The time of its end, in ISO format and UTC.
        more (dict, optional): Fields that few lines have: ``"weights"``, see :attr:`weights`, and
            those of a later version, which are kept. (default: :obj:`{}`)
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

    @property
    def weights(self) -> str | None:
        r"""The SHA-256 of the file of the run's weights, if they are kept, see
        :mod:`fognn.experiments.keep`."""
        return self.more.get("weights")

    def with_weights(self, checksum: str | None) -> "LedgerEntry":
        r"""Returns the line with another :attr:`weights`."""
        more = {name: value for name, value in self.more.items() if name != "weights"}
        return replace(self, more=more | ({"weights": checksum} if checksum else {}))

    def to_dict(self) -> dict[str, Any]:
        r"""Returns the fields of the line, as in the file."""
        content = {name: getattr(self, name) for name in _KINDS}
        return content | {key: self.more[key] for key in sorted(self.more)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "LedgerEntry":
        r"""Builds a line from the result of :meth:`to_dict`; raises if a field is missing or has
        another type.

        Args:
            content (dict): The fields.
        """
        for name, kind in _KINDS.items():
            if type(content.get(name)) is not kind:
                got = repr(content[name])[:60] if name in content else "nothing"
                raise ValueError(f"{name} must be of type {kind.__name__}, got {got}")
        more = {name: value for name, value in content.items() if name not in _KINDS}
        return cls(**{name: content[name] for name in _KINDS}, more=more)


# The type that JSON gives for each field.
_KINDS = {
    name: get_origin(hint) or hint
    for name, hint in get_type_hints(LedgerEntry).items()
    if name != "more"
}


class Ledger:
    r"""The finished runs of a table.

    Several processes can add lines at the same time, see
    :class:`~fognn.experiments.jsonl_file.JsonlFile`.

    Args:
        path (Path): The file, such as ``results/zinc.jsonl``. It need not exist.
        table (str, optional): The table. (default: the file's name without its suffix)
    """

    def __init__(self, path: Path, table: str | None = None) -> None:
        self.path = Path(path)
        self.table = self.path.stem if table is None else table

    def entries(self) -> list[LedgerEntry]:
        r"""Returns all runs, in the order of the file. A line that is invalid, or of another
        version, is skipped with a warning."""
        return [LedgerEntry.from_dict(content) for content in self._lines().read()]

    def add(self, entry: LedgerEntry) -> None:
        r"""Adds a run, or replaces the one with the same key."""
        self.change(lambda _: [entry])

    def change(self, function: Callable[[list[LedgerEntry]], list[LedgerEntry]]) -> None:
        r"""Adds or replaces several runs in one step, while no other process writes.

        Args:
            function (Callable): Takes all runs and returns those to add or to replace.
        """

        def contents(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
            changed = function([LedgerEntry.from_dict(content) for content in lines])
            return [entry.to_dict() for entry in changed]

        self._lines().change(contents)

    def _lines(self) -> JsonlFile:
        runs: dict[tuple[str, ...], str] = {}

        def check(content: dict[str, Any]) -> None:
            try:
                entry = LedgerEntry.from_dict(content)
                run = check_content(content, self.table)
            except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
                # Not of a form that the checks know; any of these would end the whole table.
                raise ValueError(f"must be a finished run: {error!r}"[:200]) from error
            other = runs.setdefault(run, entry.key)
            if other != entry.key:
                raise ValueError(f"must be another run than {other!r}, which has the same config")

        return JsonlFile(self.path, check)


def ledger_of(table: str, results: Path) -> Ledger:
    r"""Returns the ledger of a table, or of the runs that are not in the paper's tables.

    Args:
        table (str): One of :obj:`fognn.experiments.tables.TABLES`, ``"compare/NAME"`` or
        ``"runs"``.
        results (Path): The folder of the ledgers.
    """
    return Ledger(Path(results) / f"{table}.jsonl", table)


def ledger_entry(planned: Planned, folder: Path) -> LedgerEntry:
    r"""Returns the ledger line of a finished run of a table.

    Args:
        planned (Planned): The run.
        folder (Path): The run folder.

    Raises:
        ValueError: If the folder holds another run, or one that has not finished.
    """
    config = _config(folder)
    differences = config.differences(planned.config)
    if differences:
        raise ValueError(
            f"folder {str(folder)!r} must hold {planned.key}, but it holds another run "
            f"({'; '.join(differences[:4])}, in the folder and as planned)"
        )
    return _entry(
        folder, config, planned.key, planned.table, planned.row, planned.variant, planned.label
    )


def run_entry(folder: Path) -> LedgerEntry:
    r"""Returns the ledger line of any finished run, for ``runs.jsonl``."""
    config = _config(folder)
    return _entry(folder, config, other_key(config), "runs", "", "", config.model.name)


def relabelled(entry: LedgerEntry, planned: Planned) -> LedgerEntry:
    r"""Returns the ledger line of the same run for another table that has it.

    Args:
        entry (LedgerEntry): The line.
        planned (Planned): The run in the other table.
    """
    names = {name: getattr(planned, name) for name in ("key", "table", "row", "variant", "label")}
    # The file of the weights is that of the other table.
    same = entry if planned.key == entry.key else entry.with_weights(None)
    return replace(same, **names)


def _config(folder: Path) -> Config:
    Result.read(folder)  # raises unless the run has finished
    return Config.read(Path(folder) / "config.yaml")


def _entry(
    folder: Path, config: Config, key: str, table: str, row: str, variant: str, label: str
) -> LedgerEntry:
    file = Path(folder) / "result.json"
    epochs = Result.read(folder).epochs
    # JSON has no NaN. A fold's loss can be NaN at the best epoch of the mean curve.
    result = json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    # Without paths of this machine: the command repeats the run from any clone.
    result["command"] = command_of(config)
    result["fingerprint"] = result.get("fingerprint") or data_fingerprint(config)
    shared = portable(config)
    result["data"] = shared.data.name
    history = read_metrics(folder)
    if len(history) != epochs:
        raise ValueError(
            f"folder {str(folder)!r} must hold one run: result.json is of {epochs} epochs, but "
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
        config=shared.to_dict(),
        result=result,
        curve=_curve(folder, history, config.training.metric),
        finished=datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds"),
    )


def _curve(folder: Path, history: list[dict[str, Any]], metric: str) -> dict[str, list[Any]]:
    names = {
        **{name: name for name in ("lr", "train_loss", "val_loss")},
        **{split: f"{split}_{metric}_items" for split in ("train", "val")},
    }
    needed = (*names.values(), *TIMES)
    missing = [name for name in needed if history and name not in history[0]]
    if missing:
        raise ValueError(f"{Path(folder) / 'metrics.csv'} must have the column {missing[0]!r}")
    return {
        "epoch": [row["epoch"] for row in history],
        **{new: [_rounded(row[old]) for row in history] for new, old in names.items()},
        "seconds": [_rounded(sum(row[name] for name in TIMES)) for row in history],
    }


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
