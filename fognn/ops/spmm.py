r"""Sums, means, maxima and softmax over the in-edges of each node, without a tensor of the size of
edges x channels, and the sum of the two ends of each edge.

.. math::
    \mathbf{y}_v = \sum_{u \in \mathcal{N}(v)} w_{vu} \, \mathbf{x}_u

The public functions consist of ``torch.library`` operators that take pointers and indices, because
dynamo does not trace sparse CSR tensors. The backward of each is a sum over the transposed graph.
"""

import torch
from torch import Tensor
from torch_geometric.index import ptr2index

from fognn.ops import kernels
from fognn.ops.adjacency import Adjacency, transpose
from fognn.utils.checks import one_of


def spmm(adj: Adjacency, x: Tensor, weight: Tensor | None = None, reduce: str = "sum") -> Tensor:
    r"""Reduces the features of each node's in-neighbours.

    Args:
        adj (Adjacency): The graph.
        x (torch.Tensor): Features of the sources, ``[num_sources, channels]``.
        weight (torch.Tensor, optional): Edge weights in the order of ``adj``, ``[num_edges]`` or,
            for channels in heads, ``[num_edges, heads]``; only with ``reduce="sum"``.
            (default: :obj:`None`)
        reduce (str, optional): ``"sum"``, ``"mean"`` or ``"max"``. A node without in-edges gets
            zeros. (default: :obj:`"sum"`)
    """
    one_of("spmm", "reduce", reduce, ("sum", "mean", "max"))
    if weight is not None and reduce != "sum":
        raise ValueError(f"spmm: weight must be None with reduce={reduce!r}")
    x = x.contiguous()
    if reduce == "max":
        return _spmm_max(x, adj.ptr, adj.source)[0]
    if weight is not None:
        weight = weight.to(x.dtype).contiguous()
    out = _spmm(x, adj.ptr, adj.source, weight, adj.t_ptr, adj.t_target, adj.t_perm)
    if reduce == "mean":
        out = out / adj.ptr.diff().clamp(min=1).to(out.dtype).unsqueeze(1)
    return out


def segment_sum(ptr: Tensor, value: Tensor, weight: Tensor | None = None) -> Tensor:
    """Sums ``value`` (``[num_edges, channels]``, sorted by row), times a ``weight`` of each edge if
    given, over each row of ``ptr``."""
    if weight is not None:
        value = value * weight.to(value.dtype).unsqueeze(1)
    return _segment_sum(value.contiguous(), ptr)


@torch.library.custom_op("fognn::spmm", mutates_args=())
def _spmm(
    x: Tensor,
    ptr: Tensor,
    index: Tensor,
    weight: Tensor | None,
    t_ptr: Tensor | None,
    t_index: Tensor | None,
    t_perm: Tensor | None,
) -> Tensor:
    if weight is None or weight.dim() == 1:
        return kernels.sum_rows(x, ptr, index, weight)
    pairs = zip(kernels.heads_of(x, weight.size(1)), weight.unbind(1), strict=True)
    sums = [kernels.sum_rows(part, ptr, index, w.contiguous()) for part, w in pairs]
    return torch.stack(sums, dim=1).flatten(1)


@_spmm.register_fake
def _(x, ptr, index, weight, t_ptr, t_index, t_perm):  # type: ignore[no-untyped-def]
    return x.new_empty(ptr.size(0) - 1, x.size(1))


def _spmm_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    x, ptr, index, weight, t_ptr, t_index, t_perm = inputs
    ctx.num_sources = x.size(0)
    needs_x = weight is not None and weight.requires_grad
    ctx.save_for_backward(x if needs_x else None, ptr, index, weight, t_ptr, t_index, t_perm)


def _spmm_backward(ctx, grad):  # type: ignore[no-untyped-def]
    x, ptr, index, weight, t_ptr, t_index, t_perm = ctx.saved_tensors
    grad = grad.contiguous()
    grad_x = grad_weight = None
    if ctx.needs_input_grad[0]:
        if t_ptr is None:
            t_ptr, t_index, t_perm = transpose(ptr, index, ctx.num_sources)
        t_weight = None if weight is None else weight.index_select(0, t_perm)
        grad_x = _spmm(grad, t_ptr, t_index, t_weight, None, None, None)
    if ctx.needs_input_grad[3]:
        heads = 1 if weight.dim() == 1 else weight.size(1)
        grad_weight = _sddmm(grad, x, ptr, index, heads).view_as(weight)
    return grad_x, None, None, grad_weight, None, None, None


_spmm.register_autograd(_spmm_backward, setup_context=_spmm_setup)


