r"""Sums, means and maxima over the in-edges of each node, without a tensor of edges x channels.

.. math::
    \mathbf{y}_v = \sum_{u \in \mathcal{N}(v)} w_{vu} \, \mathbf{x}_u

The kernels are torch's own. On the CPU a float32 sum is :func:`embedding_bag` (fbgemm's loop over
CSR rows: of torch's three ways the fastest at every width that we measured), a float64 sum and the
maximum are ``torch.sparse.mm`` with a reduction. Elsewhere, and for dtypes that these lack, the
plain gather and ``index_add_`` runs. ``_has_csr_kernels`` is the one place that chooses. The public
functions are made of ``torch.library`` operators that take pointers and indices, because dynamo
does not trace sparse CSR tensors.
"""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

from fognn.ops.adjacency import Adjacency, rows_of, transpose
from fognn.ops.checks import one_of

# Torch says it once a process, of matrices that no user of ours ever sees.
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)


def spmm(adj: Adjacency, x: Tensor, weight: Tensor | None = None, reduce: str = "sum") -> Tensor:
    r"""Reduces the features of each node's in-neighbours.

    Args:
        adj: The graph.
        x: ``[num_sources, channels]``.
        weight: ``[num_edges]`` or, for channels in heads, ``[num_edges, heads]``, in the order of
            ``adj``; only with ``reduce="sum"``.
        reduce: ``"sum"``, ``"mean"`` or ``"max"``. A node without in-edges gets zeros.
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


def segment_sum(ptr: Tensor, value: Tensor) -> Tensor:
    """Sums ``value`` (``[num_edges, channels]``, sorted by row) over each row of ``ptr``."""
    return _segment_sum(value.contiguous(), ptr)


def _has_csr_kernels(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def _check(index: Tensor, num_sources: int) -> None:
    # torch's CSR kernels follow a wild index into foreign memory.
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < num_sources:
        raise IndexError(f"spmm: index must lie in 0..{num_sources - 1}")


def _csr(ptr: Tensor, index: Tensor, weight: Tensor | None, x: Tensor) -> Tensor:
    _check(index, x.size(0))
    if weight is None:
        weight = torch.ones(index.size(0), dtype=x.dtype)
    size = (ptr.size(0) - 1, x.size(0))
    return torch.sparse_csr_tensor(ptr, index, weight, size, check_invariants=False)


def _sum(x: Tensor, ptr: Tensor, index: Tensor, weight: Tensor | None) -> Tensor:
    if x.dtype in (torch.float16, torch.bfloat16):  # a sum of many terms wants 32 bits
        weight = None if weight is None else weight.float()
        return _sum(x.float(), ptr, index, weight).to(x.dtype)
    if index.numel() == 0 or x.size(1) == 0:
        return x.new_zeros(ptr.size(0) - 1, x.size(1))
    if not _has_csr_kernels(x):
        message = x.index_select(0, index)
        if weight is not None:
            message = message * weight.unsqueeze(1)
        out = x.new_zeros(ptr.size(0) - 1, x.size(1))
        return out.index_add_(0, rows_of(ptr, index.size(0)), message)
    if x.dtype == torch.float32:
        return F.embedding_bag(
            index, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True
        )
    return torch.sparse.mm(_csr(ptr, index, weight, x), x, "sum")


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
        return _sum(x, ptr, index, weight)
    heads = weight.size(1)
    parts = x.view(x.size(0), heads, -1).unbind(1)
    sums = [
        _sum(part.contiguous(), ptr, index, w.contiguous())
        for part, w in zip(parts, weight.unbind(1), strict=True)
    ]
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


@torch.library.custom_op("fognn::sddmm", mutates_args=())
def _sddmm(a: Tensor, b: Tensor, ptr: Tensor, index: Tensor, heads: int) -> Tensor:
    """The product of ``a`` at each edge's target with ``b`` at its source, a head at a time."""
    out = a.new_empty(index.size(0), heads)
    parts = zip(a.view(a.size(0), heads, -1).unbind(1), b.view(b.size(0), heads, -1).unbind(1),
                strict=True)  # fmt: skip
    for head, (left, right) in enumerate(parts):
        if _has_csr_kernels(a) and index.numel():
            pattern = _csr(ptr, index, None, b)
            product = torch.sparse.sampled_addmm(
                pattern, left.contiguous(), right.t(), beta=0.0
            ).values()
        else:
            target = rows_of(ptr, index.size(0))
            product = (left.index_select(0, target) * right.index_select(0, index)).sum(1)
        out[:, head] = product
    return out


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


@torch.library.custom_op("fognn::spmm_max", mutates_args=())
def _spmm_max(x: Tensor, ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum, and the source that it came from (``num_sources`` where there is none)."""
    num_targets, (num_sources, channels) = ptr.size(0) - 1, x.shape
    if index.numel() == 0:
        out = x.new_zeros(num_targets, channels)
        return out, index.new_full((num_targets, channels), num_sources)
    if _has_csr_kernels(x):
        with torch.enable_grad():  # torch records where a maximum came from only for a gradient
            out, edge = torch.ops.aten._sparse_mm_reduce_impl(
                _csr(ptr, index, None, x), x.detach().requires_grad_(), "amax"
            )
        out = out.detach()
    else:
        target = rows_of(ptr, index.size(0)).unsqueeze(1).expand(-1, channels)
        message = x.index_select(0, index)
        out = x.new_zeros(num_targets, channels)
        out = out.scatter_reduce(0, target, message, "amax", include_self=False)
        edge = torch.arange(index.size(0), device=x.device).unsqueeze(1).expand(-1, channels)
        edge = torch.where(message == out.gather(0, target), edge, index.size(0))
        first = torch.full_like(out, index.size(0), dtype=edge.dtype)
        edge = first.scatter_reduce(0, target, edge, "amin")
    source = torch.cat([index, index.new_tensor([num_sources])])
    return out, source[edge]


@_spmm_max.register_fake
def _(x, ptr, index):  # type: ignore[no-untyped-def]
    out = x.new_empty(ptr.size(0) - 1, x.size(1))
    return out, torch.empty_like(out, dtype=index.dtype)


def _spmm_max_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.num_sources = inputs[0].size(0)
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _spmm_max_backward(ctx, grad, _):  # type: ignore[no-untyped-def]
    (source,) = ctx.saved_tensors
    # One row more than there are sources takes what came from nowhere.
    grad_x = grad.new_zeros(ctx.num_sources + 1, grad.size(1))
    return grad_x.scatter_add(0, source.long(), grad)[:-1], None, None


_spmm_max.register_autograd(_spmm_max_backward, setup_context=_spmm_max_setup)


@torch.library.custom_op("fognn::segment_sum", mutates_args=())
def _segment_sum(value: Tensor, ptr: Tensor) -> Tensor:
    index = torch.arange(value.size(0), dtype=ptr.dtype, device=ptr.device)
    return _sum(value, ptr, index, None)


@_segment_sum.register_fake
def _(value, ptr):  # type: ignore[no-untyped-def]
    return value.new_empty(ptr.size(0) - 1, value.size(1))


def _segment_sum_setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.num_edges = inputs[0].size(0)
    ctx.save_for_backward(inputs[1])


def _segment_sum_backward(ctx, grad):  # type: ignore[no-untyped-def]
    (ptr,) = ctx.saved_tensors
    return grad.index_select(0, rows_of(ptr, ctx.num_edges)), None


_segment_sum.register_autograd(_segment_sum_backward, setup_context=_segment_sum_setup)
