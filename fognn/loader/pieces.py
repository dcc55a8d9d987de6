"""Pieces of a flat tensor, one a graph: where they begin, and how to pick some of them.

Numpy does the long sums here and in :mod:`fognn.loader.pack`: on one core it is about as fast as
torch, and it does not wait for other threads. :meth:`torch.repeat_interleave` wakes all of them for
any size, so on a machine whose cores are busy a batch would take ten times as long.
"""

import numpy as np
import torch
from torch import Tensor


def offsets(sizes: Tensor) -> Tensor:
    r"""Where each of many pieces begins, and where the last one ends."""
    out = sizes.new_zeros(sizes.numel() + 1)
    torch.cumsum(sizes, 0, out=out[1:])
    return out


def positions(begin: Tensor, sizes: Tensor, ptr: Tensor, total: int) -> Tensor:
    r"""The positions :obj:`begin[i], ..., begin[i] + sizes[i] - 1` for all pieces in a row.
    :obj:`ptr` are the offsets of :obj:`sizes`, and :obj:`total` is their sum. :obj:`begin` and
    :obj:`sizes` may be of 32 bits, which gives positions of 32 bits at half the cost."""
    shift = begin - ptr[:-1].to(begin.dtype)
    out = np.repeat(shift.numpy(), sizes.numpy())
    out += np.arange(total, dtype=out.dtype)
    return torch.from_numpy(out)


def repeat(values: Tensor, sizes: Tensor) -> Tensor:
    r"""Each value as often as :obj:`sizes` says."""
    return torch.from_numpy(np.repeat(values.numpy(), sizes.numpy()))