_sddmm = torch.library.custom_op("fognn::sddmm", kernels.dot_edges, mutates_args=())


@_sddmm.register_fake
def _(a, b, ptr, index, heads):  # type: ignore[no-untyped-def]
    return a.new_empty(index.size(0), heads)


def _sddmm_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs[:4])


def _sddmm_backward(ctx, grad):  # type: ignore[no-untyped-def]
    a, b, ptr, index = ctx.saved_tensors
    grad = grad.contiguous()
    grad_a = _spmm(b, ptr, index, grad, None, None, None)
    t_ptr, t_index, t_perm = transpose(ptr, index, b.size(0))
    grad_b = _spmm(a, t_ptr, t_index, grad.index_select(0, t_perm), None, None, None)
    return grad_a, grad_b, None, None, None


_sddmm.register_autograd(_sddmm_backward, setup_context=_sddmm_setup)


_spmm_max = torch.library.custom_op("fognn::spmm_max", kernels.max_rows, mutates_args=())


@_spmm_max.register_fake
def _(x, ptr, index):  # type: ignore[no-untyped-def]
    out = x.new_empty(ptr.size(0) - 1, x.size(1))
    return out, index.new_empty(out.shape)


def _spmm_max_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.num_sources = inputs[0].size(0)
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _spmm_max_backward(ctx, grad, _):  # type: ignore[no-untyped-def]
    (place,) = ctx.saved_tensors
    return _at_max(grad.contiguous(), place, ctx.num_sources), None, None


_spmm_max.register_autograd(_spmm_max_backward, setup_context=_spmm_max_setup)


_at_max = torch.library.custom_op("fognn::at_max", kernels.add_at_max, mutates_args=())


@_at_max.register_fake
def _(grad, place, num_sources):  # type: ignore[no-untyped-def]
    return grad.new_empty(num_sources, grad.size(1))


@torch.library.custom_op("fognn::segment_sum", mutates_args=())
def _segment_sum(value: Tensor, ptr: Tensor) -> Tensor:
    index = torch.arange(value.size(0), dtype=ptr.dtype, device=ptr.device)
    return kernels.sum_rows(value, ptr, index, None)


@_segment_sum.register_fake
def _(value, ptr):  # type: ignore[no-untyped-def]
    return value.new_empty(ptr.size(0) - 1, value.size(1))


def _segment_sum_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.num_edges = inputs[0].size(0)
    ctx.save_for_backward(inputs[1])


def _segment_sum_backward(ctx, grad):  # type: ignore[no-untyped-def]
    (ptr,) = ctx.saved_tensors
    return grad.index_select(0, ptr2index(ptr, ctx.num_edges)), None


_segment_sum.register_autograd(_segment_sum_backward, setup_context=_segment_sum_setup)


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
    row = ptr2index(ptr, score.size(0))
    every_edge = torch.arange(score.size(0), dtype=ptr.dtype, device=ptr.device)
    highest = kernels.max_rows(score, ptr, every_edge)[0]
    alpha = (score - highest.index_select(0, row)).exp_()
    return alpha.div_(kernels.sum_rows(alpha, ptr, every_edge, None).index_select(0, row))


@_edge_softmax.register_fake
def _(score, ptr):  # type: ignore[no-untyped-def]
    return torch.empty_like(score)


def _edge_softmax_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(output, inputs[1])


def _edge_softmax_backward(ctx, grad):  # type: ignore[no-untyped-def]
    alpha, ptr = ctx.saved_tensors
    product = alpha * grad
    total = _segment_sum(product, ptr)
    return product - alpha * total.index_select(0, ptr2index(ptr, alpha.size(0))), None


_edge_softmax.register_autograd(_edge_softmax_backward, setup_context=_edge_softmax_setup)


def add_ends(adj: Adjacency, p: Tensor, q: Tensor) -> Tensor:
    r"""Returns ``relu(p[source] + q[target])`` of each edge, ``[num_edges, channels]``, in the
    order of ``adj``: a Linear and ReLU of the concatenated ends of every edge, as in a head on
    edges, equals two Linears on the nodes and this sum.

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


def _add_ends_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.num_sources = inputs[0].size(0)
    ctx.save_for_backward(output, *inputs[2:])


def _add_ends_gradient(ctx, grad):  # type: ignore[no-untyped-def]
    out, ptr, source = ctx.saved_tensors
    grad_p, grad_q = _add_ends_backward(grad.contiguous(), out, ptr, source, ctx.num_sources)
    return grad_p, grad_q, None, None


_add_ends.register_autograd(_add_ends_gradient, setup_context=_add_ends_setup)
