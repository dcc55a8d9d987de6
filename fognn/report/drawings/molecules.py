r"""Molecules drawn by RDKit, from their SMILES strings or from graphs with the tokens of ZINC."""

import re
from typing import Any

from torch_geometric.data import Data
from torch_geometric.utils import to_rdmol

from fognn.data.molecules import ATOM_COLUMNS, ATOMS, rdkit_module

__all__ = ["graph_to_molecule", "has_rdkit", "molecule_png", "molecule_svg"]

_MOST_ATOMS = 500  # RDKit takes minutes to place some thousands of atoms in rings


def has_rdkit() -> bool:
    r"""Whether RDKit can draw."""
    try:
        rdkit_module()
    except ImportError:
        return False
    return True


def graph_to_molecule(graph: Data) -> Any:
    r"""The molecule of a graph: the way back from :func:`fognn.data.smiles_to_graph`.

    Args:
        graph (Data): A graph with the features of PyG, or of ZINC.
    """
    chem = rdkit_module().Chem
    if graph.x.dim() == 2 and graph.x.size(1) == len(ATOM_COLUMNS):
        return to_rdmol(graph)
    molecule = chem.RWMol()
    for token in graph.x.reshape(-1).tolist():
        symbol, *rest = ATOMS[token].split()
        atom = chem.Atom(symbol)
        for part in rest:
            if match := re.fullmatch(r"H(\d)", part):
                atom.SetNumExplicitHs(int(match[1]))
            else:
                atom.SetFormalCharge(1 if part == "+" else -1)
        molecule.AddAtom(atom)
    orders = (None, chem.BondType.SINGLE, chem.BondType.DOUBLE, chem.BondType.TRIPLE)
    for (u, v), bond in zip(graph.edge_index.t().tolist(), graph.edge_attr.tolist(), strict=True):
        if u < v:
            molecule.AddBond(u, v, orders[bond])
    # A graph can hold what chemistry forbids; it is drawn all the same.
    with rdkit_module().rdBase.BlockLogs():
        molecule.UpdatePropertyCache(strict=False)
        chem.SanitizeMol(molecule, catchErrors=True)
    return molecule.GetMol()


def molecule_svg(graph: Data, size: int = 340) -> str:
    r"""The drawing as the text of an SVG, for a page."""
    from rdkit.Chem.Draw import rdMolDraw2D

    text: str = _drawn(rdMolDraw2D.MolDraw2DSVG(size, size), graph)
    # Inside a page an XML header has no place.
    return text[text.index("<svg") :]


def molecule_png(graph: Data, size: int = 700) -> bytes:
    r"""The drawing as the bytes of a PNG file."""
    from rdkit.Chem.Draw import rdMolDraw2D

    return bytes(_drawn(rdMolDraw2D.MolDraw2DCairo(size, size), graph))


def _drawn(canvas: Any, graph: Data) -> Any:
    from rdkit.Chem.Draw import rdMolDraw2D

    options = canvas.drawOptions()
    options.padding = 0.06
    options.bondLineWidth = max(2, canvas.Width() // 230)
    molecule = None
    if "smiles" in graph:  # has all that RDKit can draw, and atoms that ZINC does not have
        with rdkit_module().rdBase.BlockLogs():
            molecule = rdkit_module().Chem.MolFromSmiles(graph.smiles)
    if molecule is None:
        molecule = graph_to_molecule(graph)
    atoms = molecule.GetNumAtoms()
    if atoms > _MOST_ATOMS:
        legend = f"{atoms:,} atoms, too many to draw"
        canvas.DrawMolecule(rdkit_module().Chem.Mol(), legend=legend)
    else:
        canvas.DrawMolecule(rdMolDraw2D.PrepareMolForDrawing(molecule, kekulize=False))
    canvas.FinishDrawing()
    return canvas.GetDrawingText()
