r"""The report of ``fognn data``: all datasets, one dataset, or a csv file of molecules."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from fognn.data.catalog import CATALOG, DatasetInfo, where
from fognn.data.few_shot import ImageSet
from fognn.data.smiles_csv import column_names, read_molecules
from fognn.data.statistics import count, count_graphs
from fognn.report.drawings.drawing import Drawing, check_output, save_drawing
from fognn.report.drawings.page import table_html
from fognn.report.drawings.plots import pyplot
from fognn.report.text import number, text_table
from fognn.utils.files import user_path

__all__ = ["DrawOptions", "report_csv", "report_dataset", "report_datasets"]

_IMAGES = 8  # of each class
_BAD_LINES = 10  # that are named one by one


@dataclass(frozen=True)
class DrawOptions:
    r"""The number of items to draw, and the file to write.

    Args:
        many (int, optional): The number of graphs, or of classes of images; 0 for no drawing.
            (default: :obj:`8`)
        output (Path, optional): The file. (default: a PNG with the name of the dataset in the
            current folder, if matplotlib is installed)
        seed (int, optional): The seed that chooses the items. (default: :obj:`0`)
    """

    many: int = 8
    output: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.many < 0:
            raise ValueError(f"DrawOptions: many must be at least 0, got {self.many}")
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"DrawOptions: seed must be in [0, 2**64), got {self.seed}")
        if self.output is not None:
            check_output(self.output)
            if self.many:
                pyplot()  # a missing package raises before the work


def report_datasets(data: str | Path | None = None) -> str:
    r"""The table of all datasets, and whether they are here.

    Args:
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    header = ("name", "task", "size", "licence", "source", "here?")
    rows = [(e.name, e.task, e.size, e.licence, e.origin, where(e, data)) for e in CATALOG]
    return text_table(header, rows)


def report_dataset(
    entry: DatasetInfo,
    split: str | None = None,
    data: str | Path | None = None,
    draw: DrawOptions | None = None,
) -> Iterator[str]:
    r"""Gives the statistics of a dataset beside the published ones, then draws a few graphs.

    Each part of the text is given as soon as it is ready.

    Args:
        entry (DatasetInfo): The dataset.
        split (str, optional): One split only. (default: all)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        draw (DrawOptions, optional): The drawing. (default: no drawing)
    """
    known = entry.splits or ("all",)
    if split is not None and split not in known:
        raise ValueError(f"split of {entry.name} must be one of {', '.join(known)}, got {split!r}")
    chosen = (split,) if split else known
    if where(entry, data, chosen) == "generated":
        yield f"{entry.name} is not in the cache yet: it is generated now, which takes seconds."
    columns: dict[str, dict[str, float]] = {}
    total: Any = None
    items: list[Any] = []
    captions: list[str] = []
    for name in chosen:
        dataset = entry.open(name if entry.splits else None, data)
        counts = count(dataset)
        columns[name] = counts.statistics()
        total = counts if total is None else total + counts
        if draw is not None and draw.many and name == chosen[0]:
            items, captions = _choose(dataset, draw.many, draw.seed)
        # PATTERN and TSP are large: one split at a time.
        del dataset
    if chosen == known:
        columns["all"] = total.statistics()
    header, rows = _table(entry, columns)
    yield f"{entry.name}: {entry.task}"
    yield text_table(header, rows, right=range(1, len(header)))
    yield from (f"published: {source}" for source in dict.fromkeys(f.source for f in entry.facts))
    if entry.note:
        yield f"note: {entry.note}"
    if draw is not None and draw.many:
        title = f"{entry.name}, {chosen[0]}" if entry.splits else entry.name
        drawing = Drawing(entry.kind, title, captions, items)
        stem = entry.name.lower() if split is None else f"{entry.name.lower()}-{split}"
        yield from _draw(drawing, draw, stem, table_html(header, rows))


