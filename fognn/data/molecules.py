r"""Graphs from SMILES strings."""

from types import ModuleType
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.utils.smiles import e_map, from_rdmol, x_map

from fognn.utils import checks

# The number of values of each column of PyG's features.
ATOM_COLUMNS = tuple(len(values) for values in x_map.values())
BOND_COLUMNS = tuple(len(values) for values in e_map.values())
FEATURES = ("pyg", "zinc")

# The token of an atom is its place here: symbol, explicit hydrogens, charge.
ATOMS = (
    *("C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +"),
    *("N -", "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +"),
    *("S H1 +", "C H1 -", "P H1 +"),
)
_TOKEN = {atom: token for token, atom in enumerate(ATOMS)}


def rdkit_module() -> ModuleType:
    r"""Returns RDKit with :obj:`rdkit.Chem` loaded; RDKit is an optional dependency."""
    try:
        import rdkit
        from rdkit import Chem  # noqa: F401  (the submodule must be loaded)
    except ImportError as error:
        raise ImportError(
            'molecules need RDKit, which is not installed: pip install "fognn[chem]"'
        ) from error
    return rdkit


def parse_smiles(smiles: str) -> Any:
    r"""Returns RDKit's molecule of a SMILES string, or raises a :class:`ValueError`."""
    rdkit = rdkit_module()
    if not isinstance(smiles, str) or not smiles.strip():
        raise ValueError(f"smiles must be a non-empty string, got {smiles!r}")
    # RDKit would print each problem; here the error has it.
    with rdkit.rdBase.BlockLogs():
        molecule = rdkit.Chem.MolFromSmiles(smiles)
        if molecule is not None and molecule.GetNumAtoms():
            return molecule
        rough = rdkit.Chem.MolFromSmiles(smiles, sanitize=False)
        problems = [] if rough is None else rdkit.Chem.DetectChemistryProblems(rough)
    reason = problems[0].Message() if problems else "it cannot be parsed"
    raise ValueError(f"smiles must be a valid SMILES string, got {smiles!r}: {reason}")


def _atom_name(atom: Any) -> str:
    hydrogens, charge = atom.GetNumExplicitHs(), atom.GetFormalCharge()
    written = {1: "+", -1: "-"}.get(charge, f"{charge:+d}")
    parts = (atom.GetSymbol(), f"H{hydrogens}" * bool(hydrogens), written * bool(charge))
    return " ".join(filter(None, parts))


def smiles_to_graph(smiles: str, features: str = "pyg") -> Data:
    r"""Converts a SMILES string into a graph.

    * ``"pyg"``: the features of PyG's :func:`~torch_geometric.utils.from_smiles`, for any atom and
      bond. :obj:`x` (int64, ``[N, 9]``) has the atomic number, chirality, degree, charge, number of
      hydrogens and of radical electrons, hybridisation, aromaticity and whether the atom is in a
      ring; :obj:`edge_attr` (int64, ``[E, 3]``) has the type of the bond, its stereo configuration
      and whether it is conjugated.
    * ``"zinc"``: the tokens of ZINC. The molecule is kekulised. The token of an atom is the place
      in :obj:`ATOMS` of its symbol, its explicit hydrogens and its charge; an atom has explicit
      hydrogens where the string writes them in brackets, as in :obj:`[C@H]` and :obj:`[NH+]`.
      :obj:`x` (int64, ``[N]``) has tokens 0 to 27, and :obj:`edge_attr` (int64, ``[E]``) bonds 1
      to 3. Other atoms raise a :class:`ValueError`.

    Atoms keep the order of the string. :obj:`edge_index` has both directions of each bond.

    Args:
        smiles (str): The molecule.
        features (str, optional): ``"pyg"`` or ``"zinc"``. (default: :obj:`"pyg"`)
    """
    checks.one_of("smiles_to_graph", "features", features, FEATURES)
    molecule = parse_smiles(smiles)
    if features == "zinc":
        return _zinc_graph(molecule, smiles)
    try:
        graph: Data = from_rdmol(molecule)
    except ValueError as error:  # of list.index in PyG
        raise ValueError(
            f"smiles {smiles!r} has an atom or bond that PyG's features do not have: {error}"
        ) from error
    graph.smiles = smiles
    return graph


def _zinc_graph(molecule: Any, smiles: str) -> Data:
    rdkit_module().Chem.Kekulize(molecule, clearAromaticFlags=True)
    names = [_atom_name(atom) for atom in molecule.GetAtoms()]
    for number, name in enumerate(names):
        if name not in _TOKEN:
            raise ValueError(
                f"atom {number} (counted from 0) of {smiles!r} is {name!r}, which is not known in "
                f"ZINC; known are {', '.join(ATOMS)}"
            )
    graph: Data = from_rdmol(molecule)
    bonds = graph.edge_attr[:, 0].contiguous()
    if ((bonds < 1) | (bonds > 3)).any():
        raise ValueError(
            f"{smiles!r} has a bond that is not known in ZINC; known are SINGLE, DOUBLE and TRIPLE"
        )
    # Each bond is there in both directions, so that PyG's order by source is one by target.
    edge_index = graph.edge_index.flip(0)
    tokens = torch.tensor([_TOKEN[name] for name in names])
    return Data(x=tokens, edge_index=edge_index, edge_attr=bonds, smiles=smiles)
