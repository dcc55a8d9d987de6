r"""The edges of a GatedGCN layer: Linear, gates, sum, norm, ReLU and residual.

On the CPU this is one operator: of all the tensors of edges x channels in the equation it holds
the input, the output and the gates before the sigmoid. The backward goes through the edges in
chunks that stay in the cache, and holds the gradient of the input alone.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fognn.ops import kernels
from fognn.ops.adjacency import Adjacency, rows_of
from fognn.ops.gated_sum import gated_sum
from fognn.ops.norm_residual import (
    Norm,
    affine,
    moments_to_statistics,
    norm_gradient,
    plain_norm,
)


class GatedEdges(NamedTuple):
    """What :func:`gated_edges` gives."""

    y: Tensor
    """``[num_targets, channels]``, the gated sums."""
    e: Tensor | None
    """``[num_edges, channels]``, the new edge features; :obj:`None` without a norm."""
    mean: Tensor | None
    """``[channels]``, the mean by which the edges were normalised, without a gradient."""
    var: Tensor | None
    """``[channels]``, the (biased) variance by which they were normalised, likewise."""


def gated_edges(
    adj: Adjacency,
    a: Tensor,
    b: Tensor,
    v: Tensor,
    e: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm: Norm | None,
    eps: float = 1e-6,
) -> GatedEdges:
    r"""Gates of edges, sums of neighbours through them, and new edge features.

    .. math::
        \hat{\mathbf{e}}_{vu} &= \mathbf{a}_v + \mathbf{b}_u + \mathbf{C} \mathbf{e}_{vu}

        \mathbf{y}_v &= \frac{\sum_{u} \sigma(\hat{\mathbf{e}}_{vu}) \odot \mathbf{v}_u}
        {\sum_{u} \sigma(\hat{\mathbf{e}}_{vu}) + \varepsilon}

        \mathbf{e}_{vu}' &= \mathbf{e}_{vu} + \textrm{ReLU}(\textrm{BN}(\hat{\mathbf{e}}_{vu}))

    Args:
        adj: The graph.
        a: ``[num_targets, channels]``.
        b: ``[num_sources, channels]``.
        v: ``[num_sources, channels]``.
        e: ``[num_edges, channels]`` in the order of ``adj``, or ``[1, channels]`` for edges that
            are all alike.
        weight: ``[channels, channels]``, of :math:`\mathbf{C}`.
        bias: ``[channels]``, of :math:`\mathbf{C}`.
        norm: The norm, or :obj:`None` where nobody reads the new edge features.
        eps: Keeps the quotient of a node without in-edges at zero.
    """
    tensors = (a, b, v, e, weight, bias, *(() if norm is None else norm[:2]))
    if adj.num_edges == 0 or not kernels.has_loops(*tensors):
        return _plain(adj, a, b, v, e, weight, bias, norm, eps)
    with_grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    a, b, v, e, weight = (t.contiguous() for t in (a, b, v, e, weight))
    numbers = (None, None, None, None, 0.0) if norm is None else norm
    y, out, mean, var, _, _ = _gated_edges(
        a, b, v, e, weight, bias, *numbers[:4], adj.ptr, adj.source, numbers[4], eps, with_grad
    )
    return GatedEdges(y, None, None, None) if norm is None else GatedEdges(y, out, mean, var)


def _plain(
    adj: Adjacency,
    a: Tensor,
    b: Tensor,
    v: Tensor,
    e: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm: Norm | None,
    eps: float,
) -> GatedEdges:
    hat = a.index_select(0, adj.target) + b.index_select(0, adj.source) + F.linear(e, weight, bias)
    y = gated_sum(adj, hat, v, eps)
    if norm is None:
        return GatedEdges(y, None, None, None)
    normed, mean, var = plain_norm(hat, norm)
    return GatedEdges(y, e + normed.relu(), mean, var)


@torch.library.custom_op("fognn::gated_edges", mutates_args=())
def _gated_edges(
    a: Tensor,
    b: Tensor,
    v: Tensor,
    e: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    norm_mean: Tensor | None,
    norm_var: Tensor | None,
    ptr: Tensor,
    source: Tensor,
    norm_eps: float,
    eps: float,
    with_grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gives the sums, the new edge features, the norm's mean and variance, and for the backward
    the gates before the sigmoid and the sums of the gates."""
    num_edges, channels = source.size(0), weight.size(0)
    if e.size(0) == num_edges:
        hat = torch.addmm(bias, e, weight.t())
    else:
        hat = torch.addmm(bias, e, weight.t()).repeat(num_edges, 1)
    origin = hat[0] + a[_row_of_first_edge(ptr)] + b[source[0]]
    bounds = kernels.parts_of(ptr)
    of_nodes = [kernels.padded(t) for t in (a, b, v)]
    y, below = torch.empty_like(of_nodes[0]), torch.empty_like(of_nodes[0])
    moments = torch.zeros(2, len(bounds) - 1, y.size(1), dtype=torch.float64)
    kernels.loop(
        "gate_rows",
        hat, *of_nodes, ptr, source, bounds, eps, kernels.padded(origin), y, below, *moments,
    )  # fmt: skip
    y, below = y[:, :channels].contiguous(), below[:, :channels].contiguous()
    none = a.new_empty(0)
    if norm_weight is None or norm_bias is None:
        return y, none, none.clone(), none.clone(), hat if with_grad else none.clone(), below
    if norm_mean is None or norm_var is None:
        moments = moments[:, :, :channels]
        mean, var = moments_to_statistics(origin, moments, num_edges, a.dtype)
    else:
        mean, var = norm_mean.clone(), norm_var.clone()
    out = torch.empty_like(hat) if with_grad else hat
    kernels.loop("add_normed", hat, *affine(norm_weight, norm_bias, mean, var, norm_eps), e, out)
    return y, out, mean, var, hat if with_grad else none, below


