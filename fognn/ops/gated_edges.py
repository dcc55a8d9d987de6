r"""The edges of a GatedGCN layer: Linear, gates, sum, norm, ReLU and residual, as one operator on
the CPU, which keeps only three tensors of edges x channels: the input, the output and the gates
before the sigmoid. The backward processes the edges in chunks that fit into the cache."""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import ptr2index

from fognn.ops import kernels
from fognn.ops.adjacency import Adjacency
from fognn.ops.spmm import segment_sum


def gated_sum(
    adj: Adjacency, gate: Tensor, x: Tensor, weight: Tensor | None = None, eps: float = 1e-6
) -> Tensor:
    r"""Sums neighbours through gates that are normalised over the in-edges of each node.

    .. math::
        \mathbf{y}_v = \frac{\sum_{u} \sigma(\mathbf{e}_{vu}) \odot \mathbf{x}_u}
        {\sum_{u} \sigma(\mathbf{e}_{vu}) + \varepsilon}

    Args:
        adj (Adjacency): The graph.
        gate (torch.Tensor): The gates before the sigmoid, ``[num_edges, channels]``, in the order
            of ``adj``.
        x (torch.Tensor): Features of the sources, ``[num_sources, channels]``.
        weight (torch.Tensor, optional): Factors of the messages, ``[num_edges]``, such as an
            explainer's mask; they are not in the divisor. (default: :obj:`None`)
        eps (float, optional): Keeps the quotient of a node without in-edges at zero.
            (default: :obj:`1e-6`)
    """
    sigma = gate.sigmoid()
    total = segment_sum(adj.ptr, sigma * x.index_select(0, adj.source), weight)
    return total / (segment_sum(adj.ptr, sigma) + eps)


class Norm(NamedTuple):
    """A BatchNorm's parameters, and its mean and variance, :obj:`None` for those of the batch."""

    weight: Tensor
    bias: Tensor
    mean: Tensor | None
    var: Tensor | None
    eps: float