def report_csv(
    path: str | Path,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    skip_bad: bool = False,
    draw: DrawOptions | None = None,
) -> Iterator[str]:
    r"""Gives the statistics of a user's molecules, then draws a few of them.

    Args:
        path (str or Path): A csv file with a header.
        smiles_column (str, optional): The column of the SMILES strings.
            (default: :obj:`"smiles"`)
        target_column (str, optional): The column to learn, or several with commas between them.
            (default: :obj:`None`)
        skip_bad (bool, optional): Whether to skip lines that give no graph; if not, the first of
            them raises a :class:`ValueError`. (default: :obj:`False`)
        draw (DrawOptions, optional): The drawing. (default: no drawing)
    """
    path = user_path(path)
    with warnings.catch_warnings():
        # Said below, with each of the lines.
        warnings.filterwarnings("ignore", ".* lines were skipped", UserWarning)
        columns = column_names(path, target_column) if target_column is not None else ()
        found = read_molecules(path, smiles_column, columns, skip_bad=skip_bad)
    graphs, bad = found.graphs, found.bad
    if not graphs:
        raise ValueError(f"{path} must hold a molecule that can be read, it holds none")
    for line in bad[:_BAD_LINES]:
        yield f"skipped line {line.line}: {line.reason}"
    if len(bad) > _BAD_LINES:
        yield f"... and {len(bad) - _BAD_LINES:,} more"
    if bad:
        yield f"{len(bad):,} of {len(bad) + len(graphs):,} lines were skipped"
    if found.targets is not None:
        yield f"target {found.targets}"
    if found.unlabelled:
        yield f"{found.unlabelled:,} molecules without a target are left out"
    statistics = count_graphs(graphs).statistics()
    header = ("statistic", path.name)
    rows = [(name, number(value)) for name, value in statistics.items()]
    yield text_table(header, rows, right=[1])
    if draw is not None and draw.many:
        items, captions = _choose(graphs, draw.many, draw.seed, _molecule_caption)
        drawing = Drawing("molecule", path.name, captions, items)
        yield from _draw(drawing, draw, path.stem, table_html(header, rows))


def _table(
    entry: DatasetInfo, columns: dict[str, dict[str, float]]
) -> tuple[list[str], list[list[str]]]:
    r"""A row for each statistic; behind each split that has published numbers, these."""
    facts = {(fact.split, fact.statistic): fact for fact in entry.facts}
    published = {split for split, _ in facts}
    header = ["statistic"]
    for split in columns:
        header += [split, "published"] if split in published else [split]
    rows = []
    for statistic in dict.fromkeys(name for column in columns.values() for name in column):
        row = [statistic]
        for split, column in columns.items():
            fact, value = facts.get((split, statistic)), column.get(statistic)
            digits = fact.digits if fact and fact.digits else 4
            row.append("" if value is None else number(value, digits))
            if split in published:
                row.append("" if fact is None else f"{fact.value:,.{fact.digits}f}")
        rows.append(row)
    return header, rows


def _choose(
    dataset: Any, many: int, seed: int, caption: Callable[[int, Data], str] | None = None
) -> tuple[list[Any], list[str]]:
    generator = torch.Generator().manual_seed(seed)
    if isinstance(dataset, ImageSet):
        classes = torch.randperm(len(dataset.classes), generator=generator)[:many].tolist()
        members = [(dataset.labels == label).nonzero()[:_IMAGES, 0] for label in classes]
        return [dataset.read(m) for m in members], [dataset.classes[label] for label in classes]
    chosen = torch.randperm(len(dataset), generator=generator)[:many].sort().values.tolist()
    graphs = [dataset[index] for index in chosen]
    say = caption or _caption
    return graphs, [say(i, graph) for i, graph in zip(chosen, graphs, strict=True)]


def _caption(index: int, graph: Data) -> str:
    caption = f"graph {index:,}: {graph.num_nodes} nodes"
    if graph.y.numel() != 1:
        return caption
    label = f"y = {graph.y.item():.3f}" if graph.y.is_floating_point() else f"class {int(graph.y)}"
    return f"{caption}, {label}"


def _molecule_caption(index: int, graph: Data) -> str:
    # As long as it is: a panel or a page shortens it to its own width.
    if "y" not in graph:
        return str(graph.smiles)
    values = ["–" if value != value else f"{value:.4g}" for value in graph.y.flatten().tolist()]
    return f"{graph.smiles}, y = {', '.join(values)}"


def _draw(drawing: Drawing, draw: DrawOptions, stem: str, table: str) -> Sequence[str]:
    try:
        path = save_drawing(drawing, draw.output or Path(f"{stem}.png"), table)
    except ImportError as error:
        # Without -o, the statistics do not need a drawing.
        if draw.output is not None:
            raise
        return [f"nothing is drawn: {error}"]
    return [f"drawn: {path}"]
