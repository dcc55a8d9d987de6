"""BatchNorm inside of layers and operators, and on rows that stand for several equal ones."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import BatchNorm1d, BatchNorm2d
from torch_geometric.nn import BatchNorm

from fognn.ops import Norm


def can_fuse(norm: BatchNorm) -> bool:
    """Whether an operator can compute the norm: it is torch's own with parameters and running
    statistics. A synchronised norm, or a user's own, must be called itself."""
    if type(norm) is not BatchNorm or type(norm.module) is not BatchNorm1d:
        return False
    return norm.module.affine and norm.module.track_running_stats and norm.allow_single_element


def as_norm(norm: BatchNorm, count: int) -> Norm:
    """The norm for ``count`` rows: in training with the statistics of the batch. A single row has
    no variance and is normalised by the running statistics (PyG's ``allow_single_element``)."""
    module = norm.module
    statistics = (module.running_mean, module.running_var)
    if module.training and count > 1:
        statistics = (None, None)
    return Norm(module.weight, module.bias, *statistics, module.eps)


def update_running_statistics(norm: BatchNorm, mean: Any, var: Any, count: int) -> None:
    """Updates the running statistics by those of a batch of ``count`` rows, as the norm's own
    forward does."""
    if norm.module.training and count > 1:
        _update(norm.module, mean, var * (count / (count - 1)))


@torch.no_grad()
def _update(module: Any, mean: Tensor, var: Tensor) -> None:
    module.num_batches_tracked.add_(1)
    momentum = module.momentum
    if momentum is None:  # a cumulative average
        momentum = 1.0 / float(module.num_batches_tracked)
    for running, new in ((module.running_mean, mean), (module.running_var, var)):
        running.lerp_(new.to(running.dtype), momentum)


class Repeats(NamedTuple):
    r"""How often the rows of a batch occur in the batch that they stand for.

    Args:
        sizes (tuple): The numbers of rows of consecutive blocks.
        counts (tuple): How often each row of a block occurs.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]


def repeated_norm(norm: Any, x: Tensor, repeats: Repeats) -> Tensor:
    r"""Returns the output of a BatchNorm for the distinct rows of a batch, ``[N, C]`` or
    ``[N, C, H, W]``.

    Output, gradients and running statistics are those of the batch in which each row is repeated,
    where the gradient of an output row is the sum over its repetitions.
    """
    if not norm.training or max(repeats.counts) == 1:
        return norm(x)
    inner: Any = norm.module if type(norm) is BatchNorm else norm
    known = type(inner) in (BatchNorm1d, BatchNorm2d) and inner.affine
    known = known and inner.track_running_stats
    if not known or x.dtype != inner.running_mean.dtype:
        # A synchronised norm, or a user's own, or mixed precision.
        counts = torch.tensor(repeats.counts).repeat_interleave(torch.tensor(repeats.sizes))
        first = counts.cumsum(0) - counts
        whole = norm(x.repeat_interleave(counts.to(x.device), 0))
        return whole[first.to(x.device)]
    return _repeated_norm(inner, x, repeats)


@torch.compiler.disable
def _repeated_norm(norm: Any, x: Tensor, repeats: Repeats) -> Tensor:
    means, squares, counts = [], [], []
    for block, count in zip(x.detach().split(repeats.sizes), repeats.counts, strict=True):
        mean, var = torch.batch_norm_update_stats(block, None, None, 0.0)
        counts.append(count * block.numel() // block.size(1))
        means.append(mean)
        squares.append(var * counts[-1])
    total = sum(counts)
    weight, stacked = x.new_tensor(counts).unsqueeze(1), torch.stack(means)
    mean = (weight * stacked).sum(dim=0) / total
    var = (torch.stack(squares) + weight * (stacked - mean).square()).sum(dim=0) / total
    _update(norm, mean, var * (total / (total - 1)))
    return _Normalise.apply(x, norm.weight, norm.bias, mean, var, total, norm.eps, repeats)


class _Normalise(Function):
    """``(x - mean) / sqrt(var + eps) * weight + bias``, where mean and variance are those of the
    batch that ``x`` stands for, of ``total`` values a channel. In autograd's own operations a step
    of a few-shot network takes 1.5 times as long."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, *batch: Any
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, var)
        ctx.total, ctx.eps, ctx.repeats = batch
        return F.batch_norm(x, mean, var, weight, bias, eps=ctx.eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, var = ctx.saved_tensors
        # With train=False, this computes sum(grad * x_hat) and sum(grad) in one pass.
        _, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, None, mean, var, None, None, False, ctx.eps, [False, True, True]
        )
        scale = (var + ctx.eps).rsqrt() * weight
        back = torch.stack([grad_weight, grad_bias]).double() / -ctx.total
        of_weight, of_bias = (back * scale).to(mean.dtype)
        parts = [
            F.batch_norm(part, mean, var, n * of_weight, n * of_bias, eps=ctx.eps)
            for part, n in zip(x.split(ctx.repeats.sizes), ctx.repeats.counts, strict=True)
        ]
        grad_x = torch.cat(parts).addcmul_(grad, scale.view(-1, *[1] * (x.dim() - 2)))
        return grad_x, grad_weight, grad_bias, None, None, None, None, None
