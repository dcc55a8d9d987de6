r"""BatchNorm, ReLU and residual in one: what stands around every layer.

.. math::
    \mathbf{x}_v' = \mathbf{x}_v + \textrm{ReLU}(\textrm{BN}(\mathbf{q}_v))

Of the steps in between nothing is kept; on the CPU each direction is two passes. (torch's own norm
takes twice as long at a width that is no multiple of 16, as most of the paper's.)
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fognn.ops import kernels

SMALLEST = 1 << 20
"""From how many values on the loops win: 1.6 times faster at 2 million, 0.85 at half a million,
where calling an operator of our own shows. (What torch.compile traces, it fuses itself.)"""


class Norm(NamedTuple):
    """A BatchNorm: its parameters, and the statistics that it normalises by, or :obj:`None` for
    those of the batch."""

    weight: Tensor
    bias: Tensor
    mean: Tensor | None
    var: Tensor | None
    eps: float


class Normed(NamedTuple):
    """What :func:`norm_residual` gives."""

    out: Tensor
    mean: Tensor
    """``[channels]``, by which the rows were normalised, without a gradient."""
    var: Tensor
    """``[channels]``, biased, likewise."""


def norm_residual(q: Tensor, x: Tensor, norm: Norm) -> Normed:
    r"""Gives ``x + relu(norm(q))``.

    Args:
        q: ``[num_rows, channels]``.
        x: ``[num_rows, channels]``.
        norm: The norm. With the statistics of the batch there must be two rows or more.
    """
    large = not torch.compiler.is_compiling() and q.numel() >= SMALLEST
    if not (large and kernels.has_loops(q, x, norm.weight, norm.bias)):
        return _plain(q, x, norm)
    return Normed(*_norm_residual(q.contiguous(), x.contiguous(), *norm))


def plain_norm(q: Tensor, norm: Norm) -> tuple[Tensor, Tensor, Tensor]:
    """The norm by torch's own function, with the statistics that it took."""
    if norm.mean is not None and norm.var is not None:
        normed = F.batch_norm(q, norm.mean, norm.var, norm.weight, norm.bias, eps=norm.eps)
        return normed, norm.mean, norm.var
    # With a momentum of 1, the running statistics become those of the batch.
    mean = torch.zeros_like(norm.weight, requires_grad=False)
    var = torch.ones_like(norm.weight, requires_grad=False)
    normed = F.batch_norm(q, mean, var, norm.weight, norm.bias, True, 1.0, norm.eps)
    return normed, mean, var * (1 - 1 / q.size(0))


def _plain(q: Tensor, x: Tensor, norm: Norm) -> Normed:
    normed, mean, var = plain_norm(q, norm)
    return Normed(x + normed.relu(), mean, var)


def affine(weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float) -> list[Tensor]:
    """Scale and shift that do what a norm does."""
    scale = weight * (var + eps).rsqrt()
    return [scale, bias - mean * scale]


def moments_to_statistics(
    origin: Tensor, moments: Tensor, count: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Mean and variance from the sums of ``value - origin`` and of its square, a part a row."""
    first, second = moments.sum(1) / count
    return (origin + first).to(dtype), (second - first.square()).clamp_(min=0).to(dtype)


class NormGradient(NamedTuple):
    """The gradients of a norm's parameters, and ``scale, shift, back_0, back_1`` so that the
    gradient of its input is ``passed * scale + back_0 + back_1 * input``, where ``passed`` is what
    passes the ReLU: where ``input * scale + shift`` is above zero."""

    weight: Tensor
    bias: Tensor
    factors: list[Tensor]


def norm_gradient(
    grad: Tensor,
    q: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float,
    batch_statistics: bool,
) -> NormGradient:
    """The sums over rows that the backward of norm and ReLU needs; ``mean`` and ``var`` are those
    that the forward took, from the batch or as they were given."""
    count, channels = q.shape
    scale, shift = affine(weight, bias, mean, var, eps)
    bounds = kernels.even_parts(count)
    moments = torch.zeros(2, len(bounds) - 1, channels, dtype=torch.float64)
    kernels.loop("norm_moments", grad, q, scale, shift, mean, bounds, *moments)
    inverse = (var.double() + eps).rsqrt()
    first, second = moments.sum(1)
    back_0 = back_1 = torch.zeros_like(scale)
    if batch_statistics:  # which depend on the input
        slope = -scale * inverse.square() * second / count
        back_1 = slope.to(q.dtype)
        back_0 = (-scale * first / count - slope * mean).to(q.dtype)
    return NormGradient(
        (second * inverse).to(q.dtype), first.to(q.dtype), [scale, shift, back_0, back_1]
    )


@torch.library.custom_op("fognn::norm_residual", mutates_args=())
def _norm_residual(
    q: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor | None,
    var: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    if mean is None or var is None:
        bounds = kernels.even_parts(q.size(0))
        moments = torch.zeros(2, len(bounds) - 1, q.size(1), dtype=torch.float64)
        kernels.loop("moments", q, bounds, *moments)
        mean, var = moments_to_statistics(q[0], moments, q.size(0), q.dtype)
    else:
        mean, var = mean.clone(), var.clone()
    out = torch.empty_like(q)
    kernels.loop("add_normed", q, *affine(weight, bias, mean, var, eps), x, out)
    return out, mean, var


@_norm_residual.register_fake
def _(q, x, weight, bias, mean, var, eps):  # type: ignore[no-untyped-def]
    return torch.empty_like(q), torch.empty_like(weight), torch.empty_like(weight)


@torch.library.custom_op("fognn::norm_residual_backward", mutates_args=())
def _norm_residual_backward(
    grad: Tensor,
    q: Tensor,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float,
    batch_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    found = norm_gradient(grad, q, weight, bias, mean, var, eps, batch_statistics)
    grad_q = torch.empty_like(q)
    kernels.loop("norm_backward", grad, q, *found.factors, grad_q)
    return grad_q, found.weight, found.bias


@_norm_residual_backward.register_fake
def _(grad, q, weight, bias, mean, var, eps, batch_statistics):  # type: ignore[no-untyped-def]
    return torch.empty_like(q), torch.empty_like(weight), torch.empty_like(bias)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    q, _, weight, bias, mean, var, ctx.eps = inputs
    _, new_mean, new_var = output
    ctx.save_for_backward(q, weight, bias, mean, var, new_mean, new_var)
    ctx.mark_non_differentiable(new_mean, new_var)


def _backward(ctx, grad, *_):  # type: ignore[no-untyped-def]
    q, weight, bias, mean, var, new_mean, new_var = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # Somebody wants the gradient of this gradient: the same in differentiable pieces.
        branch = plain_norm(q, Norm(weight, bias, mean, var, ctx.eps))[0].relu()
        needed = (ctx.needs_input_grad[0], *ctx.needs_input_grad[2:4])
        wanted = [t for t, need in zip((q, weight, bias), needed, strict=True) if need]
        found = iter(torch.autograd.grad(branch, wanted, grad, create_graph=True) if wanted else ())
        grad_q, grad_weight, grad_bias = (next(found) if need else None for need in needed)
    else:
        grad_q, grad_weight, grad_bias = _norm_residual_backward(
            grad.contiguous(), q, weight, bias, new_mean, new_var, ctx.eps, mean is None
        )
    return grad_q, grad, grad_weight, grad_bias, None, None, None


_norm_residual.register_autograd(_backward, setup_context=_setup)
