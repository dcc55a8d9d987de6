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

from fognn.data.sources import DAMAGED, cache_dir
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

__all__ = ["SplitDataset", "file_stamp", "flatten", "read_npz", "slices_of"]

_SMALL = (torch.uint8, torch.int8, torch.int16, torch.int32)


class SplitDataset(InMemoryDataset):
    r"""One split of a dataset, a :class:`torch_geometric.data.InMemoryDataset`.

    A subclass calls this constructor and defines :meth:`read`. Three things differ from PyG's base
    class. Integers are stored in the smallest type that holds them and are :obj:`torch.int64` in
    memory. The processed file is written whole and under a lock, so if two processes open the
    dataset at once, one of them does the work; a file that cannot be read is made again. And
    the name of the processed file has :obj:`variant` and a digest of the pickled
    :obj:`pre_transform` in it, so a changed setting never reads an old file.

    Args:
        root (str or Path, optional): The folder for processed files. If :obj:`None`, the folder
            :obj:`name` in the cache.
        name (str): The dataset's name, in lower case.
        variant (str): A name for everything that the processed file depends on.
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
    """

    _data: Any
    slices: dict[str, Tensor] | None

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
        self._variant = variant
        folder = cache_dir() / name if root is None else user_path(root)
        super().__init__(str(folder), transform, pre_transform)
        path = Path(self.processed_paths[0])
        try:
            stored = torch.load(path, weights_only=True)
        except DAMAGED:
            with FileLock(f"{path}.lock"):
                self.process()
            stored = torch.load(path, weights_only=True)
        self._data, self.slices = Data.from_dict(_widened(stored["tensors"])), stored["slices"]

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        r"""Returns the flat tensors and, for each of them, where its graphs begin and end."""
        raise NotImplementedError

    @property
    def processed_file_names(self) -> str:
        return f"{self._variant}.pt"

    def process(self) -> None:
        tensors, slices = self.read()
        if self.pre_transform is not None:
            self._data, self.slices = Data.from_dict(_widened(tensors)), slices
            self._data_list = self._indices = None
            graphs = [self.pre_transform(self.get(index)) for index in range(self.len())]
            self._data_list = None
            # Not self.collate, which returns no slices for a single graph.
            joined, slices, _ = collate(Data, graphs, increment=False, add_batch=False)
            tensors = joined.to_dict()
        with write_whole(Path(self.processed_paths[0])) as temporary:
            torch.save({"tensors": _narrowed(tensors), "slices": slices}, temporary)

    def _process(self) -> None:
        # PyG's own method takes no lock and remembers one pre_transform for all files.
        path = Path(self.processed_paths[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.exists():
                self.process()


def _narrowed(tensors: dict[str, Any]) -> dict[str, Any]:
    narrow = dict(tensors)
    for key, value in tensors.items():
        if value.dtype == torch.int64 and value.numel():
            low, high = (int(bound) for bound in value.aminmax())
            fits = (t for t in _SMALL if torch.iinfo(t).min <= low and high <= torch.iinfo(t).max)
            narrow[key] = value.to(next(fits, torch.int64))
    return narrow


def _widened(tensors: dict[str, Any]) -> dict[str, Any]:
    return {k: value.long() if value.dtype in _SMALL else value for k, value in tensors.items()}


def slices_of(counts: NDArray[Any] | Tensor) -> Tensor:
    r"""Returns where each graph begins and ends, from the number of its rows."""
    ends = torch.as_tensor(counts).long().cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def flatten(
    graphs: Iterable[dict[str, Tensor]], per_edge: tuple[str, ...] = ("edge_attr",)
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    r"""Joins graphs, each a dict of tensors, to flat tensors, their edges sorted by target, then
    source. The rows of :obj:`per_edge` belong to edges and are sorted with them."""
    parts: dict[str, list[Tensor]] = {}
    for graph in graphs:
        source, target = graph["edge_index"]
        order = (target * len(graph["x"]) + source).argsort(stable=True)
        for key, value in graph.items():
            if key == "edge_index":
                value = value[:, order].t()
            elif key in per_edge:
                value = value[order]
            parts.setdefault(key, []).append(value)
    slices = {
        key: slices_of(torch.tensor([len(value) for value in values]))
        for key, values in parts.items()
    }
    tensors = {key: torch.cat(values) for key, values in parts.items()}
    tensors["edge_index"] = tensors["edge_index"].t().contiguous()
    return tensors, slices


def read_npz(path: Path, keys: Iterable[str]) -> list[NDArray[Any]]:
    r"""Reads arrays of a :obj:`.npz` file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[key] for key in keys]
    except DAMAGED as error:
        raise FileError(
            f"{path} is truncated or corrupt, or not a file of this dataset ({error}): get it again"
        ) from error


def file_stamp(path: Path) -> str:
    r"""Returns a digest of size and time, for the name of the processed file."""
    status = path.stat()
    return hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:12]
