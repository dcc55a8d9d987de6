r"""One split of a dataset: how it lies on disk, and how it gets there."""

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from fognn.datasets.sources import cache_dir
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, disk_error, write_whole
from fognn.utils.torch_files import load_torch

__all__ = ["SplitDataset"]

_SMALL = (torch.uint8, torch.int8, torch.int16, torch.int32)


class SplitDataset(InMemoryDataset):
    r"""One split of a dataset, kept on disk in small integers.

    A subclass sets what it needs, calls this constructor and defines
    :meth:`read`. The processed file is written whole and under a lock, so two
    processes do the work once. Integers lie on disk in the smallest type that
    holds them and are :obj:`torch.int64` in memory.

    The name of the processed file carries :obj:`variant` and a digest of the
    pickled :obj:`pre_transform` and :obj:`pre_filter`: a changed setting never
    reads an old file. What cannot be pickled (a lambda) has no such digest; it
    is applied each time the dataset is opened, and nothing of it is stored.

    Args:
        root (str or Path, optional): Where processed files go.
            If :obj:`None`, the folder :obj:`name` in the cache.
        name (str): The dataset's name, in lower case.
        variant (str): All that the processed file depends on.
        transform (callable, optional): Applied at every access.
        pre_transform (callable, optional): Applied before saving to disk.
        pre_filter (callable, optional): Says which graphs are kept.
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
        self._digest = _digest(pre_transform, pre_filter)
        folder = cache_dir() / name if root is None else Path(root).expanduser()
        super().__init__(str(folder), transform, pre_transform, pre_filter)
        self._load(Path(self.processed_paths[0]))
        if self._digest is None:
            self._data, self.slices = self._prepared(self._data, self.slices)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        r"""Gives the flat tensors and, for each, where its graphs begin and end."""
        raise NotImplementedError

    @property
    def processed_file_names(self) -> str:
        return f"{self._variant}{self._digest or ''}.pt"

    def process(self) -> None:
        tensors, slices = self.read()
        long = [key for key, value in tensors.items() if value.dtype in (*_SMALL, torch.int64)]
        if self._digest:
            data, slices = self._prepared(Data.from_dict(_widened(tensors, long)), slices)
            tensors = data.to_dict()
            long = [key for key, value in tensors.items() if _is_long(value)]
        stored = {"tensors": _narrowed(tensors), "long": long, "slices": slices}
        with write_whole(Path(self.processed_paths[0])) as temporary:
            torch.save(stored, temporary)

    def _process(self) -> None:
        # PyG's own method knows no lock and remembers one pre_transform for all files.
        path = Path(self.processed_paths[0])
        if path.exists():
            return
        lock = FileLock(f"{path}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise disk_error(path, error) from error
        try:
            # Who held the lock before us may have done the work.
            if not path.exists():
                self.process()
        finally:
            lock.release()

    def _load(self, path: Path) -> None:
        try:
            stored = load_torch(path)
            self._data = Data.from_dict(_widened(stored["tensors"], stored["long"]))
            self.slices = stored["slices"]
        except DAMAGE as error:
            raise FileError(
                f"{path} is damaged ({type(error).__name__}): remove it, it will be made again"
            ) from error

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
        return self.collate(graphs)


def _digest(*functions: Callable[..., Any] | None) -> str | None:
    if all(function is None for function in functions):
        return ""
    try:
        return f"-pre{hashlib.sha256(pickle.dumps(functions, 4)).hexdigest()[:16]}"
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def _is_long(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.int64


def _narrowed(tensors: dict[str, Any]) -> dict[str, Any]:
    narrow = dict(tensors)
    for key, value in tensors.items():
        if _is_long(value) and value.numel():
            low, high = (int(bound) for bound in value.aminmax())
            fits = (t for t in _SMALL if torch.iinfo(t).min <= low and high <= torch.iinfo(t).max)
            narrow[key] = value.to(next(fits, torch.int64))
    return narrow


def _widened(tensors: dict[str, Any], long: list[str]) -> dict[str, Any]:
    return {key: value.long() if key in long else value for key, value in tensors.items()}
