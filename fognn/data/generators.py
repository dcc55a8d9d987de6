r"""PATTERN and CLUSTER, generated: the same graphs on every machine, unlike those of PyG."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fognn.data.pack import offsets
from fognn.data.pyg_datasets import open_benchmark
from fognn.data.split_dataset import SplitDataset, Tensors, flatten
from fognn.utils import checks

SPLIT_SIZES = {
    "PATTERN": {"train": 10_000, "val": 2_000, "test": 2_000},
    "CLUSTER": {"train": 10_000, "val": 1_000, "test": 1_000},
}
NUM_PATTERNS = 100
_SMALLEST, _LARGEST = 5, 34  # nodes of a block and of a pattern
_STREAMS = {"patterns": 0, "train": 1, "val": 2, "test": 3}  # CLUSTER has 4 more


class Graphs(NamedTuple):
    r"""Many graphs in flat arrays, one after the other; node numbers are local to a graph."""

    n: NDArray[np.int64]  # [G], nodes of a graph
    e: NDArray[np.int64]  # [G], directed edges of a graph
    x: NDArray[np.uint8]  # [N], tokens
    edge_index: NDArray[np.uint8]  # [2, E], sources and targets, sorted by target, then source
    y: NDArray[np.uint8]  # [N], labels


class _Draws:
    r"""The random numbers of one graph, by Philox4x64-10 (Salmon et al., 2011) and integer
    arithmetic, so that they depend neither on the version of a library nor on the processor."""

    def __init__(self, seed: int, stream: int, graph: int) -> None:
        self._philox = np.random.Philox(
            key=np.array([seed, stream], dtype=np.uint64),
            counter=np.array([0, graph, 0, 0], dtype=np.uint64),
        )

    def words(self, count: int) -> NDArray[np.uint32]:
        raw = self._philox.random_raw((count + 1) // 2)
        # Low half first, also on a big-endian machine.
        return raw.astype("<u8", copy=False).view("<u4")[:count]

    def integers(self, bound: int | NDArray[np.int64], count: int) -> NDArray[np.int64]:
        r"""Uniform in :obj:`[0, bound)`; off by less than :obj:`bound / 2**32`."""
        scaled = self.words(count).astype(np.uint64) * np.asarray(bound, dtype=np.uint64)
        return (scaled >> np.uint64(32)).astype(np.int64)

    def sizes(self, count: int) -> NDArray[np.int64]:
        return _SMALLEST + self.integers(_LARGEST - _SMALLEST + 1, count)

    def order(self, count: int) -> NDArray[np.int64]:
        return np.argsort(self._philox.random_raw(count), kind="stable")

    def adjacency(self, threshold: NDArray[np.uint32]) -> NDArray[np.bool_]:
        r"""Symmetric, empty diagonal; an entry is drawn once for a pair of nodes."""
        n = len(threshold)
        below = np.tril(self.words(n * n).reshape(n, n) < threshold, -1)
        return below | below.T


def _threshold(probability: float) -> np.uint32:
    return np.uint32(round(probability * 2**32))


def _table(blocks: int, p: float, q: float) -> NDArray[np.uint32]:
    return np.where(np.eye(blocks, dtype=bool), _threshold(p), _threshold(q))


def _joined(graphs: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]]) -> Graphs:
    r"""Joins the tokens, labels and adjacency matrices of graphs."""
    tokens, labels, adjacency = zip(*graphs, strict=True)
    edges = [np.stack(matrix.nonzero())[::-1].astype(np.uint8) for matrix in adjacency]
    return Graphs(
        n=np.array([len(x) for x in tokens], dtype=np.int64),
        e=np.array([part.shape[1] for part in edges], dtype=np.int64),
        x=np.concatenate(tokens, dtype=np.uint8, casting="unsafe"),
        edge_index=np.concatenate(edges, axis=1),
        y=np.concatenate(labels, dtype=np.uint8, casting="unsafe"),
    )


def _checked(name: str, split: str, num_graphs: int | None, seed: int) -> int:
    r"""Checks the arguments of PATTERN or CLUSTER, and returns the number of graphs."""
    checks.one_of(name, "split", split, tuple(SPLIT_SIZES[name]))
    checks.int_in_range(name, "seed", seed, 0)
    number = SPLIT_SIZES[name][split] if num_graphs is None else num_graphs
    return checks.positive_int(name, "num_graphs", number)


def generate_pattern(split: str, num_graphs: int | None = None, seed: int = 0) -> Graphs:
    r"""Generates graphs of PATTERN.

    Five blocks of 5 to 34 nodes are joined with :math:`p = 0.5` inside a block and
    :math:`q = 0.35` between blocks, and their nodes have tokens from :math:`\{0, 1, 2\}`. One of
    100 patterns, each with 5 to 34 nodes, inner probability 0.5 and tokens of its own, is joined
    to them with probability 0.5: pattern :math:`i \bmod 100` to graph :math:`i`, in all splits. All
    nodes are shuffled; the label of a node is 1 if it belongs to the pattern, else 0.

    Args:
        split (str): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
        num_graphs (int, optional): The number of graphs, the first ones of the split.
            (default: 10,000 for training and 2,000 for the others)
        seed (int, optional): The seed. (default: :obj:`0`)
    """
    num_graphs = _checked("PATTERN", split, num_graphs, seed)
    half = _threshold(0.5)
    table = np.full((6, 6), half, dtype=np.uint32)
    table[:5, :5] = _table(5, 0.5, 0.35)

    patterns = []
    for index in range(min(NUM_PATTERNS, num_graphs)):
        draws = _Draws(seed, _STREAMS["patterns"], index)
        size = int(draws.sizes(1)[0])
        tokens = draws.integers(3, size)
        patterns.append((tokens, draws.adjacency(np.full((size, size), half))))

    graphs = []
    for index in range(num_graphs):
        tokens, pattern = patterns[index % NUM_PATTERNS]
        draws = _Draws(seed, _STREAMS[split], index)
        sizes = draws.sizes(5)
        base = int(sizes.sum())
        block = np.repeat(np.arange(6), [*sizes, len(tokens)])
        x = np.concatenate([draws.integers(3, base), tokens])
        # Shuffling before joining has the same distribution and needs one copy less.
        order = draws.order(len(x))
        block, x = block[order], x[order]
        adjacency = draws.adjacency(table[np.ix_(block, block)])
        place = np.argsort(order)[base:]
        adjacency[np.ix_(place, place)] = pattern
        graphs.append((x, block == 5, adjacency))
    return _joined(graphs)


def generate_cluster(split: str, num_graphs: int | None = None, seed: int = 0) -> Graphs:
    r"""Generates graphs of CLUSTER.

    Six blocks of 5 to 34 nodes are joined with :math:`p = 0.55` inside a block and
    :math:`q = 0.25` between blocks. Nodes are shuffled and have token 0, but one node of block
    :math:`b` has token :math:`b + 1`. The label is the block.

    Args:
        split, num_graphs, seed: As for :func:`generate_pattern`, but 1,000 graphs for validation
            and for testing.
    """
    num_graphs = _checked("CLUSTER", split, num_graphs, seed)
    table = _table(6, 0.55, 0.25)

    graphs = []
    for index in range(num_graphs):
        draws = _Draws(seed, 4 + _STREAMS[split], index)
        sizes = draws.sizes(6)
        block = np.repeat(np.arange(6), sizes)
        x = np.zeros(len(block), dtype=np.int64)
        x[sizes.cumsum() - sizes + draws.integers(sizes, 6)] = np.arange(1, 7)
        order = draws.order(len(x))
        block, x = block[order], x[order]
        graphs.append((x, block, draws.adjacency(table[np.ix_(block, block)])))
    return _joined(graphs)


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
        self._count = _checked(name, split, num_graphs, seed)
        self.split, self.seed, self.source, self._folder = split, seed, source, data
        made = f"seed{seed}" if source == "generated" else "official"
        variant = f"{name.lower()}-v1-{made}-{split}-{self._count}"
        super().__init__(root, name.lower(), variant, **kwargs)

    def read(self) -> tuple[Tensors, Tensors]:
        if self.source == "official":
            graphs = open_benchmark(type(self).__name__, self.split, self._folder)
            tensors, slices = flatten(graphs[: self._count])
            # PyG's file has the tokens one-hot.
            x, y = tensors["x"].argmax(1), tensors["y"].long()
            return {"x": x, "edge_index": tensors["edge_index"], "y": y}, slices
        made = type(self)._generate(self.split, self._count, self.seed)
        n, e, *values = map(torch.from_numpy, made)
        ends = {"x": offsets(n), "edge_index": offsets(e), "y": offsets(n)}
        return dict(zip(ends, values, strict=True)), ends


class PATTERN(_SBM):
    r"""PATTERN of the `"Benchmarking Graph Neural Networks" <https://arxiv.org/abs/2003.00982>`_
    paper: which nodes belong to a pattern that is hidden in a stochastic block model?

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 2), :obj:`edge_index` (both directions,
    no self loops, sorted by target, then source) and :obj:`y` (int64, ``[N]``, 0 or 1).
    :meth:`~fognn.data.generate_pattern` describes how graphs are generated.

    Args:
        root (str or Path, optional): The folder for processed files. (default: one in the cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: 10,000, 2,000 and
            2,000 graphs. (default: :obj:`"train"`)
        seed (int, optional): The seed of generated graphs. (default: :obj:`0`)
        num_graphs (int, optional): Only the first graphs of the split. (default: :obj:`None`)
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for the published ones of
            :class:`~torch_geometric.datasets.GNNBenchmarkDataset`. (default: :obj:`"generated"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        **kwargs (optional): :obj:`transform` and :obj:`pre_transform` of
            :class:`~torch_geometric.data.InMemoryDataset`.
    """

    _generate = staticmethod(generate_pattern)


class CLUSTER(_SBM):
    r"""CLUSTER of the `"Benchmarking Graph Neural Networks" <https://arxiv.org/abs/2003.00982>`_
    paper: to which of six blocks does each node belong, given one node of each?

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 6), :obj:`edge_index` and :obj:`y` (int64,
    ``[N]``, 0 to 5), as :meth:`~fognn.data.generate_cluster` makes them. The arguments are those of
    :class:`PATTERN`; the splits have 10,000, 1,000 and 1,000 graphs.
    """

    _generate = staticmethod(generate_cluster)
