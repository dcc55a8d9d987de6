r"""Dropout without a stored mask: a hash of an entry's position and of one seed decides whether it
is dropped, and is computed again in the backward.

On the CPU torch draws its random numbers one after the other, which takes longer than a small
layer. The seed comes from torch's generator, so :func:`torch.manual_seed` makes a run
reproducible.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from fognn.ops import kernels


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    r"""In training, sets each entry to zero with probability :obj:`p`, and scales the others.

    Args:
        x (torch.Tensor): The features, ``[num_rows, channels]``.
        p (float): The probability of an entry to be dropped, in ``[0, 1)``.
        training (bool, optional): If set to :obj:`False`, returns ``x``. (default: :obj:`True`)
    """
    if not training or p == 0.0:
        return x
    if torch.compiler.is_compiling() or x.dim() != 2 or not kernels.has_loops(x):
        return F.dropout(x, p)
    return _dropout(x.contiguous(), p, int(torch.randint(0, 1 << 62, ())))


@torch.library.custom_op("fognn::dropout", mutates_args=())
def _dropout(x: Tensor, p: float, seed: int) -> Tensor:
    out = torch.empty_like(x)
    kernels.loop("dropout", x, p, seed, out)
    return out


@_dropout.register_fake
def _(x, p, seed):  # type: ignore[no-untyped-def]
    return torch.empty_like(x)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    _, ctx.p, ctx.seed = inputs


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    return _dropout(grad.contiguous(), ctx.p, ctx.seed), None, None


_dropout.register_autograd(_backward, setup_context=_setup)
