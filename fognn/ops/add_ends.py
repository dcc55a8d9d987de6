r"""The sum of features of the two ends of each edge, with a ReLU: the start of a head on edges,
where a Linear on the concatenated ends of every edge equals two Linears on the nodes and this sum.
"""

import torch
from torch import Tensor
from torch_geometric.index import ptr2index

from fognn.ops import kernels
from fognn.ops.adjacency import Adjacency


def add_ends(adj: Adjacency, p: Tensor, q: Tensor) -> Tensor:
    r"""Returns ``relu(p[source] + q[target])`` of each edge, ``[num_edges, channels]``, in the
    order of ``adj``.

    Args:
        adj (Adjacency): The graph.
        p (torch.Tensor): Features of the sources, ``[num_sources, channels]``.
        q (torch.Tensor): Features of the targets, ``[num_targets, channels]``.
    """
    if not kernels.has_loops(p, q):
        return (p.index_select(0, adj.source) + q.index_select(0, adj.target)).relu()
    return _add_ends(p.contiguous(), q.contiguous(), adj.ptr, adj.source)


@torch.library.custom_op("fognn::add_ends", mutates_args=())
def _add_ends(p: Tensor, q: Tensor, ptr: Tensor, source: Tensor) -> Tensor:
    kernels.check_sources(source, p.size(0))
    out = p.new_empty(source.size(0), p.size(1))
    kernels.loop("add_ends", p, q, ptr2index(ptr, source.size(0)), source, out)
    return out


@_add_ends.register_fake
def _(p, q, ptr, source):  # type: ignore[no-untyped-def]
    return p.new_empty(source.size(0), p.size(1))


@torch.library.custom_op("fognn::add_ends_backward", mutates_args=())
def _add_ends_backward(
    grad: Tensor, out: Tensor, ptr: Tensor, source: Tensor, num_sources: int
) -> tuple[Tensor, Tensor]:
    grad_p = grad.new_zeros(num_sources, grad.size(1))
    grad_q = grad.new_zeros(ptr.size(0) - 1, grad.size(1))
    target = ptr2index(ptr, source.size(0))
    bands = kernels.bands_of(grad.size(1))
    kernels.loop("add_ends_backward", bands, grad, out, target, source, grad_p, grad_q)
    return grad_p, grad_q


@_add_ends_backward.register_fake
def _(grad, out, ptr, source, num_sources):  # type: ignore[no-untyped-def]
    channels = grad.size(1)
    return grad.new_empty(num_sources, channels), grad.new_empty(ptr.size(0) - 1, channels)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    p, _, ptr, source = inputs
    ctx.num_sources = p.size(0)
    ctx.save_for_backward(output, ptr, source)


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    out, ptr, source = ctx.saved_tensors
    grad_p, grad_q = _add_ends_backward(grad.contiguous(), out, ptr, source, ctx.num_sources)
    return grad_p, grad_q, None, None


_add_ends.register_autograd(_backward, setup_context=_setup)
