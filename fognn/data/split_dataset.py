r"""One split of a dataset as flat tensors: made once, kept on disk, read back."""

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.data.collate import collate

from fognn.data.graph_checks import NAMES, GraphList
from fognn.data.sources import cache_dir
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, check_regular, disk_error, user_path, write_whole
from fognn.utils.npz_files import load_npz
from fognn.utils.torch_files import check_sums, is_zip, load_torch

__all__ = ["SplitDataset", "file_stamp", "flatten", "read_benchmark", "read_npz", "slices_of"]

_SMALL = (torch.uint8, torch.int8, torch.int16, torch.int32)


class SplitDataset(InMemoryDataset):
    r"""One split of a dataset, a :class:`torch_geometric.data.InMemoryDataset`.

    A subclass calls this constructor and defines :meth:`read`. Three things differ from PyG's base
    class. Integers are stored in the smallest type that holds them and are :obj:`torch.int64` in
    memory. The processed file is written whole and under a lock, so if two processes open the
    dataset at once, one of them does the work; a file whose checksums are wrong is made again. And
    the name of the processed file has
    :obj:`variant` and a digest of the pickled :obj:`pre_transform` and :obj:`pre_filter` in it, so
    a changed setting never reads an old file. A function that cannot be pickled (a lambda) is
    applied each time the dataset is opened, and its result is not stored.

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
        self._digest = _digest(pre_transform, pre_filter)
        folder = cache_dir() / name if root is None else user_path(root)
        super().__init__(str(folder), transform, pre_transform, pre_filter)
        self._load_or_make(Path(self.processed_paths[0]))
        if self._digest is None:
            self._data, self.slices = self._prepared(self._data, self.slices)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        r"""Returns the flat tensors and, for each of them, where its graphs begin and end."""
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
        # PyG's own method takes no lock and remembers one pre_transform for all files.
        path = Path(self.processed_paths[0])
        if path.exists():
            return
        with _locked(path):
            # Another process may have done the work while this one waited.
            if not path.exists():
                self.process()

    def _load_or_make(self, path: Path) -> None:
        r"""Loads the processed file; makes it again if it is damaged."""
        try:
            self._load(path)
        except DAMAGE:
            with _locked(path):
                try:
                    self._load(path)  # another process may have made it again
                except DAMAGE:
                    self.process()
                    self._load(path)

    def _load(self, path: Path) -> None:
        check_sums(path)
        stored = load_torch(path)
        _check_stored(stored["tensors"], stored["slices"])
        self._data = Data.from_dict(_widened(stored["tensors"], stored["long"]))
        self.slices = stored["slices"]

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


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = FileLock(f"{path}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise disk_error(path, error) from error
    try:
        yield
    finally:
        lock.release()


def _digest(*functions: Callable[..., Any] | None) -> str | None:
    if all(function is None for function in functions):
        return ""
    try:
        return f"-pre{hashlib.sha256(pickle.dumps(functions, 4)).hexdigest()[:16]}"
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def _check_stored(tensors: dict[str, Any], slices: dict[str, Tensor]) -> None:
    r"""Raises for a file with right checksums that is not one of these: its graphs must be cut
    from the tensors without a remainder, and edges must be between nodes of their graph."""
    if not {"edge_index"} <= slices.keys() <= tensors.keys():
        raise ValueError(f"it has {sorted(tensors)} and the slices of {sorted(slices)}")
    graphs = len(slices["edge_index"]) - 1
    for name, ends in slices.items():
        value = tensors[name]
        if not isinstance(value, Tensor):
            continue  # of a transform
        rows = value.size(1 if name == "edge_index" else 0) if value.dim() else 0
        wrong = ends.dim() != 1 or len(ends) != graphs + 1 or int(ends[0]) != 0
        if wrong or int(ends[-1]) != rows or bool((ends.diff() < 0).any()):
            raise ValueError(f"the slices of {name} do not fit its {rows} rows")
    if "x" in slices and isinstance(tensors["x"], Tensor):
        ends = slices["edge_index"]
        some = ends.diff() > 0
        edges = tensors["edge_index"].numpy()
        if edges.size:
            # Not a number of nodes for each edge, which would take more memory than the edges.
            last = np.maximum.reduceat(edges, ends[:-1][some].numpy(), axis=1).max(axis=0)
            if edges.min() < 0 or (last >= slices["x"].diff()[some].numpy()).any():
                raise ValueError("an edge is to a node that its graph does not have")


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
    r"""Returns where each graph begins and ends, from the number of its rows."""
    ends = torch.as_tensor(counts).long().cumsum(0)
    return torch.cat([ends.new_zeros(1), ends])


def flatten(
    graphs: Iterable[dict[str, Tensor]], per_edge: tuple[str, ...] = ("edge_attr",)
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    r"""Joins graphs to flat tensors, their edges sorted by target, then source.

    PyG's :meth:`~torch_geometric.data.InMemoryDataset.collate` does not sort.

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