def gated_edges(
    adj: Adjacency,
    of_target: Tensor,
    of_source: Tensor,
    e: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm: Norm | None,
    eps: float = 1e-6,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    r"""Computes the gated averages of neighbours, and with a norm the new edge features and the
    mean and biased variance that they were normalised by (:obj:`None` without), in loops: only if
    :func:`fognn.ops.kernels.has_loops` is true of the tensors, and there are edges.

    .. math::
        \hat{\mathbf{e}}_{vu} &= \mathbf{a}_v + \mathbf{b}_u + \mathbf{C} \mathbf{e}_{vu}

        \mathbf{y}_v &= \mathbf{u}_v + \frac{\sum_{u} \sigma(\hat{\mathbf{e}}_{vu}) \odot
        \mathbf{v}_u}{\sum_{u} \sigma(\hat{\mathbf{e}}_{vu}) + \varepsilon}

        \mathbf{e}_{vu}' &= \mathbf{e}_{vu} + \textrm{ReLU}(\textrm{BN}(\hat{\mathbf{e}}_{vu}))

    Args:
        adj (Adjacency): The graph.
        of_target (torch.Tensor): :math:`\mathbf{a}` and :math:`\mathbf{u}`, each in the first
            channels of its half, ``[num_targets, 2 * width]``: the product with :func:`stacked`
            weights.
        of_source (torch.Tensor): :math:`\mathbf{b}` and :math:`\mathbf{v}`, likewise,
            ``[num_sources, 2 * width]``.
        e (torch.Tensor): Edge features, ``[num_edges, channels]`` in the order of ``adj``, or
            ``[1, channels]`` if all edges have the same.
        weight (torch.Tensor): Weight of :math:`\mathbf{C}`, ``[channels, channels]``.
        bias (torch.Tensor): Bias of :math:`\mathbf{C}`, ``[channels]``.
        norm (Norm, optional): The norm, or :obj:`None` if the new edge features are not needed.
        eps (float, optional): Keeps the quotient of a node without in-edges at zero.
            (default: :obj:`1e-6`)
    """
    *of_norm, norm_eps = norm or (None, None, None, None, 0.0)
    tensors = [of_target, of_source, e, weight, bias, *(norm[:2] if norm else ())]
    with_grad = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    of_target, of_source, e, weight = (t.contiguous() for t in (of_target, of_source, e, weight))
    y, out, mean, var, *_ = _gated_edges(
        of_target, of_source, e, weight, bias, *of_norm, adj.ptr, adj.source, norm_eps, eps,
        with_grad,
    )  # fmt: skip
    return (y, out, mean, var) if norm else (y, None, None, None)


def stacked(*linears: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Weight and bias of one Linear in place of several of one shape, the output of each padded to
    the width that :func:`gated_edges` needs."""
    channels = linears[0][0].size(0)
    more = kernels.padded_width(channels) - channels
    weights = [F.pad(weight, (0, 0, 0, more)) if more else weight for weight, _ in linears]
    biases = [F.pad(bias, (0, more)) if more else bias for _, bias in linears]
    return torch.cat(weights), torch.cat(biases)


@torch.library.custom_op("fognn::gated_edges", mutates_args=())
def _gated_edges(
    of_target: Tensor,
    of_source: Tensor,
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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Returns the four tensors of :func:`gated_edges` and, for the backward, the gates before the
    sigmoid, the gated averages and the reciprocals of the gates' sums."""
    kernels.check_sources(source, of_source.size(0))
    num_edges, channels, width = source.size(0), weight.size(0), of_target.size(1) // 2
    hat = torch.addmm(bias, e, weight.t())
    if e.size(0) != num_edges:
        hat = hat.repeat(num_edges, 1)
    bounds = kernels.parts_of(ptr)
    first_row = int(np.searchsorted(ptr.numpy(), 0, side="right")) - 1
    origin = of_target[first_row, :width] + of_source[int(source[0]), :width]
    origin[:channels] += hat[0]
    y = of_target.new_empty(of_target.size(0), channels)
    average = of_target.new_empty(of_target.size(0), width)
    inverse = torch.empty_like(average)
    moments = torch.zeros(2, len(bounds) - 1, width, dtype=torch.float64)
    kernels.loop(
        "gate_rows",
        hat, of_target, of_source, ptr, source, bounds, eps, origin, y, average, inverse, *moments,
    )  # fmt: skip
    none = hat.new_empty(0)
    if not with_grad:
        average, inverse = none.clone(), none.clone()
    if norm_weight is None or norm_bias is None:
        saved = hat if with_grad else none.clone()
        return y, none, none.clone(), none.clone(), saved, average, inverse
    if norm_mean is None or norm_var is None:
        first, second = moments[:, :, :channels].sum(1) / num_edges
        mean = (origin[:channels] + first).to(hat.dtype)
        var = (second - first.square()).clamp_(min=0).to(hat.dtype)
    else:
        mean, var = norm_mean.clone(), norm_var.clone()
    out = torch.empty_like(hat) if with_grad else hat
    kernels.loop("add_normed", hat, *_affine(norm_weight, norm_bias, mean, var, norm_eps), e, out)
    return y, out, mean, var, hat if with_grad else none, average, inverse


@_gated_edges.register_fake
def _(  # type: ignore[no-untyped-def]
    of_target, of_source, e, weight, bias, norm_weight, norm_bias, norm_mean, norm_var, ptr,
    source, norm_eps, eps, with_grad,
):  # fmt: skip
    (nodes, both), channels, edges = of_target.shape, weight.size(0), source.size(0)
    shapes = [(nodes, channels), (edges, channels), (channels,), (channels,)]
    shapes = shapes if norm_weight is not None else [shapes[0], (0,), (0,), (0,)]
    saved = [(edges, channels), (nodes, both // 2), (nodes, both // 2)]
    shapes += saved if with_grad else [(0,), (0,), (0,)]
    return tuple(of_target.new_empty(shape) for shape in shapes)


def _affine(weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float) -> list[Tensor]:
    """The norm as a scale and a shift of each channel."""
    scale = weight * (var + eps).rsqrt()
    return [scale, bias - mean * scale]


def _norm_gradient(
    grad: Tensor,
    hat: Tensor,
    norm: tuple[Tensor, Tensor, Tensor, Tensor, float],
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Returns the gradients of a norm's weight and bias, and the factors ``scale, shift, back_0,
    back_1``: the gradient of ``hat`` is ``passed * scale + back_0 + back_1 * hat``, where
    ``passed`` is the gradient of the output where ``hat * scale + shift`` is above zero (ReLU), and
    zero elsewhere. The norm has the mean and variance that the forward used."""
    (count, channels), (_, _, mean, var, eps) = hat.shape, norm
    scale, shift = _affine(*norm)
    bounds = kernels.even_parts(count)
    moments = torch.zeros(2, len(bounds) - 1, channels, dtype=torch.float64)
    kernels.loop("norm_moments", grad, hat, scale, shift, mean, bounds, *moments)
    inverse = (var.double() + eps).rsqrt()
    first, second = moments.sum(1)
    back_0 = back_1 = torch.zeros_like(scale)
    if batch_statistics:  # which depend on the input
        slope = -scale * inverse.square() * second / count
        back_1 = slope.to(hat.dtype)
        back_0 = (-scale * first / count - slope * mean).to(hat.dtype)
    factors = [scale, shift, back_0, back_1]
    return (second * inverse).to(hat.dtype), first.to(hat.dtype), factors


@torch.library.custom_op("fognn::gated_edges_backward", mutates_args=())
def _gated_edges_backward(
    grad_y: Tensor,
    grad_e: Tensor | None,
    of_source: Tensor,
    e: Tensor,
    weight: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    ptr: Tensor,
    source: Tensor,
    mean: Tensor,
    var: Tensor,
    hat: Tensor,
    average: Tensor,
    inverse: Tensor,
    norm_eps: float,
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Returns the gradients of both ends, ``e``, ``weight``, ``bias`` and the norm's parameters."""
    (num_edges, channels), width = hat.shape, average.size(1)
    grad_norm_weight, grad_norm_bias = hat.new_zeros(0), hat.new_zeros(0)
    factors = [hat.new_zeros(channels)] * 4
    if grad_e is None or norm_weight is None or norm_bias is None:
        grad_e = hat.new_zeros(0, channels)
    else:
        norm = (norm_weight, norm_bias, mean, var, norm_eps)
        of_norm = _norm_gradient(grad_e, hat, norm, batch_statistics)
        grad_norm_weight, grad_norm_bias, factors = of_norm
    factors = [kernels.padded(t) for t in factors]

    target = ptr2index(ptr, num_edges)
    through = kernels.padded(grad_y) * inverse
    grad_target = hat.new_zeros(grad_y.size(0), 2 * width)
    grad_target[:, width : width + channels] = grad_y
    grad_source = torch.zeros_like(of_source)
    alike = e.size(0) != num_edges
    grad_input = torch.empty_like(e)
    grad_weight = torch.zeros_like(weight)
    size, bands = kernels.chunk_of(channels), kernels.bands_of(width)
    buffer = hat.new_empty(min(size, num_edges), width)
    for start in range(0, num_edges, size):
        end = min(start + size, num_edges)
        kernels.loop(
            "gate_backward",
            start, bands, hat, of_source, average, through, target, source, grad_e, *factors,
            buffer[: end - start], grad_target, grad_source,
        )  # fmt: skip
        if alike:
            continue
        d_hat = buffer[: end - start, :channels]
        if grad_e.size(0) == 0:
            torch.mm(d_hat, weight, out=grad_input[start:end])
        else:
            torch.addmm(grad_e[start:end], d_hat, weight, out=grad_input[start:end])
        grad_weight.addmm_(d_hat.t(), e[start:end])
    grad_bias = grad_target[:, :channels].sum(0)
    if alike:  # one row of e stands for all
        torch.addmv(grad_e.sum(0), weight.t(), grad_bias, out=grad_input[0])
        torch.outer(grad_bias, e[0], out=grad_weight)
    return (
        grad_target, grad_source, grad_input, grad_weight, grad_bias,
        grad_norm_weight, grad_norm_bias,
    )  # fmt: skip


@_gated_edges_backward.register_fake
def _(  # type: ignore[no-untyped-def]
    grad_y, grad_e, of_source, e, weight, norm_weight, *rest
):
    new, channels = of_source.new_empty, weight.size(0)
    statistics = 0 if grad_e is None or norm_weight is None else channels
    of_target = new(grad_y.size(0), of_source.size(1))
    like = (torch.empty_like(t) for t in (of_source, e, weight))
    return of_target, *like, new(channels), new(statistics), new(statistics)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    *tensors, ctx.norm_eps, ctx.eps, _ = inputs
    _, _, mean, var, hat, average, inverse = output
    ctx.save_for_backward(*tensors, mean, var, hat, average, inverse)
    ctx.mark_non_differentiable(mean, var, hat, average, inverse)
    ctx.set_materialize_grads(False)


def _backward(ctx, grad_y, grad_e, *_):  # type: ignore[no-untyped-def]
    *inputs, mean, var, hat, average, inverse = ctx.saved_tensors
    of_target, of_source, e, weight, _, norm_weight, norm_bias, norm_mean, _, ptr, source = inputs
    if grad_y is None:
        grad_y = of_target.new_zeros(of_target.size(0), weight.size(0))
    *gradients, grad_norm_weight, grad_norm_bias = _gated_edges_backward(
        grad_y.contiguous(), None if grad_e is None else grad_e.contiguous(), of_source, e, weight,
        norm_weight, norm_bias, ptr, source, mean, var, hat, average, inverse, ctx.norm_eps,
        norm_mean is None,
    )  # fmt: skip
    if grad_e is None:
        grad_norm_weight = grad_norm_bias = None
    return (*gradients, grad_norm_weight, grad_norm_bias, *(None,) * 7)


_gated_edges.register_autograd(_backward, setup_context=_setup)
