r"""Loaders: batches of graphs, a whole graph, and sampled neighbourhoods of its nodes."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.pack import Pack, offsets, positions, random_order, repeat
from fognn.utils import checks


class EpochLoader:
    r"""What the loaders share: the order of their items, and its parts for ranks."""

    def __init__(
        self, size: int, batch_size: int, shuffle: bool, seed: int, rank: int, world_size: int
    ) -> None:
        owner = type(self).__name__
        checks.int_in_range(owner, "batch_size", batch_size, 1)
        checks.int_in_range(owner, "world_size", world_size, 1)
        checks.int_in_range(owner, "rank", rank, 0, world_size)
        self.size, self.batch_size, self.shuffle, self.seed = size, batch_size, shuffle, seed
        self.rank, self.world_size, self.epoch = rank, world_size, 0

    def set_epoch(self, epoch: int) -> None:
        r"""Sets the epoch whose order the next iteration has; without :obj:`shuffle`, all epochs
        are the same."""
        self.epoch = epoch if self.shuffle else 0

    def order(self) -> Tensor:
        r"""Returns the items of this rank in this epoch, in order. Ranks share an epoch as in
        :class:`torch.utils.data.DistributedSampler`, which fills up with the first items."""
        order = torch.arange(self.size)
        if self.shuffle:
            order = random_order(self.size, self.seed, self.epoch)
        samples = -(-self.size // self.world_size)
        return order[(torch.arange(samples) * self.world_size + self.rank) % self.size]

    def __len__(self) -> int:
        return -(-self.size // (self.world_size * self.batch_size))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.size} items, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle})"
        )


class PackedLoader(EpochLoader):
    r"""Iterates over the batches of an epoch, sliced from flat tensors without a loop over graphs.

    The edges, with their attributes, are sorted by target and then by source within each graph,
    once, at construction. A batch is a :class:`torch_geometric.data.Batch` whose
    :obj:`edge_index` is a :class:`torch_geometric.EdgeIndex`, sorted by column, with its size, its
    CSC and CSR forms and :obj:`is_undirected` filled in, so that no layer sorts.

    A batch has the attributes that are tensors or numbers, and no strings. Graphs with further node
    indices (``edge_label_index``) or sparse tensors need PyG's own
    :class:`~torch_geometric.loader.DataLoader`. If every graph has as many edges as nodes, an
    attribute belongs to the edges if its name contains "edge", as in :pyg:`PyG`.

    Args:
        dataset (InMemoryDataset or sequence of Data): The graphs. A :obj:`transform` is run once
            for each graph, at construction, and not again in each epoch.
        batch_size (int): Number of graphs in a batch.
        shuffle (bool, optional): If set to :obj:`True`, the order of the graphs depends on
            :obj:`seed` and the epoch of :meth:`set_epoch` alone. (default: :obj:`False`)
        seed (int, optional): Seed of the order. (default: :obj:`0`)
        rank (int, optional): Rank of this process. (default: :obj:`0`)
        world_size (int, optional): Number of processes that share an epoch. (default: :obj:`1`)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.pack = Pack(dataset)
        super().__init__(len(self.pack), batch_size, shuffle, seed, rank, world_size)

    def __iter__(self) -> Iterator[Any]:
        return map(self.pack.collate, self.order().split(self.batch_size))


class PackedGraph:
    r"""One graph, with its edges sorted once for all of its splits.

    Args:
        graph (Data): The graph; of its attributes :obj:`x`, :obj:`edge_index`, :obj:`edge_attr`,
            :obj:`y` and :obj:`rwse` (a row a node) are taken.
    """

    def __init__(self, graph: Data) -> None:
        names = ("x", "edge_index", "edge_attr", "y", "rwse")
        self.data: Any = Data(**{name: graph[name] for name in names if name in graph})
        self.num_nodes = self.data.num_nodes = graph.num_nodes or 0
        self.pack = Pack([self.data])
        self.batch = self.pack.collate(torch.tensor([0]))

    def checked_mask(self, mask: Tensor) -> Tensor:
        if mask.dtype != torch.bool or mask.shape != (self.num_nodes,) or not mask.any():
            raise ValueError(
                f"mask must be bool of shape [{self.num_nodes}] and select a node, got "
                f"{int(mask.sum())} of {mask.dtype} {list(mask.shape)}"
            )
        return mask


