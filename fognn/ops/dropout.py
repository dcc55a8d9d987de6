r"""Dropout whose mask is never held: each entry's lot is a hash of its place and of one seed, drawn
again in the backward.

On the CPU torch draws the lots one after the other, which takes longer than a small layer. The seed
comes from torch's generator, so :func:`torch.manual_seed` and a saved state of it repeat a run as
they do elsewhere.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from fognn.ops import kernels


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    r"""In training, sets each entry to zero with probability :obj:`p`, and scales the others.

    Args:
        x: ``[num_rows, channels]``.
        p: The share that is dropped, in ``[0, 1)``.
        training: If :obj:`False`, ``x`` is returned as it is.
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
