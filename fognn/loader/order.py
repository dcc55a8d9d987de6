"""In which order the graphs of an epoch come, and which of them a rank sees."""

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
    r"""The numbers of the graphs that one rank sees in one epoch, in order.

    The order is that of sorting one 64-bit word of the counter-based generator Philox, keyed with
    :obj:`(seed, epoch)`, for each graph. Philox is fixed by its paper, so a resumed run sees the
    same order on any machine and with any version of the libraries; and no two keys share a
    stream, while :class:`torch.Generator` on the CPU keeps 32 bits of its seed only.

    Ranks share the order as in :class:`torch.utils.data.DistributedSampler`: it is filled up from
    its own beginning (or cut, with :obj:`drop_last`) to a multiple of :obj:`world_size`, and rank
    :math:`r` takes every :obj:`world_size`-th graph, starting with the :math:`r`-th.

    Args:
        size (int): The number of graphs.
        shuffle (bool): If :obj:`False`, the order is :math:`0, 1, 2, \ldots`
        seed (int): Seed of the order, in :math:`[0, 2^{64})`.
        epoch (int): Number of the epoch, in :math:`[0, 2^{64})`.
        rank (int): Number of this process.
        world_size (int): Number of processes.
        drop_last (bool): Cut instead of filling up.
    """
    if shuffle:
        words = np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)).random_raw(size)
        order = torch.from_numpy(np.argsort(words, kind="stable"))
    else:
        order = torch.arange(size)
    samples = samples_per_rank(size, world_size, drop_last)
    # Taken modulo the size, so that a world larger than the dataset is filled up too.
    mine = torch.arange(samples) * world_size + rank
    return order[mine % size]


def samples_per_rank(size: int, world_size: int, drop_last: bool) -> int:
    r"""How many graphs each rank sees in an epoch: the same for every rank."""
    return size // world_size if drop_last else -(-size // world_size)
