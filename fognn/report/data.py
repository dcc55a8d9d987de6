r"""The output of ``fognn data``: all datasets, one dataset of the paper, or the user's data; and
pictures of a few of its graphs, molecules or images."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx, to_rdmol

from fognn.data.catalog import CATALOG, DatasetInfo, where
from fognn.data.images import ImageSet
from fognn.data.molecules import ATOM_COLUMNS, ATOMS, is_csv, read_molecules
from fognn.data.opening import open_user_data
from fognn.data.pyg_datasets import PREFIX
from fognn.data.statistics import count, describe, joined, statistics
from fognn.report.forms import text_table
from fognn.utils.files import write_whole

_COUNT, _COLUMNS = 8, 4  # items of a picture, graphs side by side
_MOST_ATOMS = 500  # RDKit takes minutes to place some thousands of atoms in rings
Save = Callable[[Path], Any]  # writes a picture to a file


def report_datasets(data: Path | None) -> str:
    r"""Returns the table of all datasets, and whether they are here."""
    header = ("name", "task", "size", "licence", "source", "here?")
    rows = [(e.name, e.task, e.size, e.licence, e.origin, where(e, data)) for e in CATALOG]
    return text_table(header, rows)


def report_dataset(
    entry: DatasetInfo, split: str | None, data: Path | None, picture: Path | None
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


def report_user_data(name: str, how: dict[str, Any], picture: Path | None) -> Iterator[str]:
    r"""Describes the user's data, opened with the arguments :obj:`how`, and draws some graphs."""
    found: dict[str, Any]
    if is_csv(name) and how["target"] is None:
        table = read_molecules(name, how["smiles"], skip_bad=how["skip_bad"])
        graphs, found = table.graphs, dict(statistics(count(table.graphs)))
        yield from (f"skipped line {bad.line}: {bad.reason}" for bad in table.bad)
        yield "--target-column names the column to learn, which is then described, too"
    else:
        opened = open_user_data(name, **how)
        graphs, found = opened.graphs, describe(opened)
        if picture is not None and opened.smiles:
            pairs = zip(graphs, opened.smiles, strict=True)
            graphs = [copy(graph).update({"smiles": text}) for graph, text in pairs]
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


def check_picture(path: Path) -> None:
    r"""Raises unless a file is a picture by its suffix."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"output must end in .png, got {str(path)!r}")


def draw(path: Path, kind: str, title: str, dataset: Any) -> None:
    r"""Draws some graphs of a dataset, or images of some classes, always the same, to a file."""
    generator = torch.Generator().manual_seed(0)
    count = len(dataset.classes) if isinstance(dataset, ImageSet) else len(dataset)
    chosen = torch.randperm(count, generator=generator)[:_COUNT].sort().values.tolist()
    if isinstance(dataset, ImageSet):
        members = [(dataset.labels == label).nonzero()[:_COUNT, 0] for label in chosen]
        save = _images(title, [dataset.read(some) for some in members])
    else:
        graphs, captions = [dataset[number] for number in chosen], [f"graph {n:,}" for n in chosen]
        for number, graph in enumerate(graphs):
            if graph.get("y") is not None and graph.y.numel() == 1:
                captions[number] += f", y = {graph.y.item():.4g}"
        if kind == "molecule":
            save = _molecules(graphs, captions)
        else:
            save = _graphs(kind, title, graphs, captions)
    with write_whole(path) as temporary:
        save(temporary)


def _molecules(graphs: Sequence[Data], captions: Sequence[str]) -> Save:
    try:
        from rdkit import Chem as chem  # noqa: N813
        from rdkit.Chem.Draw import MolsToGridImage
    except ImportError as error:
        raise ImportError('drawings need RDKit: pip install "fognn[chem]"') from error

    found = [_molecule(graph, chem) for graph in graphs]
    drawn = [one if one.GetNumAtoms() <= _MOST_ATOMS else chem.Mol() for one in found]
    looks = {"molsPerRow": _COLUMNS, "subImgSize": (400, 360), "returnPNG": False}
    return MolsToGridImage(drawn, legends=captions, **looks).save


def _molecule(graph: Data, chem: Any) -> Any:
    r"""Returns the molecule of a graph with SMILES, PyG's atom features or the tokens of ZINC."""
    if graph.get("smiles") is not None:
        return chem.MolFromSmiles(graph.smiles)
    if graph.x.dim() == 2 and graph.x.size(1) == len(ATOM_COLUMNS):
        return to_rdmol(graph)
    molecule = chem.RWMol()
    for token in graph.x.flatten().tolist():
        symbol, *rest = ATOMS[token].split()
        atom = chem.Atom(symbol)
        for part in rest:
            if part.startswith("H"):
                atom.SetNumExplicitHs(int(part[1:]))
            else:
                atom.SetFormalCharge(1 if part == "+" else -1)
        molecule.AddAtom(atom)
    for (u, v), bond in zip(graph.edge_index.t().tolist(), graph.edge_attr.tolist(), strict=True):
        if u < v:
            molecule.AddBond(u, v, chem.BondType.values[bond])
    molecule.UpdatePropertyCache(strict=False)
    chem.SanitizeMol(molecule, catchErrors=True)  # a graph can hold what chemistry forbids
    return molecule.GetMol()


def _graphs(kind: str, title: str, graphs: Sequence[Data], captions: Sequence[str]) -> Save:
    import networkx as nx

    figure, axes = _figure(title, -(-len(graphs) // _COLUMNS), _COLUMNS, 3.2)
    for axis, graph, caption in zip(axes.flat, graphs, captions, strict=False):
        net: Any = to_networkx(graph, to_undirected=True)
        color: Any = "#0072B2"
        if kind == "tour":
            place = dict(enumerate(graph.x.tolist()))
        elif kind in ("pattern", "cluster"):  # on a circle by label, which is the colour
            place = nx.circular_layout(graph.y.argsort(stable=True).tolist())
            color = [f"C{label}" for label in graph.y.tolist()]
        else:
            place = nx.spring_layout(net, seed=0)
        nx.draw_networkx_nodes(net, place, node_size=15, node_color=color, ax=axis)
        dense = net.number_of_edges() > 10 * net.number_of_nodes()
        nx.draw_networkx_edges(net, place, ax=axis, width=0.5, alpha=0.06 if dense else 0.4)
        if kind == "tour":
            tour = graph.edge_index[:, graph.y == 1].t().tolist()
            nx.draw_networkx_edges(net, place, tour, ax=axis, width=1.3, edge_color="#D55E00")
        axis.set_title(caption, fontsize=9)
    return figure.savefig


def _images(title: str, classes: Sequence[torch.Tensor]) -> Save:
    r"""Draws a row for each class."""
    figure, axes = _figure(title, len(classes), max(map(len, classes)), 1.3)
    for row, images in zip(axes, classes, strict=True):
        for axis, image in zip(row, images, strict=False):
            # Ink is 1 where there is one channel, and ink is dark.
            axis.imshow(image.permute(1, 2, 0).squeeze(-1).clamp(0, 1), cmap="gray_r")
    return figure.savefig


def _figure(title: str, rows: int, columns: int, size: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('drawings need matplotlib: pip install "fognn[chem]"') from error
    figure = Figure((columns * size, rows * size + 0.5), layout="tight")
    figure.suptitle(title)
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    return figure, axes
