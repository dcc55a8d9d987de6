r"""One split of a dataset as flat tensors: made once, kept on disk, read back."""

import hashlib
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.data.collate import collate

from fognn.data.pack import SMALL_INTS, smallest_int
from fognn.data.sources import DAMAGED, cache_dir, reading
from fognn.utils.files import user_path, write_whole

Tensors = dict[str, Tensor]


def stored(path: Path, make: Callable[[], dict[str, Any]], mmap: bool = False) -> dict[str, Any]:
    r"""Returns what :obj:`make` returns, from a file that the first call writes. If several
    processes call it at once, one of them does the work; a damaged file is made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        try:
            return torch.load(path, weights_only=True, mmap=mmap)
        except DAMAGED:
            content = make()
            with write_whole(path) as temporary:
                torch.save(content, temporary)
            return content


class SplitDataset(InMemoryDataset):
    r"""One split of a dataset, a :class:`torch_geometric.data.InMemoryDataset` without PyG's
    processing: that takes no lock and remembers one :obj:`pre_transform` for all files.

    A subclass defines :meth:`read`. Integers are stored in the smallest type that holds them, in a
    file named by :obj:`variant` and a digest of the pickled :obj:`pre_transform`."""

    def __init__(
        self,
        root: str | Path | None,
        name: str,
        variant: str,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
    ) -> None:
        if pre_transform is not None:
            digest = hashlib.sha256(pickle.dumps(pre_transform, 4)).hexdigest()
            variant += f"-pre{digest[:16]}"
        folder = cache_dir() / name if root is None else user_path(root)
        super().__init__(str(folder), transform, pre_transform)
        content = stored(Path(self.processed_dir) / f"{variant}.pt", self._made)
        self._set(content["tensors"], content["slices"])

    def read(self) -> tuple[Tensors, Tensors]:
        r"""Returns the flat tensors and, for each of them, where its graphs begin and end."""
        raise NotImplementedError

    def _made(self) -> dict[str, Any]:
        tensors, slices = self.read()
        if self.pre_transform is not None:
            self._set(tensors, slices)
            tensors, slices = flatten(self.pre_transform(self.get(n)) for n in range(len(self)))
        return {"tensors": {k: _narrow(v) for k, v in tensors.items()}, "slices": slices}

    def _set(self, tensors: Tensors, slices: Tensors) -> None:
        wide = {k: v.long() if v.dtype in SMALL_INTS else v for k, v in tensors.items()}
        self._data, self.slices, self._data_list = Data.from_dict(wide), slices, None


def _narrow(value: Tensor) -> Tensor:
    if value.dtype != torch.int64 or not value.numel():
        return value
    low, high = value.aminmax()
    return value.to(smallest_int(int(low), int(high)))


def flatten(graphs: Iterable[Data]) -> tuple[Tensors, Tensors]:
    r"""Joins graphs to flat tensors, the edges of each sorted by target, then source."""
    ordered = [graph.sort(sort_by_row=False) for graph in graphs]
    data, slices, _ = collate(Data, ordered, increment=False, add_batch=False)
    return data.to_dict(), dict(slices)


def read_npz(path: Path, keys: Iterable[str]) -> list[NDArray[Any]]:
    r"""Reads arrays of a :obj:`.npz` file."""
    with reading(path), np.load(path, allow_pickle=False) as file:
        return [file[key] for key in keys]


def file_stamp(path: Path) -> str:
    r"""Returns a digest of size and time, for the name of the processed file."""
    status = path.stat()
    return hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:12]
