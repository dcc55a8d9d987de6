r"""The division of the user's own graphs into training, validation and test."""

from collections.abc import Sequence

import torch
from torch import Tensor

from fognn.data.molecules import parse_smiles

__all__ = ["FEWEST", "SPLITS", "column_split", "random_split", "scaffold_split"]

SPLITS = ("train", "val", "test")
FEWEST = 10  # items: one to validate and one to test on
# First and last tenth of each split: 80 % for training, 10 % for validation, 10 % for testing.
_TENTHS = {"train": (0, 8), "val": (8, 9), "test": (9, 10)}
_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def random_split(order: Tensor, fraction: float = 1.0) -> dict[str, Tensor]:
    r"""Divides items in a random order: the first 80 % are for training, the next 10 % for
    validation and the last 10 % for testing.

    Args:
        order (torch.Tensor): The items in random order.
        fraction (float, optional): Fraction of the items to use, at least ten.
            (default: :obj:`1.0`)

    Returns:
        The sorted items of each split.
    """
    order = order[: max(FEWEST, round(len(order) * fraction))]
    cuts = {split: [len(order) * tenth // 10 for tenth in ends] for split, ends in _TENTHS.items()}
    return {split: order[first:last].sort().values for split, (first, last) in cuts.items()}


def scaffold_split(smiles: Sequence[str], total: int | None = None) -> dict[str, Tensor]:
    r"""Divides molecules by their Bemis-Murcko scaffolds, by the rule of the Open Graph Benchmark:
    molecules with the same scaffold are in the same split, and the most frequent scaffolds are in
    the training split.

    Args:
        smiles (list): The molecules.
        total (int, optional): The number of which 80 % and 90 % are the ends of the training and of
            the validation split; the benchmark counts molecules that cannot be read.
            (default: the number of molecules)

    Returns:
        The sorted indices of each split.
    """
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    groups: dict[str, list[int]] = {}
    for number, text in enumerate(smiles):
        scaffold = MurckoScaffoldSmiles(mol=parse_smiles(text), includeChirality=True)
        groups.setdefault(scaffold, []).append(number)
    total = len(smiles) if total is None else total
    found: dict[str, list[int]] = {split: [] for split in SPLITS}
    for group in sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True):
        if len(found["train"]) + len(group) <= 0.8 * total:
            found["train"] += group
        elif len(found["train"]) + len(found["val"]) + len(group) <= 0.9 * total:
            found["val"] += group
        else:
            found["test"] += group
    return {split: torch.tensor(sorted(numbers)) for split, numbers in found.items()}


def column_split(where: str, values: Sequence[str]) -> dict[str, Tensor]:
    r"""Divides items by the text of a column: ``train``, ``val`` (``valid``, ``validation``,
    ``dev``) or ``test``.

    Args:
        where (str): The beginning of error messages.
        values (list): The text for each item.

    Returns:
        The indices of each split.
    """
    found: dict[str, list[int]] = {split: [] for split in SPLITS}
    for number, value in enumerate(values):
        name = _NAMES.get(value.strip().lower())
        if name is None:
            raise ValueError(f"{where} must be train, val or test, got {value!r}")
        found[name].append(number)
    return {split: torch.tensor(numbers, dtype=torch.int64) for split, numbers in found.items()}
