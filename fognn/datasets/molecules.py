r"""Molecules: graphs from SMILES strings and csv files, and the label of ZINC."""

import csv
import importlib.util
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

__all__ = [
    "ATOMS",
    "BadLine",
    "parse_smiles",
    "penalised_logp",
    "rdkit_module",
    "read_smiles_csv",
    "smiles_to_graph",
]

# The token of an atom is its place here: symbol, explicit hydrogens, charge.
ATOMS = (
    *("C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +"),
    *("N -", "S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +"),
    *("S H1 +", "C H1 -", "P H1 +"),
)
_TOKEN = {atom: token for token, atom in enumerate(ATOMS)}
_BONDS = (1, 2, 3)  # single, double, triple
_LONGEST = 10_000  # characters: RDKit's time grows with the square
_PAUSE = 10.0  # seconds between two lines of progress


class BadLine(NamedTuple):
    r"""A line of a csv file from which no graph can be made."""

    line: int
    smiles: str
    reason: str


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
    if len(smiles) > _LONGEST:
        raise ValueError(
            f"smiles must have at most {_LONGEST:,} characters, got {len(smiles):,}, which begin "
            f"with {smiles[:20]!r}"
        )
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
    sign = "+" if charge > 0 else "-"
    parts = [atom.GetSymbol()]
    parts += [f"H{hydrogens}"] if hydrogens else []
    parts += [sign if abs(charge) == 1 else f"{sign}{abs(charge)}"] if charge else []
    return " ".join(parts)


def smiles_to_graph(smiles: str) -> Data:
    r"""Converts a SMILES string into a graph like those of ZINC.

    The molecule is kekulised. The token of an atom is the place in :obj:`ATOMS` of its symbol, its
    explicit hydrogens and its charge; an atom has explicit hydrogens where the string writes them
    in brackets, as in :obj:`[C@H]` and :obj:`[NH+]`. Atoms keep the order of the string. (PyG's
    :obj:`from_smiles` has other features, on which a network of ZINC cannot be used.)

    Args:
        smiles (str): The molecule.

    Returns:
        :class:`~torch_geometric.data.Data` with :obj:`x` (int64, ``[N]``, tokens 0 to 27),
        :obj:`edge_index` (both directions, sorted by target, then source), :obj:`edge_attr`
        (int64, ``[E]``, bonds 1 to 3) and :obj:`smiles`.
    """
    molecule = parse_smiles(smiles)
    rdkit_module().Chem.Kekulize(molecule, clearAromaticFlags=True)

    tokens = []
    for atom in molecule.GetAtoms():
        name = _atom_name(atom)
        if name not in _TOKEN:
            raise ValueError(
                f"atom {atom.GetIdx()} (counted from 0) of {smiles!r} is {name!r}, which is not "
                f"known; known are {', '.join(ATOMS)}"
            )
        tokens.append(_TOKEN[name])

    edges = []
    for bond in molecule.GetBonds():
        u, v, order = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondTypeAsDouble()
        if order not in _BONDS:
            raise ValueError(
                f"the bond of atoms {u} and {v} (counted from 0) of {smiles!r} is "
                f"{bond.GetBondType()}, which is not known; known are SINGLE, DOUBLE and TRIPLE"
            )
        edges += [(v, u, int(order)), (u, v, int(order))]
    target, source, attr = torch.tensor(sorted(edges), dtype=torch.int64).reshape(-1, 3).t()
    return Data(
        x=torch.tensor(tokens),
        edge_index=torch.stack([source, target]),
        edge_attr=attr.contiguous(),
        smiles=smiles,
    )


