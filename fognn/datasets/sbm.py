r"""PATTERN and CLUSTER, and the way in which a split lies on disk."""

import hashlib
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.io import fs

from fognn.datasets.files import disk_error, write_whole
from fognn.datasets.sbm_generator import (
    SBMGraphs,
    check_arguments,
    generate_cluster,
    generate_pattern,
)
from fognn.datasets.sources import Source, SourceError, cache_dir, fetch
from fognn.datasets.unpickle import load_official

__all__ = [
    *("CLUSTER", "PATTERN"),
    *("SplitDataset", "fingerprint", "flatten", "read_npz", "slices_of"),
]

_SMALL = (torch.uint8, torch.int8, torch.int16, torch.int32)
# What numpy, zipfile and torch raise for files that are cut short or have a wrong byte.
_DAMAGE = (
    *(OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, RuntimeError),
    *(ArithmeticError, MemoryError, struct.error, pickle.UnpicklingError),
    *(zipfile.BadZipFile, zlib.error),
)


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
            stored = fs.torch_load(str(path))
            self._data = Data.from_dict(_widened(stored["tensors"], stored["long"]))
            self.slices = stored["slices"]
        except _DAMAGE as error:
            raise SourceError(
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
    except _DAMAGE as error:
        raise SourceError(
            f"{path} is not a whole .npz file of this dataset ({error}): get it again"
        ) from error


def fingerprint(path: Path) -> str:
    r"""Changes when the file changes; the name of a processed file carries it."""
    status = path.stat()
    return hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:12]


class _SBM(SplitDataset):
    _generate: ClassVar[Callable[..., SBMGraphs]]

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        seed: int = 0,
        num_graphs: int | None = None,
        source: str = "generated",
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        name = type(self).__name__
        if source not in ("generated", "official"):
            raise ValueError(f"{name}: source must be 'generated' or 'official', got {source!r}")
        self._count = check_arguments(name, split, num_graphs, seed)
        self.split, self.seed, self._official = split, seed, None
        made = f"seed{seed}"
        if source == "official":
            self._official = fetch(_official_source(name), data)
            made = f"official-{fingerprint(self._official)}"
        variant = f"{name.lower()}-v1-{made}-{split}-{self._count}"
        super().__init__(root, name.lower(), variant, transform, pre_transform, pre_filter)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._official is not None:
            return self._read_official(self._official)
        graphs = type(self)._generate(self.split, self._count, self.seed)
        nodes, edges = slices_of(graphs.n), slices_of(graphs.e)
        tensors = {key: torch.from_numpy(getattr(graphs, key)) for key in ("x", "edge_index", "y")}
        return tensors, {"x": nodes, "edge_index": edges, "y": nodes}

    def _read_official(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        graphs = load_official(path)[self.split]
        if len(graphs) < self._count:
            raise ValueError(
                f"{type(self).__name__}: num_graphs must be at most {len(graphs)}, which is what "
                f"{path} holds for {self.split!r}, got {self._count}"
            )
        return flatten(
            {
                "x": graph.ndata["feat"].reshape(-1).long(),
                "edge_index": torch.stack([graph.src, graph.dst]),
                "y": graph.labels.reshape(-1).long(),
            }
            for graph in graphs[: self._count]
        )


def _official_source(name: str) -> Source:
    file = f"SBM_{name}.pkl"
    url = f"https://data.dgl.ai/dataset/benchmarking-gnns/{file}"
    return Source(f"SBMs/{file}", url, hint=f"get it from {url}")


class PATTERN(_SBM):
    r"""PATTERN of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: which nodes belong to a pattern
    that hides in a stochastic block model?

    See :meth:`~fognn.datasets.sbm_generator.generate_pattern` for the law of
    the graphs. Each has :obj:`x` (int64, ``[N]``, tokens 0 to 2),
    :obj:`edge_index` (both directions, no self loops, sorted by target, then
    source) and :obj:`y` (int64, ``[N]``, 0 or 1).

    Args:
        root (str or Path, optional): Where processed files go.
            (default: a folder in the cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`:
            10,000, 2,000 and 2,000 graphs.
        seed (int, optional): The seed of generated graphs. The same seed gives
            the same graphs on every machine.
        num_graphs (int, optional): Only the first graphs of the split.
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for
            the published file :obj:`SBMs/SBM_PATTERN.pkl` in the data folder.
        data (str or Path, optional): The data folder.
            (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access.
        pre_transform (callable, optional): Applied before saving to disk.
        pre_filter (callable, optional): Says which graphs are kept.
    """

    _generate = staticmethod(generate_pattern)


class CLUSTER(_SBM):
    r"""CLUSTER of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: to which of six blocks does each
    node belong, given one node of each?

    See :meth:`~fognn.datasets.sbm_generator.generate_cluster` for the law of
    the graphs. Each has :obj:`x` (int64, ``[N]``, tokens 0 to 6),
    :obj:`edge_index` (both directions, no self loops, sorted by target, then
    source) and :obj:`y` (int64, ``[N]``, 0 to 5).

    Args:
        root (str or Path, optional): Where processed files go.
            (default: a folder in the cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`:
            10,000, 1,000 and 1,000 graphs.
        seed (int, optional): The seed of generated graphs. The same seed gives
            the same graphs on every machine.
        num_graphs (int, optional): Only the first graphs of the split.
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for
            the published file :obj:`SBMs/SBM_CLUSTER.pkl` in the data folder.
        data (str or Path, optional): The data folder.
            (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access.
        pre_transform (callable, optional): Applied before saving to disk.
        pre_filter (callable, optional): Says which graphs are kept.
    """

    _generate = staticmethod(generate_cluster)
