"""Loaders of one graph: the whole of it, or sampled neighbourhoods of its nodes."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.columns import read_columns
from fognn.data.neighbors import NeighborSampler
from fognn.data.order import epoch_order, samples_per_rank
from fognn.data.pack import Pack
from fognn.utils import checks


class PackedGraph:
    r"""One graph, with its edges sorted once for all of its splits.

    Args:
        graph (Data): The graph, with :obj:`x` and :obj:`edge_index`, and optionally
            :obj:`edge_attr`, :obj:`y` and :obj:`rwse` (a row a node); other attributes are left
            out.
    """

    def __init__(self, graph: Data) -> None:
        names = ("x", "edge_index", "edge_attr", "y", "rwse")
        self.data: Any = Data(**{name: graph[name] for name in names if name in graph})
        self.data.num_nodes = graph.num_nodes
        self.pack = Pack(read_columns([self.data]))
        self.batch = self.pack.collate(torch.tensor([0]))

    @property
    def num_nodes(self) -> int:
        return int(self.pack.num_nodes[0])


class FullGraphLoader:
    r"""An epoch of one batch: the whole graph, with :obj:`mask`, the nodes of a split.

    The batch is as in :class:`PackedLoader`. Its tensors are shared by all epochs and splits.

    Args:
        graph (PackedGraph): The graph.
        mask (torch.Tensor): The nodes of the split, :obj:`bool` of shape ``[nodes]``.
    """

    def __init__(self, graph: PackedGraph, mask: Tensor) -> None:
        self.graph, self.mask = graph, _checked_mask("FullGraphLoader", graph, mask)

    def set_epoch(self, epoch: int) -> None:
        r"""Does nothing: all epochs are the same."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        batch = copy(self.graph.batch)
        batch.mask = self.mask
        yield batch

    def __repr__(self) -> str:
        return f"FullGraphLoader({int(self.mask.sum())} of {self.graph.num_nodes} nodes)"


class NeighborLoader:
    r"""Batches of the nodes of a split (seeds), each with a sampled neighbourhood.

    For each seed, at most ``neighbors[0]`` of the edges that end at it are sampled, then at most
    ``neighbors[1]`` of those that end at each new node, and so on; see
    :class:`~fognn.data.NeighborSampler`. A batch is as in :class:`PackedLoader`, with the seeds
    first, :obj:`mask`, which selects them, and :obj:`n_id`, the nodes' numbers in the graph.

    The order of the seeds and the sampled edges depend only on :obj:`seed`, the epoch and the
    number of the batch, so a run that is resumed within an epoch has the same batches. Without
    :obj:`shuffle`, all epochs are the same.

    Validation and test neighbourhoods are sampled too, with the same numbers. FOG and GIN sum over
    neighbours: with all of them, the sums would be larger than those that the network was trained
    with.

    Args:
        graph (PackedGraph): The graph.
        mask (torch.Tensor): The nodes of the split, :obj:`bool` of shape ``[nodes]``.
        neighbors (sequence of int): The largest number of neighbours in each hop; -1 for all.
        batch_size (int): Number of seeds in a batch.
        shuffle (bool, optional): If set to :obj:`True`, seeds are shuffled and neighbours sampled
            anew in each epoch. (default: :obj:`False`)
        seed (int, optional): Seed of the order and of the samples. (default: :obj:`0`)
        rank (int, optional): Rank of this process. (default: :obj:`0`)
        world_size (int, optional): Number of processes that share an epoch.
            (default: :obj:`1`)
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
        checks.int_in_range("NeighborLoader", "batch_size", batch_size, 1)
        checks.int_in_range("NeighborLoader", "seed", seed, 0)
        checks.int_in_range("NeighborLoader", "world_size", world_size, 1)
        checks.int_in_range("NeighborLoader", "rank", rank, 0, world_size)
        self.graph, self.mask = graph, _checked_mask("NeighborLoader", graph, mask)
        self.sampler = NeighborSampler(graph.batch.edge_index, neighbors)
        self.seeds = self.mask.nonzero().flatten()
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.rank = rank
        self.world_size = world_size
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        r"""Sets the epoch whose order and samples the next iteration has."""
        checks.int_in_range("NeighborLoader", "epoch", epoch, 0)
        self.epoch = epoch if self.shuffle else 0

    def __len__(self) -> int:
        samples = samples_per_rank(self.seeds.numel(), self.world_size, False)
        return -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        order = epoch_order(
            self.seeds.numel(), self.shuffle, self.seed, self.epoch, self.rank, self.world_size
        )
        for number, part in enumerate(self.seeds[order].split(self.batch_size)):
            yield self._batch(part, number)

    def _batch(self, seeds: Tensor, number: int) -> Any:
        sample = self.sampler.sample(seeds, (self.seed, self.epoch, number, self.rank))
        whole = self.graph.batch
        rows = dict.fromkeys(("x", "y", "rwse"), sample.nodes) | {"edge_attr": sample.edges}
        parts = {name: whole[name][index] for name, index in rows.items() if name in whole}
        part = Data(**parts, edge_index=sample.edge_index, num_nodes=sample.nodes.numel())
        batch = Pack(read_columns([part])).collate(torch.tensor([0]))
        batch.mask = torch.arange(sample.nodes.numel()) < seeds.numel()
        batch.n_id = sample.nodes
        return batch

    def __repr__(self) -> str:
        return (
            f"NeighborLoader({self.seeds.numel()} of {self.graph.num_nodes} nodes, "
            f"neighbors={self.sampler.neighbors}, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle})"
        )


def _checked_mask(owner: str, graph: PackedGraph, mask: Tensor) -> Tensor:
    nodes = graph.num_nodes
    if mask.dtype != torch.bool or mask.shape != (nodes,):
        raise ValueError(
            f"{owner}: mask must be bool of shape [{nodes}], got {mask.dtype} {list(mask.shape)}"
        )
    if not mask.any():
        raise ValueError(f"{owner}: mask must select at least one of {nodes} nodes, got none")
    return mask