def _row_of_first_edge(ptr: Tensor) -> int:
    return int(torch.searchsorted(ptr, ptr.new_zeros(1), right=True)) - 1


@_gated_edges.register_fake
def _(  # type: ignore[no-untyped-def]
    a, b, v, e, weight, bias, norm_weight, norm_bias, norm_mean, norm_var, ptr, source, *options
):
    edges = a.new_empty(source.size(0), a.size(1))
    none = a.new_empty(0)
    with_norm, with_grad = norm_weight is not None, options[-1]
    return (
        torch.empty_like(a),
        torch.empty_like(edges) if with_norm else none.clone(),
        a.new_empty(a.size(1) if with_norm else 0),
        a.new_empty(a.size(1) if with_norm else 0),
        edges if with_grad else none,
        torch.empty_like(a),
    )


@torch.library.custom_op("fognn::gated_edges_backward", mutates_args=())
def _gated_edges_backward(
    grad_y: Tensor,
    grad_e: Tensor | None,
    v: Tensor,
    e: Tensor,
    weight: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    ptr: Tensor,
    source: Tensor,
    y: Tensor,
    mean: Tensor,
    var: Tensor,
    hat: Tensor,
    below: Tensor,
    norm_eps: float,
    eps: float,
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gives the gradients of ``a``, ``b``, ``v``, ``e``, ``weight``, ``bias`` and of the norm's
    two parameters."""
    num_edges, channels = hat.shape
    grad_norm_weight, grad_norm_bias = hat.new_zeros(0), hat.new_zeros(0)
    factors = [hat.new_zeros(channels)] * 4
    if grad_e is None or norm_weight is None or norm_bias is None:
        grad_e = hat.new_zeros(0, channels)
    else:
        grad_norm_weight, grad_norm_bias, factors = norm_gradient(
            grad_e, hat, norm_weight, norm_bias, mean, var, norm_eps, batch_statistics
        )

    target = rows_of(ptr, num_edges)
    of_nodes = [kernels.padded(t) for t in (v, y, grad_y / (below + eps))]
    of_norm = [kernels.padded(t) for t in factors]
    at_a, at_b, at_v = (torch.zeros_like(of_nodes[i]) for i in (1, 0, 0))
    alike = e.size(0) != num_edges
    grad_input = torch.empty_like(e)
    grad_weight = torch.zeros_like(weight)
    size, bands = kernels.chunk_of(channels), kernels.bands_of(at_a.size(1))
    buffer = hat.new_empty(min(size, num_edges), at_a.size(1))
    for start in range(0, num_edges, size):
        end = min(start + size, num_edges)
        kernels.loop(
            "gate_backward",
            start, bands, hat, *of_nodes, target, source, grad_e, *of_norm,
            buffer[: end - start], at_a, at_b, at_v,
        )  # fmt: skip
        d_hat = buffer[: end - start, :channels]
        if alike:
            continue
        if grad_e.size(0) == 0:
            torch.mm(d_hat, weight, out=grad_input[start:end])
        else:
            torch.addmm(grad_e[start:end], d_hat, weight, out=grad_input[start:end])
        grad_weight.addmm_(d_hat.t(), e[start:end])
    grad_a, grad_b, grad_v = (t[:, :channels].contiguous() for t in (at_a, at_b, at_v))
    grad_bias = grad_a.sum(0)
    if alike:  # one row of e stands for all
        torch.addmv(grad_e.sum(0), weight.t(), grad_bias, out=grad_input[0])
        torch.outer(grad_bias, e[0], out=grad_weight)
    return (
        grad_a, grad_b, grad_v, grad_input, grad_weight, grad_bias,
        grad_norm_weight, grad_norm_bias,
    )  # fmt: skip


@_gated_edges_backward.register_fake
def _(  # type: ignore[no-untyped-def]
    grad_y, grad_e, v, e, weight, norm_weight, norm_bias, ptr, source, y, *_
):
    size = 0 if grad_e is None or norm_weight is None else y.size(1)
    tensors = (y, v, v, e, weight)
    return (
        *(torch.empty_like(t) for t in tensors),
        y.new_empty(y.size(1)),
        y.new_empty(size),
        y.new_empty(size),
    )


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    *tensors, ctx.norm_eps, ctx.eps, _ = inputs
    y, _, mean, var, hat, below = output
    ctx.save_for_backward(*tensors, y, mean, var, hat, below)
    ctx.mark_non_differentiable(mean, var, hat, below)
    ctx.set_materialize_grads(False)


def _backward(ctx, grad_y, grad_e, *_):  # type: ignore[no-untyped-def]
    *inputs, y, mean, var, hat, below = ctx.saved_tensors
    _, _, v, e, weight, _, norm_weight, norm_bias, norm_mean, _, ptr, source = inputs
    nothing = (None,) * 7
    if grad_y is None and grad_e is None:
        return (*(None,) * 8, *nothing)
    grad_y = torch.zeros_like(y) if grad_y is None else grad_y.contiguous()
    grad_e = None if grad_e is None else grad_e.contiguous()
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # Somebody wants the gradient of this gradient: the same in differentiable pieces.
        return (*_differentiable(ctx, inputs, grad_y, grad_e), *nothing)
    *gradients, grad_norm_weight, grad_norm_bias = _gated_edges_backward(
        grad_y, grad_e, v, e, weight, norm_weight, norm_bias, ptr, source, y, mean, var, hat,
        below, ctx.norm_eps, ctx.eps, norm_mean is None,
    )  # fmt: skip
    if grad_e is None:
        grad_norm_weight = grad_norm_bias = None
    return (*gradients, grad_norm_weight, grad_norm_bias, *nothing)


def _differentiable(ctx, inputs, grad_y, grad_e):  # type: ignore[no-untyped-def]
    a, b, v, e, weight, bias, norm_weight, norm_bias, norm_mean, norm_var, ptr, source = inputs
    norm = None
    if norm_weight is not None:
        norm = Norm(norm_weight, norm_bias, norm_mean, norm_var, ctx.norm_eps)
    found = _plain(Adjacency(ptr, source), a, b, v, e, weight, bias, norm, ctx.eps)
    pairs = [(found.y, grad_y)]
    if found.e is not None and grad_e is not None:
        pairs.append((found.e, grad_e))
    outputs, grads = zip(*pairs, strict=True)
    needed = ctx.needs_input_grad[:8]
    wanted = [t for t, need in zip(inputs, needed, strict=False) if need]
    gradients = iter(
        torch.autograd.grad(outputs, wanted, grads, create_graph=True, allow_unused=True)
    )
    return [next(gradients) if need else None for need in needed]


_gated_edges.register_autograd(_backward, setup_context=_setup)
