r"""The division of the user's data into training, validation and test."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fognn.data.molecules import is_csv, parse_smiles, read_table
from fognn.data.sources import SPLITS
from fognn.utils.errors import FileError
from fognn.utils.files import user_path

FEWEST = 10  # items: one to validate and one to test on
_NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def random_split(order: Tensor, fraction: float = 1.0) -> dict[str, Tensor]:
    r"""Divides a fraction of some items, at least ten, which are in a random order: the first 80 %
    are for training, the next 10 % for validation and the last 10 % for testing."""
    order = order[: max(FEWEST, round(len(order) * fraction))]
    parts = order.tensor_split([len(order) * 8 // 10, len(order) * 9 // 10])
    return {split: part.sort().values for split, part in zip(SPLITS, parts, strict=True)}


def scaffold_split(smiles: Sequence[str], total: int | None = None) -> dict[str, Tensor]:
    r"""Divides molecules by the rule of the Open Graph Benchmark: those with the same Bemis-Murcko
    scaffold are in the same split, the most frequent ones in the training split. 80 % and 90 % are
    of ``total``, because the benchmark counts molecules that cannot be read."""
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
    r"""Divides items by a text for each of them: ``train``, ``val`` (``valid``, ``validation``,
    ``dev``) or ``test``. Error messages begin with ``where``."""
    return _by_split({place: _split_name(where, text) for place, text in enumerate(values)})


def _split_name(where: str, text: str) -> str:
    name = _NAMES.get(str(text).strip().lower())
    if name is None:
        raise ValueError(f"{where} must be train, val or test, got {text!r}")
    return name


def _by_split(names: Mapping[int, str]) -> dict[str, Tensor]:
    places = {split: [place for place in names if names[place] == split] for split in SPLITS}
    return {split: torch.tensor(found, dtype=torch.int64) for split, found in places.items()}


def file_split(path: str | Path, places: Mapping[Any, int]) -> dict[str, Tensor]:
    r"""Reads splits from a file:

    * ``.json``: an object with a list for each of ``train``, ``val`` and ``test``;
    * ``.csv`` with a header: a line for each item, with its number or name in the first column and
      the name of its split in the last one.

    ``places`` has the place of each item, by its number from 0 and by its name, such as a SMILES
    string; -1 if it is left out of the data. Items that the file does not name are in no split.
    """
    path = user_path(path)
    if is_csv(path):
        lines: list[tuple[Any, str]] = read_table(path).iloc[:, [0, -1]].values.tolist()
    else:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            lines = [(item, split) for split, items in content.items() for item in items]
        except (OSError, AttributeError, TypeError, json.JSONDecodeError) as error:
            raise FileError(
                f"{path} must be a json file with a list of items for train, val and test: {error}"
            ) from error
    found: dict[int, str] = {}
    for item, text in lines:
        split, place = _split_name(str(path), text), _place(path, item, places)
        if place in found:
            raise ValueError(f"{path}: an item of {split} must be in one split only, got it twice")
        if place >= 0:
            found[place] = split
    return _by_split(found)


def _place(path: Path, item: Any, places: Mapping[Any, int]) -> int:
    number = int(item) if isinstance(item, str) and item.strip().isdecimal() else item
    for key in (item, number):
        if isinstance(key, int | str) and key in places:
            return places[key]
    raise ValueError(f"{path}: {item!r} must be the number or name of an item of the data")
