r"""Graphs and images in flat arrays, and the files that hold such arrays."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE

__all__ = ["file_stamp", "flatten", "read_npz", "slices_of"]


def slices_of(counts: NDArray[Any] | Tensor) -> Tensor:
    r"""Where each graph begins and ends, from how much of it there is."""
    ends = torch.as_tensor(counts).long().cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def flatten(
    graphs: Iterable[dict[str, Tensor]], per_edge: tuple[str, ...] = ("edge_attr",)
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    r"""Joins graphs to flat tensors, their edges sorted by target, then source.

    Args:
        graphs (iterable): The tensors of each graph, all under the same names.
        per_edge (tuple, optional): The names whose rows are edges and move
            with them.
    """
    parts: dict[str, list[Tensor]] = {}
    for graph in graphs:
        source, target = graph["edge_index"]
        order = (target * len(graph["x"]) + source).argsort(stable=True)
        for key, value in graph.items():
            if key == "edge_index":
                value = value[:, order]
            elif key in per_edge:
                value = value[order]
            parts.setdefault(key, []).append(value)
    sizes = {
        key: torch.tensor([value.shape[-1 if key == "edge_index" else 0] for value in values])
        for key, values in parts.items()
    }
    tensors = {
        key: torch.cat(values, -1 if key == "edge_index" else 0) for key, values in parts.items()
    }
    return tensors, {key: slices_of(size) for key, size in sizes.items()}


def read_npz(path: Path, keys: Iterable[str]) -> dict[str, NDArray[Any]]:
    r"""Reads arrays of a :obj:`.npz` file, or says that the file is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in keys}
    except DAMAGE as error:
        raise FileError(
            f"{path} is not a whole .npz file of this dataset ({error}): get it again"
        ) from error


def file_stamp(path: Path) -> str:
    r"""Changes when the file changes; the name of a processed file carries it."""
    status = path.stat()
    return hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:12]
