r"""The label of ZINC, computed from a molecule."""

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fognn.datasets.molecules import parse_smiles

__all__ = ["penalised_logp"]


@cache
def _sa_score() -> Callable[[Any], float]:
    from rdkit import RDConfig

    # RDKit ships the score as a contributed script and not as a module, in a folder of its own.
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
    r"""The longest ring of the cycle basis that Paton's search finds from the first atom.

    A cycle basis is not unique and the label depends on the choice: the ring
    of twelve around two fused rings counts if the search meets it first. The
    published labels come from this search (Paton, *CACM* 12(9), 1969): a
    stack, neighbours in ascending order.
    """
    longest = 0
    parent: dict[int, int] = {}
    for root in range(molecule.GetNumAtoms()):
        if root in parent:
            continue
        parent[root] = root
        closed: dict[int, set[int]] = {root: set()}  # neighbours that a node needs not look at
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
    r"""The label of ZINC: the penalised and normalised water-octanol partition coefficient.

    .. math::
        y = 0.697631795 \, \mathrm{logP} - 1.198167600 \, \mathrm{SA}
        - 3.475139158 \max(0, \ell - 6) + 2.111829992

    with Crippen's logP, the synthetic accessibility score SA, and the longest
    ring :math:`\ell` of a cycle basis. The basis depends on the order of the
    atoms, so for fused rings another way of writing the same molecule can have
    another label.

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
