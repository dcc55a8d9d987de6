r"""The four datasets of "Benchmarking Graph Neural Networks": PATTERN, CLUSTER, ZINC and TSP."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch_geometric.datasets
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import extract_zip
from torch_geometric.datasets import GNNBenchmarkDataset

from fognn.data.generators import Graphs, check_sbm, generate_cluster, generate_pattern
from fognn.data.molecules import ATOMS
from fognn.data.pyg_datasets import open_root
from fognn.data.sources import find, retrieve
from fognn.data.split_dataset import SplitDataset, file_stamp, flatten, read_npz, slices_of
from fognn.utils import checks
from fognn.utils.errors import FileError

__all__ = ["CLUSTER", "PATTERN", "TSP", "ZINC", "ZINC_FILE", "neighbour_graph"]

ZINC_FILE = "zinc/zinc12k.npz"
_SPLITS = ("train", "val", "test")
_OFFICIAL_K = 25
Tensors = dict[str, Tensor]


class _BenchmarkFiles(GNNBenchmarkDataset):
    r"""PyG's dataset, downloaded with certificates checked, which PyG does not do."""

    def download(self) -> None:
        archive = retrieve(self.urls[self.name], Path(self.raw_dir) / f"{self.name}.zip")
        extract_zip(str(archive), self.raw_dir)
        archive.unlink()


class _ZincFiles(torch_geometric.datasets.ZINC):
    r"""As above."""

    def download(self) -> None:
        root, raw = Path(self.root), Path(self.raw_dir)
        archive = retrieve(self.url, root / "molecules.zip")
        extract_zip(str(archive), self.root)
        archive.unlink()
        raw.rmdir()
        (root / "molecules").rename(raw)
        for split in _SPLITS:
            retrieve(self.split_url.format(split), raw / f"{split}.index")


def _official(name: str, split: str, data: str | Path | None) -> Any:
    r"""Returns the published graphs of PATTERN, CLUSTER or TSP, which PyG has."""

    def opened(root: Path) -> Any:
        return _BenchmarkFiles(str(root), name, split)

    hint = f"unpack {GNNBenchmarkDataset.urls[name]} into pyg/GNNBenchmarkDataset/{name}/raw"
    return open_root(name, f"GNNBenchmarkDataset-{name}", GNNBenchmarkDataset, opened, data, hint)


