"""Pictures of a few graphs, molecules or images of a dataset."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx, to_rdmol

from fognn.data.molecules import ATOM_COLUMNS, ATOMS
from fognn.report.forms import save_page
from fognn.utils.files import write_whole

KINDS = {
    "pattern": "Nodes on a circle, coloured by label: which belong to the pattern?",
    "cluster": "Nodes on a circle, coloured by label, the block.",
    "molecule": "",
    "tour": "Edges of the tour in colour, other edges in grey.",
    "network": "The more neighbours, the larger the node.",
    "images": "A row for each class.",
}
_COLUMNS, _SIZE = 4, 3.2  # panels side by side, inches of each
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
    r"""Draws graphs, molecules or images to a file."""
    check_picture(path)
    if kind == "molecule":
        picture = _molecules(items, captions)
    else:
        picture = _panels(kind, title, items, captions)
    if path.suffix.lower() == ".png":
        with write_whole(path) as temporary:
            temporary.write_bytes(picture)
        return
    # As an address, so that the page needs no other file.
    image = f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
    context = {"title": title, "note": KINDS[kind], "image": image}
    save_page(path, "data", **context, header=header, rows=rows)


def _molecules(graphs: Sequence[Data], captions: Sequence[str]) -> bytes:
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.Draw import MolsToGridImage
    except ImportError as error:
        raise ImportError('molecules need RDKit: pip install "fognn[chem]"') from error
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
    r"""Returns the molecule of a graph with PyG's atom features, or with the tokens of ZINC."""
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
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('drawings need matplotlib: pip install "fognn[chem]"') from error
    images = kind == "images"
    columns = max(map(len, items)) if images else min(_COLUMNS, len(items))
    rows, size = -(-len(items) // (1 if images else columns)), 1.3 if images else _SIZE
    figure = Figure((max(columns * size, 6), rows * (size + 0.25) + 0.5), dpi=110, layout="tight")
    figure.suptitle(title, x=0.02, ha="left", fontweight="bold")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for number, (item, caption) in enumerate(zip(items, captions, strict=True)):
        first = axes[number, 0] if images else axes.flat[number]
        first.set_title(caption, fontsize=9, loc="left")
        if images:
            for axis, image in zip(axes[number], item, strict=False):
                # Ink is 1 where there is one channel, and ink is dark.
                axis.imshow(image.permute(1, 2, 0).squeeze(-1).clamp(0, 1), cmap="gray_r")
        else:
            _draw_graph(first, kind, item)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw_graph(axis: Any, kind: str, graph: Data) -> None:
    import networkx as nx
    from matplotlib.collections import LineCollection

    source, target = graph.edge_index.numpy()
    look: dict[str, Any] = {"s": 18, "color": "#0072B2"}
    if kind == "tour":
        places, look["s"] = graph.x.numpy(), 7
    elif kind in ("pattern", "cluster"):  # too dense for a layout by forces
        y = graph.y.numpy()
        angles = 2 * np.pi * y.argsort(kind="stable").argsort() / len(y)
        places = np.stack([np.cos(angles), np.sin(angles)], 1)
        look = {"s": 18, "c": y % 10, "cmap": "tab10", "vmin": 0, "vmax": 9}
    else:
        layout = nx.spring_layout(to_networkx(graph, to_undirected=True), seed=0)
        places = np.array([layout[node] for node in range(len(layout))])
        look["s"] = 18 + 2 * np.bincount(target, minlength=len(places))
    lines = np.stack([places[source], places[target]], 1)
    faint = 0.06 if len(source) > 20 * len(places) else 0.4
    axis.add_collection(LineCollection(list(lines), color="#777777", linewidth=0.5, alpha=faint))
    if kind == "tour":
        tour = lines[graph.y.numpy() == 1]
        axis.add_collection(LineCollection(list(tour), color="#D55E00", linewidth=1.3))
    axis.scatter(*places.T, edgecolors="white", linewidths=0.4, zorder=3, **look)
    axis.set_aspect("equal")
