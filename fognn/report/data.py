r"""The output of ``fognn data``: all datasets, one dataset of the paper, or the user's data."""

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

from fognn.data.catalog import CATALOG, DatasetInfo, where
from fognn.data.molecules import is_csv, read_molecules
from fognn.data.opening import open_user_data
from fognn.data.pyg_datasets import PREFIX
from fognn.data.statistics import count, describe, joined, statistics
from fognn.report.drawings import draw
from fognn.report.forms import text_table


def report_datasets(data: str | Path | None = None) -> str:
    r"""Returns the table of all datasets, and whether they are here."""
    header = ("name", "task", "size", "licence", "source", "here?")
    rows = [(e.name, e.task, e.size, e.licence, e.origin, where(e, data)) for e in CATALOG]
    return text_table(header, rows)


def report_dataset(
    entry: DatasetInfo,
    split: str | None = None,
    data: str | Path | None = None,
    picture: Path | None = None,
) -> Iterator[str]:
    r"""Gives the statistics of a dataset beside the published ones, and draws some of it."""
    known = entry.splits or ("all",)
    if split is not None and split not in known:
        raise ValueError(f"split of {entry.name} must be one of {', '.join(known)}, got {split!r}")
    chosen = (split,) if split else known
    # PATTERN and TSP are large: one split at a time.
    counts = [count(entry.open(name if entry.splits else None, data)) for name in chosen]
    columns = {name: statistics(found) for name, found in zip(chosen, counts, strict=True)}
    if chosen == known:
        columns["all"] = statistics(joined(counts))
    header, rows = _table(entry, columns)
    yield f"{entry.name}: {entry.task}"
    yield text_table(header, rows, right=range(1, len(header)))
    yield f"published: {entry.publication}"
    if entry.note:
        yield f"note: {entry.note}"
    if picture is not None:
        first = entry.open(chosen[0] if entry.splits else None, data)
        draw(picture, entry.kind, f"{entry.name}, {chosen[0]}", first)
        yield f"drawn: {picture}"


def report_user_data(
    name: str,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    skip_bad: bool = False,
    data: str | Path | None = None,
    picture: Path | None = None,
) -> Iterator[str]:
    r"""Describes the user's data, and draws some of the graphs."""
    found: dict[str, Any]
    if is_csv(name) and target_column is None:
        table = read_molecules(name, smiles_column, skip_bad=skip_bad)
        graphs, found = table.graphs, dict(statistics(count(table.graphs)))
        yield from (f"skipped line {bad.line}: {bad.reason}" for bad in table.bad)
        yield "--target-column names the column to learn, which is then described, too"
    else:
        opened = open_user_data(
            name, smiles=smiles_column, target=target_column, skip_bad=skip_bad, folder=data
        )
        found = describe(opened)
        graphs = [copy(graph) for graph in opened.graphs]
        for graph, text in zip(graphs, opened.smiles, strict=False):
            graph.smiles = text
        yield from opened.notes
    title = name if name.startswith(PREFIX) else Path(name).name
    yield text_table(["statistic", title], statistics_rows(found), right=[1])
    if picture is not None:
        kind = "molecule" if graphs[0].get("smiles") is not None else "network"
        draw(picture, kind, title, graphs)
        yield f"drawn: {picture}"


def statistics_rows(found: dict[str, Any]) -> list[list[str]]:
    r"""Returns a row of texts for each statistic of :func:`fognn.data.statistics.describe`."""
    return [[key, v if isinstance(v, str) else _number(v)] for key, v in found.items()]


def _number(value: float, digits: int = 4) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def _table(
    entry: DatasetInfo, columns: dict[str, dict[str, float]]
) -> tuple[list[str], list[list[str]]]:
    r"""Returns a row for each statistic; behind each split with published numbers, these."""
    header = ["statistic"]
    for split in columns:
        header += [split, "published"] if split in entry.published else [split]
    rows = []
    for statistic in dict.fromkeys(name for column in columns.values() for name in column):
        row = [statistic]
        for split, column in columns.items():
            printed = entry.published.get(split, {}).get(statistic, "")
            digits, value = len(printed.partition(".")[2]), column.get(statistic)
            row.append("" if value is None else _number(value, digits or 4))
            if split in entry.published:
                row.append(f"{float(printed):,.{digits}f}" if printed else "")
        rows.append(row)
    return header, rows