class _SBM(SplitDataset):
    _generate: ClassVar[Callable[..., Graphs]]

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        seed: int = 0,
        num_graphs: int | None = None,
        source: str = "generated",
        data: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__
        checks.one_of(name, "source", source, ("generated", "official"))
        self._count = check_sbm(name, split, num_graphs, seed)
        self.split, self.seed, self.source, self._folder = split, seed, source, data
        made = f"seed{seed}" if source == "generated" else "official"
        variant = f"{name.lower()}-v1-{made}-{split}-{self._count}"
        super().__init__(root, name.lower(), variant, **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        if self.source == "official":
            graphs = _official(type(self).__name__, self.split, self._folder)
            return flatten(
                # PyG's file has the tokens one-hot.
                {"x": graph.x.argmax(1), "edge_index": graph.edge_index, "y": graph.y.long()}
                for graph in islice(graphs, self._count)
            )
        made = type(self)._generate(self.split, self._count, self.seed)
        nodes, edges = slices_of(made.n), slices_of(made.e)
        tensors = {key: torch.from_numpy(getattr(made, key)) for key in ("x", "edge_index", "y")}
        return tensors, {"x": nodes, "edge_index": edges, "y": nodes}


class PATTERN(_SBM):
    r"""PATTERN of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: which nodes belong to a pattern
    that is hidden in a stochastic block model?

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 2), :obj:`edge_index` (both directions,
    no self loops, sorted by target, then source) and :obj:`y` (int64, ``[N]``, 0 or 1).
    :meth:`~fognn.data.generate_pattern` describes how graphs are generated.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: 10,000, 2,000 and
            2,000 graphs. (default: :obj:`"train"`)
        seed (int, optional): The seed of generated graphs. The same seed gives the same graphs on
            every machine. (default: :obj:`0`)
        num_graphs (int, optional): Only the first graphs of the split. (default: :obj:`None`)
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for the published graphs
            of :class:`~torch_geometric.datasets.GNNBenchmarkDataset`.
            (default: :obj:`"generated"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        **kwargs (optional): :obj:`transform` and :obj:`pre_transform` of
            :class:`~torch_geometric.data.InMemoryDataset`.
    """

    _generate = staticmethod(generate_pattern)


class CLUSTER(_SBM):
    r"""CLUSTER of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: to which of six blocks does each
    node belong, given one node of each?

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 6), :obj:`edge_index` and :obj:`y` (int64,
    ``[N]``, 0 to 5). :meth:`~fognn.data.generate_cluster` describes how graphs are generated. The
    arguments are those of :class:`PATTERN`; the splits have 10,000, 1,000 and 1,000 graphs.
    """

    _generate = staticmethod(generate_cluster)


class ZINC(SplitDataset):
    r"""The 12,000 molecules of ZINC of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper, and their penalised logP.

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 27 in the order of
    :obj:`fognn.data.ATOMS`), :obj:`edge_index` (both directions, sorted by target, then
    source), :obj:`edge_attr` (int64, ``[E]``, bonds 1 to 3) and :obj:`y` (float32, ``[1]``).

    They are read from :obj:`zinc/zinc12k.npz` in the data folder or the cache, with
    :obj:`{split}_{n,e,x,edge_index,edge_attr,y}`. If it is not there, the files of
    :class:`torch_geometric.datasets.ZINC` are downloaded, which give the same molecules with
    another order of atoms; they are pickles, which PyG runs.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: 10,000, 1,000 and
            1,000 molecules. (default: :obj:`"train"`)
        without_node_features (bool, optional): If :obj:`True`, every atom is token 0, as in the
            paper's study of limitations: molecules differ in their bonds only.
            (default: :obj:`False`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        **kwargs (optional): As in :class:`PATTERN`.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        without_node_features: bool = False,
        data: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        checks.one_of("ZINC", "split", split, _SPLITS)
        self.split, self._folder = split, data
        self._without_node_features = without_node_features
        self._path = find(ZINC_FILE, data)
        made = "pyg" if self._path is None else f"npz-{file_stamp(self._path)}"
        variant = f"zinc-v1-12k-{made}-{split}{'-all-atoms-0' * without_node_features}"
        super().__init__(root, "zinc", variant, **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        if self._path is not None:
            tensors, slices = _read_zinc(self._path, self.split)
        else:
            tensors, slices = flatten(
                {
                    "x": graph.x.reshape(-1).long(),
                    "edge_index": graph.edge_index,
                    "edge_attr": graph.edge_attr.long(),
                    "y": graph.y.float().reshape(1),
                }
                for graph in self._official()
            )
        if self._without_node_features:
            tensors["x"] = torch.zeros_like(tensors["x"])
        return tensors, slices

    def _official(self) -> Any:
        def opened(root: Path) -> Any:
            return _ZincFiles(str(root), subset=True, split=self.split)

        kind = torch_geometric.datasets.ZINC
        index = kind.split_url.format("{train,val,test}")
        hint = f"put {ZINC_FILE}, or the unpacked {kind.url} and {index} in pyg/ZINC/raw"
        return open_root("ZINC", "ZINC", kind, opened, self._folder, hint)


def _read_zinc(path: Path, split: str) -> tuple[Tensors, Tensors]:
    names = ("n", "e", "x", "edge_index", "edge_attr", "y")
    n, e, x, edge_index, edge_attr, y = read_npz(path, (f"{split}_{name}" for name in names))
    n, e = n.astype(np.int64), e.astype(np.int64)
    right = len(n) == len(e) == len(y) and len(x) == n.sum()
    right = right and edge_index.shape == (2, e.sum()) and len(edge_attr) == e.sum()
    if not right or x.max() >= len(ATOMS) or (edge_index >= np.repeat(n, e)).any():
        raise FileError(f"{path} is not a ZINC file: the arrays of {split} do not fit together")
    graph = np.repeat(np.arange(len(e)), e)
    order = np.lexsort((edge_index[0], edge_index[1], graph))
    tensors = {
        "x": torch.from_numpy(x),
        "edge_index": torch.from_numpy(edge_index[:, order]),
        "edge_attr": torch.from_numpy(edge_attr[order]),
        "y": torch.from_numpy(y.astype(np.float32)),
    }
    nodes, edges = slices_of(n), slices_of(e)
    one = torch.arange(len(n) + 1)
    return tensors, {"x": nodes, "edge_index": edges, "edge_attr": edges, "y": one}


class TSP(SplitDataset):
    r"""TSP of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: does the tour of a travelling
    salesman use an edge?

    50 to 500 points are uniform in the unit square. Each has an edge *to* each of its 25 nearest
    others, so the graph is directed. A graph has :obj:`x` (float32, ``[N, 2]``, coordinates),
    :obj:`edge_index` (sorted by target, then source), :obj:`edge_attr` (float32, ``[E, 1]``,
    Euclidean distance) and :obj:`y` (int64, ``[E]``, 1 where the tour uses the edge in either
    direction).

    The graphs are read from :obj:`tsp/tsp_{split}.npz` in the data folder or the cache, with the
    number of points of each instance :obj:`n`, all coordinates :obj:`c` and all tours :obj:`t`, in
    visiting order. If it is not there, the published graphs of
    :class:`~torch_geometric.datasets.GNNBenchmarkDataset` are downloaded.

    .. note::
        The tours of the published graphs are *not* shortest in the plane. They are optimal for the
        GEO metric of the solver Concorde, which takes coordinates for degrees on the globe. The
        prepared files hold Euclidean tours, so figures of the two do not compare exactly. And the
        authors wrote their file as train, val, test, and their loader reads it as train, test,
        val: published test figures are those of the list that was written as val. PyG does not
        document in which of the two orders it took them.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: 10,000, 1,000 and
            1,000 graphs. (default: :obj:`"train"`)
        k (int, optional): The number of neighbours. (default: :obj:`25`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        **kwargs (optional): As in :class:`PATTERN`.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        k: int = _OFFICIAL_K,
        data: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        checks.one_of("TSP", "split", split, _SPLITS)
        checks.positive_int("TSP", "k", k)
        self.split, self.k, self._folder = split, k, data
        self._path = find(f"tsp/tsp_{split}.npz", data)
        if self._path is None and k != _OFFICIAL_K:
            raise ValueError(f"TSP: k must be 25 for the published graphs, got {k}")
        made = "official" if self._path is None else f"prepared-{file_stamp(self._path)}"
        super().__init__(root, "tsp", f"tsp-v1-{made}-k{k}-{split}", **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        if self._path is not None:
            return _read_tours(self._path, self.k)
        return flatten(
            (
                {
                    "x": graph.x.float(),
                    "edge_index": graph.edge_index,
                    "edge_attr": graph.edge_attr.float().reshape(-1, 1),
                    "y": graph.y.long(),
                }
                for graph in _official("TSP", self.split, self._folder)
            ),
            per_edge=("edge_attr", "y"),
        )


def neighbour_graph(
    coordinates: NDArray[np.float32], tour: NDArray[Any], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]:
    r"""Joins each point to its :obj:`k` nearest others and marks the edges of a tour.

    Distances are compared in double precision; of two others at the same distance the one with
    the lower number is nearer. (scipy's :obj:`cKDTree` leaves the order of ties open.) Returns
    :obj:`edge_index`, sorted by target, then source, the distances, and whether the tour uses the
    edge.
    """
    n = len(coordinates)
    wide = coordinates.astype(np.float64)
    squares = (wide[:, None, 0] - wide[:, 0]) ** 2 + (wide[:, None, 1] - wide[:, 1]) ** 2
    np.fill_diagonal(squares, np.inf)
    reach = np.partition(squares, k - 1, axis=1)[:, k - 1 : k]
    near = squares <= reach
    # Ties at the last place are rare, so only their rows are sorted.
    for row in (near.sum(1) > k).nonzero()[0]:
        near[row, squares[row].argsort(kind="stable")[k:]] = False
    used = np.zeros((n, n), dtype=bool)
    after = np.roll(tour, -1)
    used[tour, after] = used[after, tour] = True
    target, source = near.T.nonzero()
    distances = np.sqrt(squares[source, target]).astype(np.float32)
    return np.stack([source, target]), distances, used[source, target]


def _read_tours(path: Path, k: int) -> tuple[Tensors, Tensors]:
    n, c, t = read_npz(path, "nct")
    n, t = n.astype(np.int64), t.astype(np.int64)
    if c.shape != (n.sum(), 2) or t.shape != (n.sum(),):
        raise FileError(
            f"{path} is not a TSP file: c and t must have {n.sum()} rows, got {c.shape}, {t.shape}"
        )
    if n.min() <= k:
        raise ValueError(f"TSP: k must be below {n.min()}, the points of an instance, got {k}")
    ends = n.cumsum()
    edge_index = np.empty((2, k * len(t)), dtype=np.int16)
    edge_attr = np.empty((k * len(t), 1), dtype=np.float32)
    y = np.empty(k * len(t), dtype=np.uint8)
    for number, (size, end) in enumerate(zip(n, ends, strict=True)):
        nodes, edges = slice(end - size, end), slice(k * (end - size), k * end)
        if not np.array_equal(np.sort(t[nodes]), np.arange(size)):
            raise FileError(f"{path}: the tour of instance {number} is not a permutation")
        edge_index[:, edges], edge_attr[edges, 0], y[edges] = neighbour_graph(c[nodes], t[nodes], k)
    tensors = {"x": c.astype(np.float32), "edge_index": edge_index, "edge_attr": edge_attr, "y": y}
    nodes_at, edges_at = slices_of(n), slices_of(k * n)
    return (
        {key: torch.from_numpy(value) for key, value in tensors.items()},
        {"x": nodes_at, "edge_index": edges_at, "edge_attr": edges_at, "y": edges_at},
    )
