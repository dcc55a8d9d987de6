r"""Molecules: graphs from SMILES strings, one by one or from a csv file with a header."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch_geometric.data import Data
from torch_geometric.utils.smiles import e_map, from_rdmol, x_map

from fognn.data.targets import Targets, targets_from_cells
from fognn.utils import checks
from fognn.utils.files import user_path

if TYPE_CHECKING:
    import pandas as pd

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


def parse_smiles(smiles: str) -> Any:
    r"""Returns RDKit's molecule of a SMILES string, or raises a :class:`ValueError`."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError('molecules need RDKit: pip install "fognn[chem]"') from error
    if not isinstance(smiles, str) or not smiles.strip():
        raise ValueError(f"smiles must be a non-empty string, got {smiles!r}")
    # RDKit would print each problem; here the error has it.
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is not None and molecule.GetNumAtoms():
            return molecule
        rough = Chem.MolFromSmiles(smiles, sanitize=False)
        problems = [] if rough is None else Chem.DetectChemistryProblems(rough)
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
    from rdkit.Chem import Kekulize

    Kekulize(molecule, clearAromaticFlags=True)
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
    tokens = torch.tensor([_TOKEN[name] for name in names])
    # Each bond is there in both directions, so that PyG's order by source is one by target.
    return Data(x=tokens, edge_index=graph.edge_index.flip(0), edge_attr=bonds, smiles=smiles)


class BadLine(NamedTuple):
    r"""A line of a csv file from which no graph can be made."""

    line: int
    smiles: str
    reason: str


@dataclass
class MoleculeTable:
    r"""The molecules of a csv file."""

    graphs: list[Data]  # one for each molecule, with y if targets were read
    rows: list[int]  # the row of each molecule, counted from 0 without the header
    total: int  # the number of lines, also of those that were left out
    targets: Targets | None = None
    splits: list[str] = field(default_factory=list)  # the text of the split column
    bad: list[BadLine] = field(default_factory=list)  # the lines that cannot be read
    unlabelled: int = 0  # the number of lines without any target, which are left out


def is_csv(path: str | Path) -> bool:
    r"""Returns whether a name ends in ``.csv`` or ``.csv.gz``."""
    return str(path).lower().endswith((".csv", ".csv.gz"))


def read_molecules(
    path: str | Path,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    split_column: str | None = None,
    task: str = "auto",
    skip_bad: bool = False,
    features: str = "pyg",
) -> MoleculeTable:
    r"""Reads the molecules of a csv file with a header, which may be compressed (``.csv.gz``).

    Args:
        path (str or Path): The csv file.
        smiles_column (str, optional): The column of the SMILES strings; its case does not count if
            only one column has the name. (default: :obj:`"smiles"`)
        target_column (str, optional): The column, or columns with commas between them, that become
            :obj:`y`. (default: :obj:`None`)
        split_column (str, optional): The column of the splits. (default: :obj:`None`)
        task (str, optional): The kind of the targets, see
            :func:`fognn.data.targets.targets_from_cells`. (default: :obj:`"auto"`)
        skip_bad (bool, optional): If :obj:`False`, the first bad line raises a
            :class:`ValueError`. If :obj:`True`, bad lines are left out. (default: :obj:`False`)
        features (str, optional): As in :func:`smiles_to_graph`. (default: :obj:`"pyg"`)
    """
    path = user_path(path)
    table = read_table(path)
    columns = list(table.columns)
    smiles = table[_column(path, columns, "--smiles-column", smiles_column)].str.strip()
    names = [] if target_column is None else _target_columns(path, columns, target_column)
    if split_column is not None:
        split_column = _column(path, columns, "--split-column", split_column)
    targets, y, bad_targets = None, torch.empty(0), dict[int, str]()
    if names and len(table):
        targets, y, bad_targets = targets_from_cells(table[names], task)
    found = MoleculeTable([], [], len(table), targets)
    for row, text in enumerate(smiles):
        try:
            if row in bad_targets:
                raise ValueError(bad_targets[row])
            graph = smiles_to_graph(text, features)
        except ValueError as error:
            if not skip_bad:
                raise ValueError(
                    f"{path}, line {row + 2}: {error}; --skip-bad (skip_bad=True) skips such lines"
                ) from error
            found.bad.append(BadLine(row + 2, text, str(error)))
            continue
        if targets is not None:
            if bool((y[row].isnan() if y.is_floating_point() else y[row] == -1).all()):
                found.unlabelled += 1
                continue
            graph.y = y[row : row + 1]
        found.graphs.append(graph)
        found.rows.append(row)
    if split_column is not None:
        found.splits = table[split_column].iloc[found.rows].tolist()
    return found


def read_table(path: Path) -> "pd.DataFrame":
    r"""Reads a csv file as text, with empty cells as ``""``."""
    import pandas as pd

    if not path.is_file():
        raise ValueError(f"{path} must be a csv file, there is none")
    try:
        # Without index_col, a comma at the end of each line would shift all columns.
        return pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False
        )
    except (ValueError, OSError, EOFError) as error:  # pandas' own errors are ValueErrors
        raise ValueError(f"{path} must be a csv file in UTF-8: {error}") from error


def _column(path: Path, columns: Sequence[str], option: str, name: str) -> str:
    alike = [column for column in columns if column.strip().lower() == name.strip().lower()]
    if name in columns or len(alike) == 1:
        return name if name in columns else alike[0]
    known = ", ".join(columns)
    raise ValueError(f"{path}: {option} must be one of its columns, {known}, got {name!r}")


def _target_columns(path: Path, columns: Sequence[str], text: str) -> list[str]:
    r"""Returns the columns that a text names; a column may have commas in its name."""
    if text in columns:
        return [text]
    names = [_column(path, columns, "--target-column", part.strip()) for part in text.split(",")]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: --target-column must name each column once, got {text!r}")
    return names
