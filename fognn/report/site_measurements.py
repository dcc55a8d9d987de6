r"""What the site shows: the ledgers beside the paper's rows."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from fognn.paper import config_of
from fognn.paper.comparison import compare
from fognn.paper.ledger import LedgerEntry
from fognn.paper.rows import rows
from fognn.paper.search import table_entries
from fognn.paper.table_line import TableLine
from fognn.paper.tables import TABLES, label_of
from fognn.report.metric import METRICS, Metric

__all__ = [
    "AT",
    "OVER",
    "Measurements",
    "host_of",
    "metric_of",
    "name_of",
    "read_measurements",
    "run_link",
    "run_page",
]

# As in the paper's own figures: the last epoch, the mean of the batches.
AT, OVER = "last", "batches"
_NAME = re.compile(r"[a-z0-9][a-z0-9+._=-]*")


@dataclass(frozen=True)
class Measurements:
    r"""All tables of the paper, measured or not.

    Args:
        tables (dict): The lines of each table, by its name.
    """

    tables: dict[str, list[TableLine]]

    def find(self, path: str) -> TableLine:
        r"""The line of a row of the paper, by its path: see
        :class:`~fognn.report.site_claims.Claim`.

        Of runs with the paper's own settings and runs with searched ones, it is the former.
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
        r"""All runs."""
        for lines in self.tables.values():
            for line in lines:
                yield from line.entries


def read_measurements(results: Path) -> Measurements:
    r"""Reads the ledgers of all tables.

    Args:
        results (Path): The folder of ``zinc.jsonl`` and the others; those that are not there
            have not been measured yet.
    """
    if not results.is_dir():
        raise ValueError(f"results must be a folder with ledgers, there is no folder {results}")
    return Measurements(
        {table: compare(table, table_entries(results, table), AT, OVER) for table in TABLES}
    )


def run_page(entry: LedgerEntry) -> str:
    r"""Where the page of a run is, from the front page."""
    table, _, name = entry.key.partition("/")
    if table != entry.table or not _NAME.fullmatch(name):
        raise ValueError(
            f"the ledger's key {entry.key!r} must be {entry.table}/ and a name of a-z, 0-9, +._=-"
        )
    return f"runs/{table}/{name}.html"


def run_link(entry: LedgerEntry) -> str:
    r"""The same as an address."""
    return quote(run_page(entry))


def metric_of(line: TableLine) -> Metric:
    r"""What a row is measured in."""
    return METRICS[config_of(line.paper).training.metric]


def name_of(line: TableLine) -> str:
    r"""What the paper's row is called among those of its own dataset."""
    row = line.paper
    alike = rows(row.table, row.dataset, row.model)
    return label_of(row, "") if len(alike) > 1 else row.model


def host_of(line: TableLine, lines: Sequence[TableLine]) -> TableLine | None:
    r"""The line that it is compared with, seed by seed."""
    if line.paired is None:
        return None
    label = line.paired.host
    return next(
        other
        for other in lines
        if other.label == label and other.paper.dataset == line.paper.dataset
    )
