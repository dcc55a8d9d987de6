r"""The packed loader, and the order of the graphs in an epoch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fognn.data.columns import read_columns
from fognn.data.pack import Pack
from fognn.utils import checks


class EpochLoader:
    r"""What the loaders share: the order of their items, and its parts for ranks."""

    def __init__(
        self, size: int, batch_size: int, shuffle: bool, seed: int, rank: int, world_size: int
    ) -> None:
        owner = type(self).__name__
        checks.int_in_range(owner, "batch_size", batch_size, 1)
        checks.int_in_range(owner, "seed", seed, 0)
        checks.int_in_range(owner, "world_size", world_size, 1)
        checks.int_in_range(owner, "rank", rank, 0, world_size)
        self.size, self.batch_size, self.shuffle, self.seed = size, batch_size, shuffle, seed
        self.rank, self.world_size, self.epoch = rank, world_size, 0

    def set_epoch(self, epoch: int) -> None:
        r"""Sets the epoch whose order the next iteration has; without :obj:`shuffle`, all epochs
        are the same."""
        checks.int_in_range(type(self).__name__, "epoch", epoch, 0)
        self.epoch = epoch if self.shuffle else 0

    def order(self) -> Tensor:
        r"""Returns the items of this rank in this epoch, in order."""
        shared = (self.seed, self.epoch, self.rank, self.world_size)
        return epoch_order(self.size, self.shuffle, *shared)

    def __len__(self) -> int:
        samples = -(-self.size // self.world_size)
        return -(-samples // self.batch_size)


class PackedLoader(EpochLoader):
    r"""Iterates over the batches of an epoch, sliced from flat tensors without a loop over graphs.

    The dataset is packed once, at construction: edges sorted by target and then by source within
    each graph (edge attributes with them), together with their order by source. A batch is a
    :class:`torch_geometric.data.Batch` whose :obj:`edge_index` is a
    :class:`torch_geometric.EdgeIndex`, sorted by column, with its size, its CSC and CSR forms and
    :obj:`is_undirected` filled in, so that no layer sorts.

    A batch has all attributes that :pyg:`PyG` would concatenate. If every graph has as many edges
    as nodes, an attribute belongs to the edges if its name contains "edge", as in :pyg:`PyG`.

    Args:
        dataset (InMemoryDataset or sequence of Data): The graphs. A :obj:`transform` is run once
            for each graph, at construction, and a warning says so.
        batch_size (int): Number of graphs in a batch.
        shuffle (bool, optional): If set to :obj:`True`, the graphs are shuffled in each epoch. The
            order depends only on :obj:`seed` and on the epoch of :meth:`set_epoch`, so a resumed
            run has the same. (default: :obj:`False`)
        seed (int, optional): Seed of the order. (default: :obj:`0`)
        rank (int, optional): Rank of this process. (default: :obj:`0`)
        world_size (int, optional): Number of processes that share an epoch, as with
            :class:`torch.utils.data.DistributedSampler`. (default: :obj:`1`)
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
        self.pack = Pack(read_columns(dataset))
        super().__init__(len(self.pack), batch_size, shuffle, seed, rank, world_size)

    def __iter__(self) -> Iterator[Any]:
        return map(self.pack.collate, self.order().split(self.batch_size))

    def __repr__(self) -> str:
        return (
            f"PackedLoader({len(self.pack)} graphs, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle}, rank={self.rank}/{self.world_size})"
        )


def epoch_order(
    size: int,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> Tensor:
    r"""Returns the indices of the graphs of one rank in one epoch, in order.

    With :obj:`shuffle`, graphs are sorted by one 64-bit word each of the counter-based generator
    Philox with the key :obj:`(seed, epoch)`. Philox is defined by its paper, so a resumed run has
    the same order on any machine and with any version of the libraries, and no two keys share a
    stream (:class:`torch.Generator` on the CPU uses only 32 bits of its seed).

    Ranks share the order as in :class:`torch.utils.data.DistributedSampler`: it is extended by its
    own beginning to a multiple of :obj:`world_size`, and rank :math:`r` takes every
    :obj:`world_size`-th graph, starting with the :math:`r`-th.
    """
    if shuffle:
        words = np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)).random_raw(size)
        order = torch.from_numpy(np.argsort(words, kind="stable"))
    else:
        order = torch.arange(size)
    samples = -(-size // world_size)
    # Taken modulo the size, so that a world larger than the dataset works too.
    mine = torch.arange(samples) * world_size + rank
    return order[mine % size]