def read_smiles_csv(
    path: str | Path,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    skip_bad: bool = False,
) -> tuple[list[Data], list[BadLine]]:
    r"""Reads the molecules of a csv file with a header. A file that takes long shows its progress
    on standard error.

    Args:
        path (str or Path): The csv file.
        smiles_column (str, optional): The column of the SMILES strings.
            (default: :obj:`"smiles"`)
        target_column (str, optional): The column of a number that becomes :obj:`y` (float32,
            ``[1]``). (default: :obj:`None`)
        skip_bad (bool, optional): If :obj:`False`, the first bad line raises a
            :class:`ValueError`. If :obj:`True`, bad lines are left out and returned, with a
            warning. (default: :obj:`False`)

    Returns:
        The graphs, and the lines that were left out.
    """
    graphs: list[Data] = []
    bad: list[BadLine] = []
    shown = time.monotonic()
    for line, smiles, target in _rows(Path(path), smiles_column, target_column):
        if time.monotonic() - shown > _PAUSE:
            shown = time.monotonic()
            print(f"{path}: read to line {line:,}", file=sys.stderr, flush=True)
        try:
            graph = smiles_to_graph(smiles)
            if target_column is not None:
                graph.y = torch.tensor([_number(target_column, target)])
        except ValueError as error:
            if not skip_bad:
                raise ValueError(f"{path}, line {line}: {error}") from error
            bad.append(BadLine(line, smiles, str(error)))
        else:
            graphs.append(graph)
    if bad:
        warnings.warn(
            f"{path}: {len(bad)} of {len(bad) + len(graphs)} lines were skipped, "
            f"the first is line {bad[0].line}: {bad[0].reason}",
            stacklevel=2,
        )
    return graphs, bad


def _rows(
    path: Path, smiles_column: str, target_column: str | None
) -> Iterator[tuple[int, str, str | None]]:
    if not path.is_file():
        raise ValueError(f"read_smiles_csv: path must name a file, got {str(path)!r}")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            columns: Sequence[str] = reader.fieldnames or ()
            for argument, column in (
                ("smiles_column", smiles_column),
                ("target_column", target_column),
            ):
                if column is not None and column not in columns:
                    raise ValueError(
                        f"{path}: {argument} must be one of {list(columns)}, got {column!r}"
                    )
            for row in reader:
                target = row[target_column] if target_column is not None else None
                yield reader.line_num, row[smiles_column] or "", target
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a csv file in UTF-8: {error}") from error


def _number(column: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"column {column!r} must be a finite number, got {text!r}")
    return value


@cache
def _sa_score() -> Callable[[Any], float]:
    from rdkit import RDConfig

    # RDKit ships the score as a contributed script, not as a module.
    path = Path(RDConfig.RDContribDir) / "SA_Score" / "sascorer.py"
    spec = importlib.util.spec_from_file_location("fognn_sascorer", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ImportError(
            f"penalised_logp needs RDKit's SA_Score, and {path} is not there: install RDKit from "
            'PyPI with pip install "fognn[chem]"'
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    score: Callable[[Any], float] = module.calculateScore
    return score


def _longest_ring(molecule: Any) -> int:
    r"""Returns the length of the longest ring of a cycle basis.

    A cycle basis is not unique and the label depends on the choice: the ring of twelve around two
    fused rings counts if the search meets it first. The published labels come from the search of
    :obj:`networkx.cycle_basis` (Paton, *CACM* 12(9), 1969) from the first atom, written here
    because networkx is no dependency.
    """
    longest = 0
    parent: dict[int, int] = {}
    for root in range(molecule.GetNumAtoms()):
        if root in parent:
            continue
        parent[root] = root
        closed: dict[int, set[int]] = {root: set()}  # neighbours to skip
        stack = [root]
        while stack:
            node = stack.pop()
            for neighbour in sorted(
                atom.GetIdx() for atom in molecule.GetAtomWithIdx(node).GetNeighbors()
            ):
                if neighbour not in parent:
                    parent[neighbour] = node
                    closed[neighbour] = {node}
                    stack.append(neighbour)
                elif neighbour not in closed[node]:
                    length, up = 2, node
                    while up not in closed[neighbour]:
                        up = parent[up]
                        length += 1
                    longest = max(longest, length)
                    closed[neighbour].add(node)
    return longest


def penalised_logp(smiles: str) -> float:
    r"""Computes the label of ZINC, the penalised and normalised water-octanol partition
    coefficient.

    .. math::
        y = 0.697631795 \, \mathrm{logP} - 1.198167600 \, \mathrm{SA}
        - 3.475139158 \max(0, \ell - 6) + 2.111829992

    with Crippen's logP, the synthetic accessibility score SA, and the longest ring :math:`\ell` of
    a cycle basis. The basis depends on the order of the atoms, so with fused rings another SMILES
    string of the same molecule can have another label.

    Args:
        smiles (str): The molecule.
    """
    molecule = parse_smiles(smiles)
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    excess = max(0, _longest_ring(molecule) - 6)
    return float(
        0.697631795 * CalcCrippenDescriptors(molecule)[0]
        - 1.198167600 * _sa_score()(molecule)
        - 3.475139158 * excess
        + 2.111829992
    )
