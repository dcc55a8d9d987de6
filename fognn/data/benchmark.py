r"""Datasets of "Benchmarking Graph Neural Networks" that are read from files, and IMDB-MULTI."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.graph_files import check_graphs, separated
from fognn.data.pyg_datasets import open_benchmark, open_zinc
from fognn.data.sources import SPLITS, fetch, find, reading
from fognn.data.split_dataset import SplitDataset, Tensors, file_stamp, flatten, read_npz
from fognn.utils import checks
from fognn.utils.errors import FileError

_K = 25  # neighbours of a point of TSP


class ZINC(SplitDataset):
    r"""The 12,000 molecules of ZINC of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper, split 10 : 1 : 1, and their penalised logP.

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 27 in the order of
    :obj:`fognn.data.ATOMS`), :obj:`edge_index` (both directions, sorted by target, then
    source), :obj:`edge_attr` (int64, ``[E]``, bonds 1 to 3) and :obj:`y` (float32, ``[1]``).

    They are read from :obj:`zinc/zinc12k.npz` in the data folder or the cache, with
    :obj:`{split}_{n,e,x,edge_index,edge_attr,y}`. If it is not there, the files of
    :class:`torch_geometric.datasets.ZINC` are downloaded, which give the same molecules with
    another order of atoms; they are pickles, which PyG runs.

    Args:
        without_node_features (bool, optional): If :obj:`True`, every atom is token 0, as in the
            paper's study of limitations. (default: :obj:`False`)
        root, split, data, **kwargs (optional): As in :class:`PATTERN`.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        without_node_features: bool = False,
        data: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        checks.one_of("ZINC", "split", split, SPLITS)
        self.split, self._folder = split, data
        self._without_node_features = without_node_features
        self._path = find("zinc/zinc12k.npz", data)
        made = "pyg" if self._path is None else f"npz-{file_stamp(self._path)}"
        variant = f"zinc-v1-12k-{made}-{split}{'-all-atoms-0' * without_node_features}"
        super().__init__(root, "zinc", variant, **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        graphs: Iterable[Data]
        if self._path is None:
            graphs = open_zinc(self.split, self._folder)
        else:
            names = ("n", "e", "x", "edge_index", "edge_attr", "y")
            arrays = read_npz(self._path, (f"{self.split}_{name}" for name in names))
            flat = dict(zip(names, map(torch.from_numpy, arrays), strict=True))
            where = f"{self._path}, {self.split}"
            graphs = check_graphs(where, separated(where, flat | {"y_level": "graph"}))
        tensors, slices = flatten(graphs)
        tensors["x"] = tensors["x"].reshape(-1)  # PyG's tokens are [N, 1]
        if self._without_node_features:
            tensors["x"].zero_()
        return tensors, slices


class TSP(SplitDataset):
    r"""TSP of the `"Benchmarking Graph Neural Networks" <https://arxiv.org/abs/2003.00982>`_
    paper: does the tour of a travelling salesman use an edge?

    50 to 500 points are uniform in the unit square. Each has an edge *to* each of its 25 nearest
    others, so the graph is directed. A graph has :obj:`x` (float32, ``[N, 2]``, coordinates),
    :obj:`edge_index` (sorted by target, then source), :obj:`edge_attr` (float32, ``[E, 1]``,
    Euclidean distance) and :obj:`y` (int64, ``[E]``, 1 where the tour uses the edge in either
    direction).

    The graphs are read from :obj:`tsp/tsp_{split}.npz` in the data folder or the cache, with the
    number of points of each instance :obj:`n`, all coordinates :obj:`c` and all tours :obj:`t`, in
    visiting order. If it is not there, the published graphs of
    :class:`~torch_geometric.datasets.GNNBenchmarkDataset` are downloaded, whose tours and splits
    are others: see the page *Data*.

    Args:
        root, split, data, **kwargs (optional): As in :class:`PATTERN`; the splits have 10,000,
            1,000 and 1,000 graphs.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        data: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        checks.one_of("TSP", "split", split, SPLITS)
        self.split, self._folder = split, data
        self._path = find(f"tsp/tsp_{split}.npz", data)
        made = "official" if self._path is None else f"prepared-{file_stamp(self._path)}"
        super().__init__(root, "tsp", f"tsp-v1-{made}-k{_K}-{split}", **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        if self._path is not None:
            return flatten(_tours(self._path))
        tensors, slices = flatten(open_benchmark("TSP", self.split, self._folder))
        tensors["edge_attr"] = tensors["edge_attr"].float().reshape(-1, 1)
        return tensors | {"x": tensors["x"].float(), "y": tensors["y"].long()}, slices


def neighbour_graph(
    coordinates: NDArray[np.float32], tour: NDArray[Any], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]:
    r"""Joins each point to its :obj:`k` nearest others; of two at the same distance the first is
    nearer. Returns :obj:`edge_index`, the distances, and whether a tour uses the edge."""
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


def _tours(path: Path) -> Iterator[Data]:
    n, c, t = read_npz(path, "nct")
    ends = n.cumsum(dtype=np.int64)
    if c.shape != (ends[-1], 2) or t.shape != (ends[-1],):
        raise FileError(f"{path} is not a TSP file: {c.shape} and {t.shape} for {ends[-1]} points")
    parts = zip(np.split(c, ends[:-1]), np.split(t, ends[:-1]), strict=True)
    for number, (points, tour) in enumerate(parts):
        if not np.array_equal(np.sort(tour), np.arange(len(tour))):
            raise FileError(f"{path}: the tour of instance {number} is not a permutation")
        edge_index, distances, used = neighbour_graph(points, tour, _K)
        yield Data(
            x=torch.from_numpy(points).float(),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=torch.from_numpy(distances)[:, None],
            y=torch.from_numpy(used).byte(),
        )


class IMDBMulti(SplitDataset):
    r"""The IMDB-MULTI dataset of the `"Deep Graph Kernels"
    <https://dl.acm.org/doi/10.1145/2783258.2783417>`_ paper: 1,500 graphs, 500 of each of three
    classes, 19,502 nodes and 98,903 undirected edges.

    A node has the single feature 1, and each edge is there in both directions. The dataset has no
    fixed split, but ten :meth:`folds`. It is read from :obj:`imdb_multi/IMDBMULTI.txt` as in the
    DGCNN code, which is downloaded if it is not there.

    Args:
        root, data, **kwargs (optional): As in :class:`PATTERN`.
    """

    def __init__(
        self, root: str | Path | None = None, data: str | Path | None = None, **kwargs: Any
    ) -> None:
        self._folder = data
        self._path = fetch("imdb_multi/IMDBMULTI.txt", data)
        super().__init__(root, "imdb_multi", f"text-{file_stamp(self._path)}-v1", **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        return flatten(_read_text(self._path))

    def folds(self) -> list[tuple[Tensor, Tensor]]:
        r"""Returns the ten folds that come with the text file: indices to train and to test on."""
        folds = []
        for fold in range(1, 11):
            names = (f"imdb_multi/10fold_idx/{part}_idx-{fold}.txt" for part in ("train", "test"))
            paths = [fetch(name, self._folder) for name in names]
            train, test = (np.loadtxt(path, dtype=np.int64, ndmin=1) for path in paths)
            if sorted([*train, *test]) != list(range(self.len())):
                raise FileError(f"fold {fold} of IMDB-MULTI must name each graph once: get it anew")
            folds.append((torch.from_numpy(train), torch.from_numpy(test)))
        return folds


def _read_text(path: Path) -> Iterator[Data]:
    r"""Reads: number of graphs; a graph: nodes, label; a node: tag, degree, neighbours."""
    with reading(path):
        lines = path.read_text(encoding="ascii").splitlines()
        rows = [[int(word) for word in line.split()] for line in reversed(lines)]
        for _ in range(rows.pop()[0]):
            size, label = rows.pop()
            pairs = [(other, node) for node in range(size) for other in rows.pop()[2:]]
            edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
            graph = Data(x=torch.ones(size, 1), edge_index=edge_index, y=torch.tensor([label]))
            graph.validate()
            yield graph
