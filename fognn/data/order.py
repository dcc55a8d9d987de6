"""The order of the graphs in an epoch, and the part of each rank."""

import numpy as np
import torch
from torch import Tensor


def epoch_order(
    size: int,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
    drop_last: bool = False,
) -> Tensor:
    r"""Returns the indices of the graphs of one rank in one epoch, in order.

    With :obj:`shuffle`, graphs are sorted by one 64-bit word each of the counter-based generator
    Philox with the key :obj:`(seed, epoch)`. Philox is defined by its paper, so a resumed run has
    the same order on any machine and with any version of the libraries, and no two keys share a
    stream (:class:`torch.Generator` on the CPU uses only 32 bits of its seed).

    Ranks share the order as in :class:`torch.utils.data.DistributedSampler`: it is extended by its
    own beginning (or cut, with :obj:`drop_last`) to a multiple of :obj:`world_size`, and rank
    :math:`r` takes every :obj:`world_size`-th graph, starting with the :math:`r`-th.

    Args:
        size (int): The number of graphs.
        shuffle (bool, optional): If set to :obj:`False`, the order is :math:`0, 1, 2, \ldots`
            (default: :obj:`False`)
        seed (int, optional): Seed of the order, in :math:`[0, 2^{64})`. (default: :obj:`0`)
        epoch (int, optional): The epoch, in :math:`[0, 2^{64})`. (default: :obj:`0`)
        rank (int, optional): Rank of this process. (default: :obj:`0`)
        world_size (int, optional): Number of processes. (default: :obj:`1`)
        drop_last (bool, optional): If set to :obj:`True`, the order is cut instead of extended.
            (default: :obj:`False`)
    """
    if shuffle:
        words = np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)).random_raw(size)
        order = torch.from_numpy(np.argsort(words, kind="stable"))
    else:
        order = torch.arange(size)
    samples = samples_per_rank(size, world_size, drop_last)
    # Taken modulo the size, so that a world larger than the dataset works too.
    mine = torch.arange(samples) * world_size + rank
    return order[mine % size]


def samples_per_rank(size: int, world_size: int, drop_last: bool) -> int:
    r"""The number of graphs of each rank in an epoch, the same for all ranks."""
    return size // world_size if drop_last else -(-size // world_size)
