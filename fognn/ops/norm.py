r"""BatchNorm inside an operator: its parameters, its statistics and its gradient."""

from typing import NamedTuple

import torch
from torch import Tensor

from fognn.ops import kernels


class Norm(NamedTuple):
    """The parameters of a BatchNorm, and the mean and variance that it normalises by (:obj:`None`
    for those of the batch)."""

    weight: Tensor
    bias: Tensor
    mean: Tensor | None
    var: Tensor | None
    eps: float


def affine(weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float) -> list[Tensor]:
    """The norm as a scale and a shift of each channel."""
    scale = weight * (var + eps).rsqrt()
    return [scale, bias - mean * scale]


def moments_to_statistics(
    origin: Tensor, moments: Tensor, count: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Mean and variance from the sums of ``value - origin`` and of its square, one row a part."""
    first, second = moments.sum(1) / count
    return (origin + first).to(dtype), (second - first.square()).clamp_(min=0).to(dtype)


class NormGradient(NamedTuple):
    """The gradients of a norm's parameters, and the factors ``scale, shift, back_0, back_1``: the
    gradient of its input is ``passed * scale + back_0 + back_1 * input``, where ``passed`` is the
    gradient of the output where ``input * scale + shift`` is above zero (ReLU), and zero
    elsewhere."""

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
    """The sums over rows for the backward of norm and ReLU; ``mean`` and ``var`` are those that the
    forward used."""
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
