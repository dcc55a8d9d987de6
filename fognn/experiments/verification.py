r"""Verification of the kept weights: each network is evaluated again and compared with its line of
the ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fognn.experiments.keep import FOLD, kept_name, weights_beside
from fognn.experiments.ledger import LedgerEntry, ledger_of, readable
from fognn.experiments.rows import TABLES, get_row
from fognn.models.weights import SUFFIX
from fognn.training import evaluate
from fognn.training.data import data_fingerprint
from fognn.utils import checks
from fognn.utils.errors import FognnError
from fognn.utils.files import sha256_of, user_path

__all__ = ["Check", "Verification", "verify"]

_ERRORS = (FognnError, ValueError, OSError, ImportError)


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
        r"""The names of the weights, and of files that no line names, in the order of
        :meth:`checks`."""
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
        split, figures = _figures(entry)
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
        check = replace(check, here=tuple(scores[f"{metric}_{o}"] for o in ("batches", "items")))
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


def _figures(entry: LedgerEntry) -> tuple[str, tuple[float, float]]:
    r"""Returns the split of a run's figures, and the figures over batches and over items at the
    epoch whose weights are kept; for a run over folds, those of the fold whose weights are kept."""
    folds = entry.result.get("folds") or []
    scores = next((fold for fold in folds if fold["fold"] == FOLD), entry.result)
    split = "val" if scores["test"] is None else "test"
    kept = scores[split][TABLES[entry.table].at]
    return split, (kept["batches"], kept["items"])