def read_npz(
    path: Path, keys: Iterable[str], kinds: str = "biufU", dims: Sequence[int] | None = None
) -> dict[str, NDArray[Any]]:
    r"""Reads arrays of a :obj:`.npz` file; raises a :class:`FileError` if it is damaged.

    Args:
        path (Path): The file.
        keys (iterable): The names of the arrays.
        kinds (str, optional): The letters of numpy for the kinds of types that they may have.
            (default: :obj:`"biufU"`)
        dims (sequence, optional): The number of dimensions of each. (default: any)
    """
    try:
        wanted = list(keys)
        arrays = load_npz(path, wanted)
        for number, key in enumerate(wanted):
            array, dim = arrays[key], None if dims is None else dims[number]
            if array.dtype.kind not in kinds or (array.itemsize > 8 and array.dtype.kind != "U"):
                raise ValueError(f"{key} has the type {array.dtype}")
            if dim is not None and array.ndim != dim:
                raise ValueError(f"{key} must have {dim} dimensions, got shape {array.shape}")
        return {key: arrays[key] for key in wanted}
    except DAMAGE as error:
        raise FileError(
            f"{path} is not a whole .npz file of this dataset ({error}): get it again"
        ) from error


def read_benchmark(path: Path, split: str, level: str) -> list[Data]:
    r"""Reads the graphs of a raw file of :class:`~torch_geometric.datasets.GNNBenchmarkDataset`.

    Such a file is a list of the splits train, val and test, each a list of dicts of tensors. It is
    read without running anything that it names, and every graph is checked.

    Args:
        path (Path): The file.
        split (str): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
        level (str): Whether a label belongs to a :obj:`"node"` or to an :obj:`"edge"`.
    """
    checked = GraphList()
    try:
        check_regular(path)
        if is_zip(path):  # torch's format before version 1.6 has no checksums
            check_sums(path)
        for number, graph in enumerate(load_torch(path)[("train", "val", "test").index(split)]):
            where = f"{split} graph {number}"
            checked.add(where, Data(**{name: graph[name] for name in NAMES if name in graph}))
            graph = checked.graphs[-1]
            rows = graph.num_nodes if level == "node" else graph.num_edges
            if level == "edge" and "edge_attr" not in graph:
                raise ValueError(f"{where} must have edge_attr, it has only {graph.keys()}")
            if "y" not in graph or len(graph.y) != rows:
                raise ValueError(f"{where}: y must have a row for each {level}, {rows} in all")
        if not checked.graphs:
            raise ValueError(f"the split {split!r} has no graph")
    except DAMAGE as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise FileError(
            f"{path} is not a whole raw file of GNNBenchmarkDataset ({reason}): remove it and get "
            "it again"
        ) from error
    return checked.graphs


def file_stamp(path: Path) -> str:
    r"""Returns a digest of size and time, for the name of the processed file."""
    status = path.stat()
    return hashlib.sha256(f"{status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:12]
