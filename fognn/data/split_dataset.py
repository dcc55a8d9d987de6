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

from fognn.data.graph_files import DAMAGED
from fognn.data.sources import cache_dir
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
    :obj:`pre_transform` and :obj:`pre_filter` in it, so a changed setting never reads an old file.

    Args:
        root (str or Path, optional): The folder for processed files. If :obj:`None`, the folder
            :obj:`name` in the cache.
        name (str): The dataset's name, in lower case.
        variant (str): A name for everything that the processed file depends on.
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether a graph is kept. (default: :obj:`None`)
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
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        self._variant = variant
        if pre_transform is not None or pre_filter is not None:
            functions = pickle.dumps((pre_transform, pre_filter), 4)
            self._variant += f"-pre{hashlib.sha256(functions).hexdigest()[:16]}"
        folder = cache_dir() / name if root is None else user_path(root)
        super().__init__(str(folder), transform, pre_transform, pre_filter)
        path = Path(self.processed_paths[0])
        try:
            stored = torch.load(path, weights_only=True)
        except DAMAGED:
            with FileLock(f"{path}.lock"):
                self.process()
            stored = torch.load(path, weights_only=True)
        self._data = Data.from_dict(_widened(stored["tensors"], stored["long"]))
        self.slices = stored["slices"]

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        r"""Returns the flat tensors and, for each of them, where its graphs begin and end."""
        raise NotImplementedError

    @property
    def processed_file_names(self) -> str:
        return f"{self._variant}.pt"

    def process(self) -> None:
        tensors, slices = self.read()
        long = [key for key, value in tensors.items() if value.dtype in (*_SMALL, torch.int64)]
        if self.pre_transform is not None or self.pre_filter is not None:
            data, slices = self._prepared(Data.from_dict(_widened(tensors, long)), slices)
            tensors = data.to_dict()
            long = [key for key, value in tensors.items() if value.dtype == torch.int64]
        stored = {"tensors": _narrowed(tensors), "long": long, "slices": slices}
        with write_whole(Path(self.processed_paths[0])) as temporary:
            torch.save(stored, temporary)

    def _process(self) -> None:
        # PyG's own method takes no lock and remembers one pre_transform for all files.
        path = Path(self.processed_paths[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.exists():
                self.process()

    def _prepared(
        self, data: Data, slices: dict[str, Tensor] | None
    ) -> tuple[Data, dict[str, Tensor]]:
        self._data, self.slices, self._data_list, self._indices = data, slices, None, None
        graphs = [self.get(index) for index in range(self.len())]
        if self.pre_filter is not None:
            graphs = [graph for graph in graphs if self.pre_filter(graph)]
        if self.pre_transform is not None:
            graphs = [self.pre_transform(graph) for graph in graphs]
        self._data_list = None
        if not graphs:
            raise ValueError(f"{type(self).__name__}: pre_filter must keep a graph, it kept none")
        # Not self.collate, which returns no slices for a single graph.
        joined, slices, _ = collate(type(graphs[0]), graphs, increment=False, add_batch=False)
        return joined, slices


def _narrowed(tensors: dict[str, Any]) -> dict[str, Any]:
    narrow = dict(tensors)
    for key, value in tensors.items():
        if value.dtype == torch.int64 and value.numel():
            low, high = (int(bound) for bound in value.aminmax())
            fits = (t for t in _SMALL if torch.iinfo(t).min <= low and high <= torch.iinfo(t).max)
            narrow[key] = value.to(next(fits, torch.int64))
    return narrow


def _widened(tensors: dict[str, Any], long: list[str]) -> dict[str, Any]:
    return {key: value.long() if key in long else value for key, value in tensors.items()}


def slices_of(counts: NDArray[Any] | Tensor) -> Tensor:
    r"""Returns where each graph begins and ends, from the number of its rows."""
    ends = torch.as_tensor(counts).long().cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def flatten(
    graphs: Iterable[dict[str, Tensor]], per_edge: tuple[str, ...] = ("edge_attr",)
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    r"""Joins graphs to flat tensors, their edges sorted by target, then source.

    Args:
        graphs (iterable): The tensors of each graph, all under the same names.
        per_edge (tuple, optional): The names whose rows belong to edges and are sorted with them.
            (default: :obj:`("edge_attr",)`)
    """
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
    r"""Reads arrays of a :obj:`.npz` file.

    Args:
        path (Path): The file.
        keys (iterable): The names of the arrays.
    """
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
