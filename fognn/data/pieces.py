"""Offsets and positions of the pieces of a flat tensor, one piece a graph.

Long sums here and in :mod:`fognn.data.pack` use numpy: on one core it is about as fast as torch,
and it starts no threads. :meth:`torch.repeat_interleave` uses all threads for any size, so on a
machine whose cores are busy a batch would take ten times as long.
"""

import numpy as np
import torch
from torch import Tensor


def offsets(sizes: Tensor) -> Tensor:
    r"""The first index of each piece, and the end of the last one."""
    out = sizes.new_zeros(sizes.numel() + 1)
    torch.cumsum(sizes, 0, out=out[1:])
    return out


def positions(begin: Tensor, sizes: Tensor, ptr: Tensor, total: int) -> Tensor:
    r"""The positions :obj:`begin[i], ..., begin[i] + sizes[i] - 1` of all pieces, one piece after
    another. :obj:`ptr` are the offsets of :obj:`sizes`, and :obj:`total` is their sum. With 32 bits
    in :obj:`begin` and :obj:`sizes` the positions have 32 bits too, at half the cost."""
    shift = begin - ptr[:-1].to(begin.dtype)
    out = np.repeat(shift.numpy(), sizes.numpy())
    out += np.arange(total, dtype=out.dtype)
    return torch.from_numpy(out)


def repeat(values: Tensor, sizes: Tensor) -> Tensor:
    r"""Repeats each value :obj:`sizes` times."""
    return torch.from_numpy(np.repeat(values.numpy(), sizes.numpy()))
