"""Softmax over the in-edges of each node."""

import torch
from torch import Tensor

from fognn.ops import kernels
from fognn.ops.adjacency import Adjacency, rows_of
from fognn.ops.spmm import _segment_sum


def edge_softmax(adj: Adjacency, score: Tensor) -> Tensor:
    r"""Normalises edge scores over the in-edges of each node, separately for each channel.

    .. math::
        \alpha_{vu} = \frac{\exp(s_{vu})}{\sum_{j \in \mathcal{N}(v)} \exp(s_{vj})}

    Args:
        adj (Adjacency): The graph.
        score (torch.Tensor): The scores, ``[num_edges, heads]``, in the order of ``adj``.
    """
    return _edge_softmax(score.contiguous(), adj.ptr)


@torch.library.custom_op("fognn::edge_softmax", mutates_args=())
def _edge_softmax(score: Tensor, ptr: Tensor) -> Tensor:
    row = rows_of(ptr, score.size(0))
    every_edge = torch.arange(score.size(0), dtype=ptr.dtype, device=ptr.device)
    highest = kernels.max_rows(score, ptr, every_edge)[0]
    alpha = (score - highest.index_select(0, row)).exp_()
    return alpha.div_(kernels.sum_rows(alpha, ptr, every_edge, None).index_select(0, row))


@_edge_softmax.register_fake
def _(score, ptr):  # type: ignore[no-untyped-def]
    return torch.empty_like(score)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(output, inputs[1])


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    alpha, ptr = ctx.saved_tensors
    product = alpha * grad
    total = _segment_sum(product, ptr)
    return product - alpha * total.index_select(0, rows_of(ptr, alpha.size(0))), None


_edge_softmax.register_autograd(_backward, setup_context=_setup)
