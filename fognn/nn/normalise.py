"""The normalisation of BatchNorm by given statistics, for batches that are divided over ranks, or
in which rows stand for several equal ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import BatchNorm1d, BatchNorm2d
from torch_geometric.nn import BatchNorm

from fognn.nn.norms import move_statistics


class Repeats(NamedTuple):
    r"""How often the rows of a batch occur in the batch that they stand for.

    Args:
        sizes (tuple): The numbers of rows of consecutive blocks.
        counts (tuple): How often each row of a block occurs.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]


def repeated_norm(norm: Any, x: Tensor, repeats: Repeats) -> Tensor:
    r"""Returns the output of a BatchNorm for the distinct rows of a batch.

    Output, gradients and running statistics are those of the batch in which each row is repeated,
    where the gradient of an output row is the sum over its repetitions.

    Args:
        norm (torch.nn.Module): :class:`torch.nn.BatchNorm1d`, :class:`torch.nn.BatchNorm2d` or
            :class:`torch_geometric.nn.BatchNorm`.
        x (torch.Tensor): The distinct rows, ``[N, C]`` or ``[N, C, H, W]``.
        repeats (Repeats): Their repetitions.
    """
    if not norm.training or max(repeats.counts) == 1:
        return norm(x)
    inner: Any = norm.module if type(norm) is BatchNorm else norm
    known = type(inner) in (BatchNorm1d, BatchNorm2d) and inner.track_running_stats
    if not known or x.dtype != inner.running_mean.dtype:
        # A synchronised norm, or a user's own, or mixed precision.
        counts = torch.tensor(repeats.counts).repeat_interleave(torch.tensor(repeats.sizes))
        first = counts.cumsum(0) - counts
        whole = norm(x.repeat_interleave(counts.to(x.device), 0))
        return whole[first.to(x.device)]
    return _normalised(inner, x, repeats)


@torch.compiler.disable
def _normalised(norm: Any, x: Tensor, repeats: Repeats) -> Tensor:
    means, squares, counts = [], [], []
    for block, count in zip(x.detach().split(repeats.sizes), repeats.counts, strict=True):
        mean, var = torch.batch_norm_update_stats(block, None, None, 0.0)
        counts.append(count * block.numel() // block.size(1))
        means.append(mean)
        squares.append(var * counts[-1])
    total = sum(counts)
    weight = x.new_tensor(counts).unsqueeze(1)
    mean, square = merged_moments(weight, torch.stack(means), torch.stack(squares), total)
    var = square / total
    move_statistics(norm, mean, var * (total / (total - 1)))
    return Normalise.apply(x, norm.weight, norm.bias, mean, var, total, norm.eps, None, repeats)


def merged_moments(
    counts: Tensor, means: Tensor, squares: Tensor, total: int
) -> tuple[Tensor, Tensor]:
    """Returns the mean and the sum of squared deviations of each channel over parts of a batch.

    Args:
        counts (torch.Tensor): The number of values of a channel in each part, ``[parts, 1]``.
        means (torch.Tensor): Their means, ``[parts, channels]``.
        squares (torch.Tensor): Their sums of squared deviations, ``[parts, channels]``.
        total (int): The sum of the counts.
    """
    mean = (counts * means).sum(dim=0) / max(total, 1)
    return mean, (squares + counts * (means - mean).square()).sum(dim=0)


class Normalise(Function):
    """Computes ``(x - mean) / sqrt(var + eps) * weight + bias``. Mean and variance are those of the
    batch that ``x`` is a part of or stands for, and the backward pass differentiates through them.

    ``count`` is the number of values of a channel in that batch; ``reduce`` adds the sums of the
    backward pass over the parts, in place.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        var: Tensor,
        count: int,
        eps: float,
        reduce: Callable[[Tensor], Any] | None = None,
        repeats: Repeats | None = None,
    ) -> Tensor:
        mean, var = mean.to(precision_of(x)), var.to(precision_of(x))
        ctx.save_for_backward(x, weight, mean, var)
        ctx.count, ctx.eps, ctx.reduce, ctx.repeats = count, eps, reduce, repeats
        return _affine(x, mean, var, weight, bias, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, var = ctx.saved_tensors
        if x.numel() > 0:
            # With train=False, this computes sum(grad * x_hat) and sum(grad) in one pass.
            _, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
                grad, x, None, mean, var, None, None, False, ctx.eps, [False, True, True]
            )
        else:
            grad_weight, grad_bias = torch.zeros_like(mean), torch.zeros_like(mean)
        sums = torch.stack([grad_weight, grad_bias]).double()
        if ctx.reduce is not None:
            ctx.reduce(sums)

        grad_x = None
        needs_x, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        if needs_x:
            scale = (var + ctx.eps).rsqrt()
            if weight is not None:
                scale = scale * weight
            back = (sums / -ctx.count * scale).to(mean.dtype)
            sizes, counts = ctx.repeats or ([len(x)], [1])
            parts = [
                _affine(part.to(mean.dtype), mean, var, n * back[0], n * back[1], ctx.eps)
                for part, n in zip(x.split(sizes), counts, strict=True)
            ]
            grad_x = parts[0] if len(parts) == 1 else torch.cat(parts)
            grad_x = grad_x.addcmul_(grad, scale.view(-1, *[1] * (x.dim() - 2))).to(x.dtype)
        grad_weight = grad_weight if needs_weight else None
        grad_bias = grad_bias if needs_bias else None
        return grad_x, grad_weight, grad_bias, None, None, None, None, None, None


def precision_of(x: Tensor) -> torch.dtype:
    """Returns the dtype of the statistics of ``x``: at least float32, also under autocast."""
    return torch.promote_types(x.dtype, torch.float32)


def _affine(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """Computes ``x_hat * weight + bias`` in the precision of the statistics, in one pass."""
    weight = weight if weight is None else weight.to(mean.dtype)
    bias = bias if bias is None else bias.to(mean.dtype)
    return F.batch_norm(x, mean, var, weight, bias, eps=eps)
