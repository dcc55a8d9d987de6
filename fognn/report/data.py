r"""The output of ``fognn data``: all datasets, one dataset of the paper, or the user's data."""

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from fognn.data.catalog import CATALOG, DatasetInfo, where
from fognn.data.images import ImageSet
from fognn.data.opening import open_user_data
from fognn.data.pyg_datasets import PREFIX
from fognn.data.smiles_csv import is_csv, read_molecules
from fognn.data.statistics import count, describe, joined, statistics
from fognn.report.drawings import check_picture, save_drawing
from fognn.report.forms import text_table

_IMAGES = 8  # of each class
_DRAWN = 500  # nodes of a graph that is drawn without -o


def report_datasets(data: str | Path | None = None) -> str:
    r"""Returns the table of all datasets, and whether they are here."""
    header = ("name", "task", "size", "licence", "source", "here?")
    rows = [(e.name, e.task, e.size, e.licence, e.origin, where(e, data)) for e in CATALOG]
    return text_table(header, rows)


def report_dataset(
    entry: DatasetInfo,
    split: str | None = None,
    data: str | Path | None = None,
    draw: int = 0,
    output: Path | None = None,
) -> Iterator[str]:
    r"""Gives the statistics of a dataset beside the published ones, then draws a few graphs."""
    if output is not None:
        check_picture(output)
    known = entry.splits or ("all",)
    if split is not None and split not in known:
        raise ValueError(f"split of {entry.name} must be one of {', '.join(known)}, got {split!r}")
    chosen = (split,) if split else known
    columns: dict[str, dict[str, float]] = {}
    counts = []
    items: Sequence[Any] = []
    captions: list[str] = []
    for name in chosen:
        dataset = entry.open(name if entry.splits else None, data)
        counts.append(count(dataset))
        columns[name] = statistics(counts[-1])
        if name == chosen[0]:
            items, captions = _choose(dataset, draw)
        del dataset  # PATTERN and TSP are large: one split at a time
    if chosen == known:
        columns["all"] = statistics(joined(counts))
    header, rows = _table(entry, columns)
    yield f"{entry.name}: {entry.task}"
    yield text_table(header, rows, right=range(1, len(header)))
    yield f"published: {entry.publication}"
    if entry.note:
        yield f"note: {entry.note}"
    if draw:
        stem = entry.name.lower() if split is None else f"{entry.name.lower()}-{split}"
        path = output or Path(f"{stem}.png")
        title = f"{entry.name}, {chosen[0]}" if entry.splits else entry.name
        save_drawing(path, entry.kind, title, items, captions, header, rows)
        yield f"drawn: {path}"


def report_user_data(
    name: str,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    skip_bad: bool = False,
    data: str | Path | None = None,
    draw: int = 0,
    output: Path | None = None,
) -> Iterator[str]:
    r"""Describes the user's data, then draws a few of the graphs."""
    if output is not None:
        check_picture(output)
    title = name if name.startswith(PREFIX) else Path(name).name
    found: dict[str, Any]
    if is_csv(name) and target_column is None:
        table = read_molecules(name, smiles_column, skip_bad=skip_bad)
        graphs, notes = table.graphs, [f"skipped line {b.line}: {b.reason}" for b in table.bad]
        found = dict(statistics(count(graphs)))
        notes.append("--target-column names the column to learn, which is then described, too")
    else:
        opened = open_user_data(
            name, smiles=smiles_column, target=target_column, skip_bad=skip_bad, folder=data
        )
        graphs, notes, found = list(map(copy, opened.graphs)), opened.notes, describe(opened)
        for graph, text in zip(graphs, opened.smiles, strict=False):
            graph.smiles = text
    yield from notes
    header, rows = ["statistic", title], statistics_rows(found)
    yield text_table(header, rows, right=[1])
    small = max(graph.num_nodes or 0 for graph in graphs) <= _DRAWN
    if draw and (small or output):
        items, captions = _choose(graphs, draw)
        path = output or Path(
            f"{title.removeprefix(PREFIX).replace('/', '-').partition('.')[0]}.png"
        )
        kind = "molecule" if "smiles" in graphs[0] else "network"
        save_drawing(path, kind, title, items, captions, header, rows)
        yield f"drawn: {path}"


def statistics_rows(found: dict[str, Any]) -> list[list[str]]:
    r"""Returns a row of texts for each statistic of :func:`fognn.data.statistics.describe`."""
    return [
        [key, value if isinstance(value, str) else _number(value)] for key, value in found.items()
    ]


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


def _choose(dataset: Any, draw: int) -> tuple[Sequence[Any], list[str]]:
    r"""Returns some graphs, or the images of some classes, and their captions."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(dataset, ImageSet):
        classes = torch.randperm(len(dataset.classes), generator=generator)[:draw].tolist()
        members = [(dataset.labels == label).nonzero()[:_IMAGES, 0] for label in classes]
        return [dataset.read(m) for m in members], [dataset.classes[label] for label in classes]
    chosen = torch.randperm(len(dataset), generator=generator)[:draw].sort().values.tolist()
    graphs = [dataset[index] for index in chosen]
    return graphs, [_caption(index, graph) for index, graph in zip(chosen, graphs, strict=True)]


def _caption(index: int, graph: Data) -> str:
    text = f"graph {index:,}, {graph.num_nodes} nodes"
    if graph.get("y") is None or graph.y.numel() > 3:
        return text
    return f"{text}, y = {', '.join(f'{value:.4g}' for value in graph.y.flatten().tolist())}"
