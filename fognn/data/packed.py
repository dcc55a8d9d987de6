"""The packed loader."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch import Tensor

from fognn.data.columns import read_columns
from fognn.data.order import epoch_order, samples_per_rank
from fognn.data.pack import Pack
from fognn.utils import checks


class PackedLoader:
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
        drop_last (bool, optional): If set to :obj:`True`, drops the last batch if it is smaller,
            and with several ranks the graphs that do not divide evenly. (default: :obj:`False`)
        rank (int, optional): Rank of this process. (default: :obj:`0`)
        world_size (int, optional): Number of processes that share an epoch, as with
            :class:`torch.utils.data.DistributedSampler`. (default: :obj:`1`)
        prefetch (bool, optional): If set to :obj:`True`, a thread prepares the next batch while
            this one is used. (default: :obj:`False`)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
        prefetch: bool = False,
    ) -> None:
        checks.int_in_range("PackedLoader", "batch_size", batch_size, 1)
        checks.int_in_range("PackedLoader", "seed", seed, 0)
        checks.int_in_range("PackedLoader", "world_size", world_size, 1)
        checks.int_in_range("PackedLoader", "rank", rank, 0, world_size)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.rank = rank
        self.world_size = world_size
        self.prefetch = prefetch
        self.epoch = 0
        self.pack = Pack(read_columns(dataset))
        if len(self) == 0:
            raise ValueError(
                f"PackedLoader: drop_last leaves no batch: {len(self.pack)} graphs for "
                f"{world_size} ranks must give each at least batch_size={batch_size}"
            )

    def set_epoch(self, epoch: int) -> None:
        r"""Sets the epoch whose order the next iteration has."""
        checks.int_in_range("PackedLoader", "epoch", epoch, 0)
        self.epoch = epoch

    def __len__(self) -> int:
        samples = samples_per_rank(len(self.pack), self.world_size, self.drop_last)
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        order = epoch_order(
            len(self.pack),
            self.shuffle,
            self.seed,
            self.epoch,
            self.rank,
            self.world_size,
            self.drop_last,
        )
        parts = order.split(self.batch_size)[: len(self)]
        return self._ahead(parts) if self.prefetch else map(self.pack.collate, parts)

    def _ahead(self, parts: tuple[Tensor, ...]) -> Iterator[Any]:
        # Leaving the loop early closes this generator, and with it the pool, which waits for its
        # thread.
        with ThreadPoolExecutor(1, thread_name_prefix="fognn-prefetch") as pool:
            coming = pool.submit(self.pack.collate, parts[0])
            for part in parts[1:]:
                ready, coming = coming, pool.submit(self.pack.collate, part)
                yield ready.result()
            yield coming.result()

    def __repr__(self) -> str:
        return (
            f"PackedLoader({len(self.pack)} graphs, batch_size={self.batch_size}, "
            f"shuffle={self.shuffle}, rank={self.rank}/{self.world_size})"
        )
