r"""TSP: the edges of a nearest-neighbour graph that the shortest tour uses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.benchmark import benchmark_graphs
from fognn.data.sources import find
from fognn.data.split_dataset import SplitDataset, file_stamp, flatten, read_npz, slices_of
from fognn.utils import checks
from fognn.utils.errors import FileError

__all__ = ["TSP", "neighbour_graph"]

_OFFICIAL_K = 25


class TSP(SplitDataset):
    r"""TSP of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: does the tour of a travelling
    salesman use an edge?

    50 to 500 points are uniform in the unit square. Each has an edge *to* each of its :obj:`k`
    nearest others, so the graph is directed. A graph has :obj:`x` (float32, ``[N, 2]``,
    coordinates), :obj:`edge_index` (sorted by target, then source), :obj:`edge_attr` (float32,
    ``[E, 1]``, Euclidean distance) and :obj:`y` (int64, ``[E]``, 1 where the tour uses the edge in
    either direction).

    The graphs are read from :obj:`tsp/tsp_{split}.npz` in the data folder or the cache, as
    :meth:`~fognn.data.generate_tsp` writes it. If it is not there, the published graphs of
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
        k (int, optional): The number of neighbours; 25 in the published graphs.
            (default: :obj:`25`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether a graph is kept. (default: :obj:`None`)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        k: int = 25,
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        checks.one_of("TSP", "split", split, ("train", "val", "test"))
        checks.positive_int("TSP", "k", k)
        self.split, self.k, self._folder = split, k, data
        self._path = find(f"tsp/tsp_{split}.npz", data)
        if self._path is None and k != _OFFICIAL_K:
            raise ValueError(f"TSP: k must be 25 for the published graphs, got {k}")
        made = "official" if self._path is None else f"prepared-{file_stamp(self._path)}"
        variant = f"tsp-v1-{made}-k{k}-{split}"
        super().__init__(root, "tsp", variant, transform, pre_transform, pre_filter)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._path is not None:
            return _read_prepared(self._path, self.k)
        return flatten(
            (
                {
                    "x": graph.x.float(),
                    "edge_index": graph.edge_index,
                    "edge_attr": graph.edge_attr.float().reshape(-1, 1),
                    "y": graph.y.long(),
                }
                for graph in benchmark_graphs("TSP", self.split, self._folder)
            ),
            per_edge=("edge_attr", "y"),
        )


def neighbour_graph(
    coordinates: NDArray[np.float32], tour: NDArray[Any], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]:
    r"""Joins each point to its nearest others and marks the edges of a tour.

    Distances are compared in double precision; of two others at the same distance the one with
    the lower number is nearer. (scipy's :obj:`cKDTree` leaves the order of ties open.)

    Args:
        coordinates (array): Points, ``[n, 2]``.
        tour (array): The order in which the points are visited, ``[n]``.
        k (int): The number of neighbours, below :obj:`n`.

    Returns:
        :obj:`edge_index` ``[2, n * k]``, sorted by target, then source, the distances ``[n * k]``
        and whether the tour uses the edge ``[n * k]``.
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


def _read_prepared(path: Path, k: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
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
