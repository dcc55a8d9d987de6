r"""The data of the site: the ledgers beside the paper's rows, and the path of each run's page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from fognn.experiments.compared import chosen_entries, table_of
from fognn.experiments.comparison import compare
from fognn.experiments.ledger import COMPARE, Ledger, LedgerEntry, ledger_of
from fognn.experiments.rows import rows_of
from fognn.experiments.search import Choice, choices_of, table_entries
from fognn.experiments.table_line import TableLine
from fognn.experiments.tables import TABLES, label_of

__all__ = [
    "AT",
    "OVER",
    "RUNS",
    "Measurements",
    "host_of",
    "name_of",
    "read_measurements",
    "run_link",
    "run_page",
]

# Of runs in no table, as in most of the paper's: the last epoch, the mean of the batches.
AT, OVER = "last", "batches"
RUNS = "runs"  # the ledger of runs that are in no table
_NAME = re.compile(r"[a-z0-9][a-z0-9+._=-]*")


@dataclass(frozen=True)
class Measurements:
    r"""All tables of the paper and of our own, measured or not, and the other runs.

    Args:
        tables (dict): The lines of each table, by its name.
        runs (sequence of LedgerEntry, optional): The runs that are in no table.
            (default: none)
        comparisons (dict, optional): The runs of each comparison on other data, and its searches,
            by its name. (default: none)
    """

    tables: dict[str, list[TableLine]]
    runs: Sequence[LedgerEntry] = ()
    comparisons: Mapping[str, tuple[Sequence[LedgerEntry], Sequence[Choice]]] = field(
        default_factory=dict
    )

    def find(self, path: str) -> TableLine:
        r"""The line of a row of the paper, by its path: see
        :class:`~fognn.report.claims.Claim`.

        Where there are runs with the paper's own settings and runs with searched ones, it is the
        line of the former.
        """
        table, dataset, model, *parameters = path.split("/")
        found = [
            line
            for line in self.tables.get(table, [])
            if (line.paper.dataset, line.paper.model) == (dataset, model)
            and parameters in ([], [str(line.paper.params)])
            and line.paper_mean is not None
        ]
        if len({line.row for line in found}) != 1:
            raise ValueError(f"path must name one row of the paper, got {path!r}")
        return next((line for line in found if line.entries), found[0])

    def entries(self) -> Iterator[LedgerEntry]:
        r"""All runs of the tables."""
        for lines in self.tables.values():
            for line in lines:
                yield from line.entries


def read_measurements(results: Path) -> Measurements:
    r"""Reads the ledgers of all tables and of the other runs.

    Args:
        results (Path): The folder of ``zinc.jsonl`` and the other ledgers. A ledger that does not
            exist has no runs.
    """
    if not results.is_dir():
        raise ValueError(f"results must be a folder with ledgers, there is no folder {results}")
    tables = {table: compare(table, table_entries(results, table)) for table in TABLES}
    others = Ledger(results / f"{RUNS}.jsonl").entries()
    return Measurements(tables, others, read_comparisons(results))


def read_comparisons(results: Path) -> dict[str, tuple[list[LedgerEntry], list[Choice]]]:
    r"""Reads the runs of each comparison with the chosen learning rates, and its searches.

    Args:
        results (Path): The folder of the ledgers.
    """
    found = {}
    for file in sorted((results / COMPARE).glob("*.jsonl")):
        table = table_of(file.stem)
        choices = choices_of(table, results).read()
        entries = chosen_entries(ledger_of(table, results).entries(), choices)
        if entries:
            found[file.stem] = (entries, choices)
    return found


def run_page(entry: LedgerEntry) -> str:
    r"""The path of a run's page, relative to the front page."""
    if entry.table == RUNS:
        # Its key is DATA/NAME, and DATA may be the name of a user's file.
        return f"runs/other/{re.sub(r'[^A-Za-z0-9+_=.-]+', '-', entry.key).lstrip('.')}.html"
    table, _, name = entry.key.rpartition("/")
    if table != entry.table or not _NAME.fullmatch(name):
        raise ValueError(
            f"the ledger's key {entry.key!r} must be {entry.table}/ and a name of a-z, 0-9, +._=-"
        )
    return f"runs/{table}/{name}.html"


def run_link(entry: LedgerEntry) -> str:
    r"""The same as a relative URL."""
    return quote(run_page(entry))


def name_of(line: TableLine) -> str:
    r"""The name of the row among those of its own dataset."""
    row = line.paper
    if row.control:
        return label_of(row, "")
    alike = [
        other
        for other in rows_of(line.table)
        if (other.dataset, other.model) == (row.dataset, row.model)
    ]
    return label_of(row, "") if len(alike) > 1 else row.model


def host_of(line: TableLine, lines: Sequence[TableLine]) -> TableLine | None:
    r"""The line that it is compared with, seed by seed, if it is among ``lines``."""
    if line.paired is None:
        return None
    label = line.paired.host
    alike = (
        other
        for other in lines
        if other.label == label and other.paper.dataset == line.paper.dataset
    )
    return next(alike, None)
