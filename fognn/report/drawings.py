r"""Pictures of a dataset: a few of its graphs, molecules or images."""

import base64
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx, to_rdmol

from fognn.data.molecules import ATOM_COLUMNS, ATOMS
from fognn.report.pages import save_page
from fognn.report.text import shortened
from fognn.utils.files import write_whole

__all__ = ["KINDS", "check_picture", "save_drawing"]

KINDS = {
    "pattern": "Nodes coloured by label: which belong to the pattern?",
    "cluster": "Nodes coloured by label, the block; a ring marks the node whose block is given.",
    "molecule": "",
    "tour": "Edges of the tour in colour, other edges in grey.",
    "network": "The more neighbours, the larger the node.",
    "images": "A row for each class.",
}
_COLUMNS, _SIZE = 4, 3.2  # panels side by side, inches of each
_LETTERS = 44  # of a caption
_MOST_ATOMS = 500  # RDKit takes minutes to place some thousands of atoms in rings


def check_picture(path: Path) -> None:
    r"""Raises unless a file is a picture or a page by its suffix."""
    if path.suffix.lower() not in (".png", ".html"):
        raise ValueError(f"output must end in .png or .html, got {str(path)!r}")


def save_drawing(
    path: Path,
    kind: str,
    title: str,
    items: Sequence[Any],
    captions: Sequence[str],
    header: Sequence[str] = (),
    rows: Sequence[Sequence[str]] = (),
) -> None:
    r"""Draws graphs, molecules or images to a file.

    Args:
        path (Path): A ``.png``, or a ``.html`` page that needs no other file.
        kind (str): One of :obj:`KINDS`.
        title (str): The title.
        items (list): Graphs, or for :obj:`"images"` the images of each class, ``[N, C, H, W]``.
        captions (list): A caption for each item.
        header, rows (list, optional): A table for the page. (default: none)
    """
    check_picture(path)
    captions = [shortened(caption, _LETTERS) for caption in captions]
    picture = None
    if kind == "molecule":
        picture = _molecules(items, captions)
    if picture is None:
        picture = _panels(kind, title, items, captions)
    if path.suffix.lower() == ".png":
        with write_whole(path) as temporary:
            temporary.write_bytes(picture)
        return
    image = f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
    save_page(path, "data", title=title, note=KINDS[kind], image=image, header=header, rows=rows)


def _molecules(graphs: Sequence[Data], captions: Sequence[str]) -> bytes | None:
    r"""A PNG file by RDKit; :obj:`None` if it is not installed."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Draw import MolsToGridImage
    except ImportError:
        return None
    molecules, legends = [], list(captions)
    with rdBase.BlockLogs():
        for number, graph in enumerate(graphs):
            molecule = Chem.MolFromSmiles(graph.smiles) if "smiles" in graph else None
            molecule = _to_molecule(graph, Chem) if molecule is None else molecule
            if molecule.GetNumAtoms() > _MOST_ATOMS:
                legends[number] = f"{molecule.GetNumAtoms():,} atoms, too many to draw"
                molecule = Chem.Mol()
            molecules.append(molecule)
        image = MolsToGridImage(
            molecules,
            molsPerRow=min(_COLUMNS, len(molecules)),
            subImgSize=(400, 360),
            legends=legends,
            returnPNG=False,
        )
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def _to_molecule(graph: Data, chem: Any) -> Any:
    r"""The molecule of a graph with PyG's atom features, or with the tokens of ZINC."""
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
    bonds = (None, chem.BondType.SINGLE, chem.BondType.DOUBLE, chem.BondType.TRIPLE)
    for (u, v), bond in zip(graph.edge_index.t().tolist(), graph.edge_attr.tolist(), strict=True):
        if u < v:
            molecule.AddBond(u, v, bonds[bond])
    molecule.UpdatePropertyCache(strict=False)
    chem.SanitizeMol(molecule, catchErrors=True)  # a graph can hold what chemistry forbids
    return molecule.GetMol()


def _panels(kind: str, title: str, items: Sequence[Any], captions: Sequence[str]) -> bytes:
    r"""A PNG file by matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'drawings need matplotlib, which is not installed: pip install "fognn[train]"'
        ) from error
    images = kind == "images"
    columns = max(map(len, items)) if images else min(_COLUMNS, len(items))
    rows, size = -(-len(items) // (1 if images else columns)), 1.3 if images else _SIZE
    figure = Figure((max(columns * size, 6), rows * (size + 0.25) + 0.5), dpi=110, layout="tight")
    figure.suptitle(title, x=0.02, ha="left", fontweight="bold")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for number, (item, caption) in enumerate(zip(items, captions, strict=True)):
        if images:
            axes[number, 0].set_title(caption, fontsize=9, loc="left")
            for axis, image in zip(axes[number], item, strict=False):
                # Ink is 1 where there is one channel, and ink is dark.
                axis.imshow(image.permute(1, 2, 0).squeeze(-1).clamp(0, 1), cmap="gray_r")
        else:
            axis = axes.flat[number]
            axis.set_title(caption, fontsize=9, loc="left")
            _draw_graph(axis, kind, item)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw_graph(axis: Any, kind: str, graph: Data) -> None:
    from matplotlib.collections import LineCollection

    places = _places(kind, graph)
    source, target = graph.edge_index.numpy()
    dense = len(source) > 20 * len(places)
    lines = np.stack([places[source], places[target]], 1)
    faint = 0.06 if dense else 0.4
    axis.add_collection(LineCollection(list(lines), color="#777777", linewidth=0.5, alpha=faint))
    look: dict[str, Any] = {"s": 18, "color": "#0072B2"}
    if kind == "tour":
        tour = lines[graph.y.numpy() == 1]
        axis.add_collection(LineCollection(list(tour), color="#D55E00", linewidth=1.3))
        look["s"] = 7
    elif kind == "network":
        look["s"] = 18 + 2 * np.bincount(target, minlength=len(places))
    elif kind in ("pattern", "cluster"):
        look = {"s": 18, "c": graph.y.numpy() % 10, "cmap": "tab10", "vmin": 0, "vmax": 9}
    axis.scatter(*places.T, edgecolors="white", linewidths=0.4, zorder=3, **look)
    if kind == "cluster":
        given = places[graph.x.flatten().numpy() != 0]
        axis.scatter(*given.T, s=45, facecolors="none", edgecolors="black", zorder=4)
    axis.set_aspect("equal")


def _places(kind: str, graph: Data) -> NDArray[Any]:
    if kind == "tour":
        points: NDArray[Any] = graph.x.numpy()
        return points
    if kind not in ("pattern", "cluster"):
        from networkx import spring_layout

        layout = spring_layout(to_networkx(graph, to_undirected=True), seed=0)
        return np.array([layout[node] for node in range(len(layout))])
    # These graphs are too dense for a layout by forces: a disc, filled like a sunflower, for each
    # label.
    y = graph.y.numpy()
    labels, order = np.unique(y, return_inverse=True)
    radius = 1.3 * math.sqrt(np.bincount(order).max()) / math.sin(math.pi / max(2, len(labels)))
    places = np.empty((len(y), 2))
    for label in range(len(labels)):
        k = np.arange((order == label).sum()) + 0.5
        angle, around = k * math.pi * (3 - math.sqrt(5)), 2 * math.pi * label / len(labels)
        disc = np.sqrt(k)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        places[order == label] = disc + radius * np.array([math.sin(around), math.cos(around)])
    return places