class FullGraphLoader:
    r"""An epoch of one batch, as in :class:`PackedLoader`: the whole graph, with :obj:`mask`, the
    nodes of a split. Its tensors are shared by all epochs and splits.

    Args:
        graph (PackedGraph): The graph.
        mask (torch.Tensor): The nodes of the split, :obj:`bool` of shape ``[nodes]``.
    """

    def __init__(self, graph: PackedGraph, mask: Tensor) -> None:
        self.graph, self.mask = graph, graph.checked_mask(mask)

    def set_epoch(self, epoch: int) -> None:
        r"""Does nothing: all epochs are the same."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        batch = copy(self.graph.batch)
        batch.mask = self.mask
        yield batch


class NeighborLoader(EpochLoader):
    r"""Batches of the nodes of a split (seeds), each with a sampled neighbourhood.

    For each seed, at most ``neighbors[0]`` of the edges that end at it are sampled, uniformly and
    without replacement, then at most ``neighbors[1]`` of those that end at each new node, and so
    on, as PyG's :class:`~torch_geometric.loader.NeighborLoader` does, but without :obj:`pyg-lib`.
    A batch is as in :class:`PackedLoader`, with the seeds first, :obj:`mask`, which selects them,
    and :obj:`n_id`, the nodes' numbers in the graph.

    With all neighbours and a hop for each layer, the outputs for the seeds equal those on the whole
    graph, unless a layer divides by the degree of the source (:class:`~fognn.nn.GCNConv` with
    ``norm="sym"``). The batches depend only on :obj:`seed`, the epoch and the number of the batch.

    Sample for validation and test as well: FOG and GIN sum over neighbours, and with all of them
    the sums would be larger than those that the network was trained with.

    Args:
        graph, mask: As in :class:`FullGraphLoader`.
        neighbors (sequence of int): The largest number of neighbours in each hop; -1 for all.
        batch_size (int): Number of seeds in a batch.
        shuffle (bool, optional): If set to :obj:`True`, seeds are shuffled and neighbours sampled
            anew in each epoch. (default: :obj:`False`)
        seed (int, optional): Seed of the order and of the samples. (default: :obj:`0`)
        rank, world_size (int, optional): As in :class:`PackedLoader`.
    """

    def __init__(
        self,
        graph: PackedGraph,
        mask: Tensor,
        neighbors: Sequence[int],
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.graph, self.mask, self.neighbors = graph, graph.checked_mask(mask), tuple(neighbors)
        right = (type(k) is int and (k > 0 or k == -1) for k in self.neighbors)
        if not self.neighbors or not all(right):
            raise ValueError(
                "NeighborLoader: neighbors must be positive ints, or -1 for all neighbours, one "
                f"for each hop, got {list(neighbors)}"
            )
        (self._ptr, self._source), _ = graph.batch.edge_index.get_csc()
        # The place of each node in the neighbourhood; -1 again between two samples.
        self._place = torch.full((graph.num_nodes,), -1)
        self.seeds = self.mask.nonzero().flatten()
        super().__init__(self.seeds.numel(), batch_size, shuffle, seed, rank, world_size)

    def __iter__(self) -> Iterator[Any]:
        whole = self.graph.batch
        for number, seeds in enumerate(self.seeds[self.order()].split(self.batch_size)):
            key = (self.seed, self.epoch, number, self.rank)
            nodes, edge_index, edges = self.sample(seeds, key)
            rows = dict.fromkeys(("x", "y", "rwse"), nodes) | {"edge_attr": edges}
            parts = {name: whole[name][index] for name, index in rows.items() if name in whole}
            part = Data(**parts, edge_index=edge_index, num_nodes=nodes.numel())
            batch = PackedGraph(part).batch
            batch.mask = torch.arange(nodes.numel()) < seeds.numel()
            batch.n_id = nodes
            yield batch

    def sample(
        self, seeds: Tensor, key: tuple[int, int, int, int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""Samples the neighbourhood of some different nodes. Returns its nodes, the seeds first;
        its edges between the places of these nodes; and their numbers in the graph."""
        seed, epoch, batch, rank = key
        # random_order has the counters from 0 of the same key. The highest word is not 0 here.
        random = np.random.Philox(
            key=np.array([seed, epoch], dtype=np.uint64),
            counter=np.array([0, 0, rank, batch + 1], dtype=np.uint64),
        )
        place = self._place
        place[seeds] = torch.arange(seeds.numel())
        hops, edges, targets = [seeds], [], []
        for k in self.neighbors:
            begin = self._ptr[hops[-1]]
            degree = self._ptr[hops[-1] + 1] - begin
            many = (degree > k) & (k >= 0)
            sizes = torch.where(many, k, degree)
            ptr = offsets(sizes)
            taken = positions(begin, sizes, ptr, int(ptr[-1]))
            if many.any():
                drawn = _without_replacement(degree[many].numpy(), k, random)
                drawn += begin[many].numpy()[:, None]
                taken.numpy()[repeat(many, sizes).numpy()] = drawn.ravel()
            edges.append(taken)
            targets.append(repeat(hops[-1], sizes))
            found = self._source[taken]
            new = found[place[found] < 0].unique()
            place[new] = torch.arange(new.numel()) + sum(hop.numel() for hop in hops)
            hops.append(new)
        nodes, edge = torch.cat(hops), torch.cat(edges)
        index = torch.stack([place[self._source[edge]], place[torch.cat(targets)]])
        place[nodes] = -1
        return nodes, index, edge


def _without_replacement(sizes: np.ndarray, k: int, random: np.random.Philox) -> np.ndarray:
    r"""Draws :obj:`k` different numbers below each of :obj:`sizes`, by Floyd's algorithm: in step
    :math:`j = n - k, \ldots, n - 1` a number up to :math:`j`, or :math:`j` if that was taken."""
    out = np.empty((len(sizes), k), dtype=np.int64)
    # 53 bits are all that a float64 holds.
    uniform = (random.random_raw(out.size) >> 11).reshape(out.shape) * 2.0**-53
    for step in range(k):
        last = sizes - k + step
        draw = (uniform[:, step] * (last + 1)).astype(np.int64)
        taken = (out[:, :step] == draw[:, None]).any(1)
        out[:, step] = np.where(taken, last, draw)
    return out
