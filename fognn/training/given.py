r"""Data that are given to :func:`fognn.train` as Python objects."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, Dataset

from fognn.data.own_data import OwnData, data_of_parts
from fognn.data.splits import SPLITS

__all__ = [
    "GIVEN",
    "give_data",
    "given_data",
    "is_given",
]

GIVEN = "python:"
# By name, for this process: a run folder has the names only.
_DATA: dict[tuple[str, str], OwnData] = {}
_GRAPHS: dict[str, dict[str, list[Data]]] = {}


def is_given(name: str) -> bool:
    r"""Returns whether a name stands for a Python object."""
    return name.startswith(GIVEN)


def give_data(data: Any) -> str:
    r"""Keeps a dataset for the runs of this process and returns its name, with a checksum.

    Args:
        data (Dataset, list, Data or dict): A dataset of PyG or a list of
            :class:`~torch_geometric.data.Data`; one graph, with masks if it has them; or a dict
            with a dataset for each of ``"train"``, ``"val"`` and ``"test"``.
    """
    if isinstance(data, Mapping):
        if set(data) != set(SPLITS):
            raise ValueError(
                f"train: data must have the keys {', '.join(SPLITS)}, got "
                f"{', '.join(map(str, data))}"
            )
        parts = {split: _graphs(data[split], f"data[{split!r}]") for split in SPLITS}
        kind = type(data["train"]).__name__
    else:
        parts = {"all": _graphs(data, "data")}
        kind = type(data).__name__
    digest = 0
    for part in parts.values():
        for graph in part:
            content = graph.to_dict()
            for key in sorted(content):
                if isinstance(content[key], Tensor):
                    array = content[key].detach().cpu().contiguous()
                    digest = zlib.crc32(array.view(torch.uint8).numpy().tobytes(), digest)
    count = sum(map(len, parts.values()))
    name = f"{GIVEN}{kind}-{count}-{digest:08x}".lower()
    _GRAPHS[name] = parts
    return name


def given_data(name: str, task: str) -> OwnData:
    r"""Returns the data that :func:`give_data` keeps under a name.

    Args:
        name (str): The name.
        task (str): As in :func:`fognn.data.own_data.read_own_data`.
    """
    if name not in _GRAPHS:
        raise ValueError(
            f"data {name!r} were given as a Python object: call fognn.train with the same object, "
            "which resumes the run"
        )
    if (name, task) not in _DATA:
        _DATA[name, task] = data_of_parts("data", _GRAPHS[name], task)
    return _DATA[name, task]


def _graphs(data: Any, where: str) -> list[Data]:
    if isinstance(data, Data):
        return [data]
    if not isinstance(data, Dataset | Sequence) or isinstance(data, str) or not len(data):
        raise ValueError(
            f"train: {where} must be a PyG dataset, a list of Data or one Data, got "
            f"{type(data).__name__}"
        )
    return [data[number] for number in range(len(data))]
