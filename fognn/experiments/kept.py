r"""The kept weights, ``weights/TABLE/ROW.safetensors``: :func:`add_to_ledger` writes them with the
line of a finished run, :func:`verify` evaluates them and compares with the line.

Of all runs of a row by its own protocol, on all of the data, the weights of the one with the lowest
seed are kept, and its ledger line has the checksum of the file. They are those of the epoch whose
figure the table shows, the last one, or the best one for few-shot images. So that all files
together stay small, only those of the first fold are kept of a run over folds, and a run that
several tables have is kept for the first of them only.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fognn.experiments.ledger import LedgerEntry, ledger_entry, ledger_of, readable
from fognn.experiments.rows import TABLES, get_row
from fognn.experiments.tables import Run, TableRun, portable
from fognn.models.weights import SUFFIX, Weights, write_weights
from fognn.training import evaluate
from fognn.training.checkpoint import read_checkpoint, rebuild
from fognn.training.data import data_fingerprint
from fognn.utils import checks
from fognn.utils.errors import FognnError
from fognn.utils.files import sha256_of, user_path

__all__ = ["Check", "Verification", "add_to_ledger", "kept_name", "verify", "weights_beside"]

FOLD = 1  # the fold whose weights are kept, of a run over folds
# What no other training of the same run has in common with it.
_FIGURES = ("train", "val", "test", "epochs", "seconds")
_ERRORS = (FognnError, ValueError, KeyError, OSError, RuntimeError, ImportError)


def add_to_ledger(
    run: Run, folder: Path, results: Path, weights: str | Path | None = None
) -> LedgerEntry:
    r"""Adds a finished run to the ledger of its table. If it is trained by its row's own protocol
    on all of the data, and no line with a lower seed has weights, also keeps its weights.

    Without the checkpoint of that epoch in the run folder, the line has no weights. If the process
    is killed between the two files, the same call repairs the line.
    """
    entry = ledger_entry(run, folder)
    place = weights_beside(results) if weights is None else user_path(weights)
    file = place / f"{kept_name(entry)}{SUFFIX}"

    def change(lines: list[LedgerEntry]) -> list[LedgerEntry]:
        before = next((line for line in lines if line.key == entry.key), None)
        same = before is not None and all(
            before.result.get(name) == entry.result.get(name) for name in _FIGURES
        )
        # A copied run folder is as new as the copy.
        new = before if before is not None and same else entry
        if not isinstance(run, TableRun) or not run.keeps_weights:
            return [new]
        if new.weights and file.is_file() and sha256_of(file) == new.weights:
            return [new]
        row = (entry.row, entry.variant)
        holders = [line for line in lines if line.weights and (line.row, line.variant) == row]
        if any(line.seed < entry.seed for line in holders):
            return [new.with_weights(None)]
        checksum = _write(file, entry, folder)
        if checksum is None and before in holders and not same:
            file.unlink(missing_ok=True)  # of the earlier training
        if checksum is None:
            return [new]
        others = [line.with_weights(None) for line in holders if line.key != entry.key]
        return [new.with_weights(checksum), *others]

    ledger_of(run.table, results).change(change)
    return entry


def weights_beside(results: str | Path) -> Path:
    r"""Returns the default folder of the weights: ``weights``, beside the folder of the ledgers, so
    that ledgers in another folder have their own weights."""
    return user_path(results).absolute().with_name("weights")


def kept_name(entry: LedgerEntry) -> str:
    r"""Returns the name of the weights of a run, such as ``"zinc/gcn+fog"``: its key without the
    seed."""
    return entry.key.removesuffix(f"-seed{entry.seed}")


def _write(file: Path, entry: LedgerEntry, folder: Path) -> str | None:
    r"""Writes the weights of a run and returns their checksum; :obj:`None` if it has no usable
    checkpoint."""
    folds = entry.result.get("folds") or []
    at = TABLES[entry.table].at
    checkpoint = (folder / f"fold-{FOLD}" if folds else folder) / f"{at}.ckpt"
    if not checkpoint.exists():
        return None
    result = folds[FOLD - 1] if folds else entry.result
    epoch = result["epochs"] if at == "last" else result["best_epoch"]
    try:
        content = read_checkpoint(checkpoint)
        net, config, task = rebuild(content)  # raises for a network of another version
        # The checkpoint of the best epoch has no state of the training.
        found = len(content["state"]["history"]) if at == "last" else content["epoch"]
        if found != epoch:
            raise ValueError(f"{checkpoint} must be of epoch {epoch}, the {at} one, got {found}")
    except _ERRORS as error:
        warnings.warn(f"{entry.key}: its weights are not kept: {error}", stacklevel=2)
        return None
    fields = None if task is None else task.to_dict()
    settings = portable(config).to_dict()
    write_weights(file, Weights(entry.key, entry.seed, epoch, settings, fields, net.state_dict()))
    return sha256_of(file)


@dataclass(frozen=True)
class Check:
    r"""The verification of the weights of one row: its figures over batches and over items in the
    ledger and here, and why they could not be measured, or differ."""

    name: str
    seed: int | None  # None if no line names the file
    digits: int  # with which tables show the figures
    ledger: tuple[float, ...]
    here: tuple[float, ...] = ()
    problem: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        r"""Whether the figures differ by at most half a unit of the last printed digit."""
        return not self.problem and all(
            abs(one - other) <= 0.5 * 10**-self.digits
            for one, other in zip(self.ledger, self.here, strict=True)
        )

    @property
    def outcome(self) -> str:
        r"""``"ok"``, ``"DIFFERS"``, or the problem."""
        return self.problem or ("ok" if self.ok else f"DIFFERS{self.note}")


@dataclass(frozen=True)
class Verification:
    r"""The weights of some tables: the ledger lines that name a file, files that no line names, and
    the names of measured rows that have no weights, although they should."""

    entries: tuple[LedgerEntry, ...]
    weights: Path
    unnamed: tuple[Path, ...]
    without: tuple[str, ...]
    data: Path | None = None
    device: str = "auto"

    @property
    def names(self) -> list[str]:
        r"""The names of the weights, and of files that no line names, as in :meth:`checks`."""
        unnamed = [path.relative_to(self.weights).as_posix() for path in self.unnamed]
        return [*map(kept_name, self.entries), *unnamed]

    def checks(self) -> Iterator[Check]:
        r"""Evaluates the networks one after another. A network that cannot be evaluated is a
        :class:`Check` with a problem."""
        for entry in self.entries:
            yield self._check(entry)
        for name in self.names[len(self.entries) :]:
            yield Check(name, None, 0, (), problem="no line of the ledger names this file")

    def _check(self, entry: LedgerEntry) -> Check:
        # Of a run over folds, the figures of the fold whose weights are kept.
        folds = entry.result.get("folds") or []
        result = next((fold for fold in folds if fold["fold"] == FOLD), entry.result)
        split = "val" if result["test"] is None else "test"
        overs = ("batches", "items")
        figures = tuple(result[split][TABLES[entry.table].at][over] for over in overs)
        check = Check(kept_name(entry), entry.seed, get_row(entry.row).digits, figures)
        file = self.weights / f"{check.name}{SUFFIX}"
        if not file.is_file():
            return replace(check, problem=f"{file} is missing")
        if sha256_of(file) != entry.weights:
            return replace(check, problem=f"{file}: its checksum is not that of the ledger")
        try:
            scores = evaluate(file, split, None, self.device, None, self.data)
        except _ERRORS as error:  # such as data that are not here
            return replace(check, problem=" ".join(f"not evaluated: {error}".split()))
        metric = entry.result["metric"]
        check = replace(check, here=tuple(scores[f"{metric}_{over}"] for over in overs))
        return check if check.ok else replace(check, note=self._other_data(entry))

    def _other_data(self, entry: LedgerEntry) -> str:
        r"""Returns a note if the data of the training were others than those here."""
        folder = {} if self.data is None else {"data.folder": str(self.data)}
        there = entry.result.get("fingerprint")
        try:
            here = data_fingerprint(entry.run.with_values(folder))
        except _ERRORS:  # such as a training split that is not here
            return ""
        return "" if here == there else f", with other data: fingerprint {here} and not {there}"


def verify(
    tables: Sequence[str] | None = None,
    results: str | Path = "results",
    weights: str | Path | None = None,
    data: str | Path | None = None,
    device: str = "auto",
) -> Verification:
    r"""Finds the kept weights of tables, and compares the files with the ledgers.
    :meth:`Verification.checks` evaluates them.

    Args:
        tables (list, optional): Some of :obj:`fognn.experiments.rows.TABLES`.
            (default: all of them, and all files in the folder of the weights)
        results (str, optional): The folder of the ledgers. (default: :obj:`"results"`)
        weights (str, optional): The folder of the weights.
            (default: ``weights`` beside ``results``)
        data (str, optional): The folder with the files of the datasets. (default: :obj:`None`)
        device (str, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`"auto"`)
    """
    for table in tables or ():
        checks.known("verify", "table", table, TABLES)
    results = readable(user_path(results))
    if not results.is_dir():
        raise ValueError(f"verify: results must be a folder with ledgers, got {str(results)!r}")
    place = weights_beside(results) if weights is None else user_path(weights)
    entries: list[LedgerEntry] = []
    without: list[str] = []
    for table in dict.fromkeys(TABLES if tables is None else tables):
        lines = ledger_of(table, results).entries()
        kept = [line for line in lines if line.weights]
        names = set(map(kept_name, kept))
        entries += kept
        own = [kept_name(line) for line in lines if line.table_run.keeps_weights]
        without += dict.fromkeys(name for name in own if name not in names)
    named = {place / f"{kept_name(entry)}{SUFFIX}" for entry in entries}
    folders = [place] if tables is None else [place / table for table in tables]
    unnamed = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path not in named and not path.name.startswith(".")
    )
    folder = None if data is None else user_path(data)
    return Verification(tuple(entries), place, tuple(unnamed), tuple(without), folder, device)
