"""BatchNorm over the batch of all ranks, on any device."""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_geometric.nn as pyg_nn
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import BatchNorm1d, BatchNorm2d, Module
from torch.nn.modules.batchnorm import _BatchNorm

from fognn.nn.norms import move_statistics


def synchronise(model: Module) -> Module:
    r"""Lets every BatchNorm of a model normalise by the statistics of all ranks together.

    With ranks :math:`r` that hold :math:`n_r` values a channel, of mean :math:`\mu_r` and sum of
    squared deviations :math:`M_r`,

    .. math::
        n = \sum_r n_r, \qquad \mu = \frac{1}{n} \sum_r n_r \mu_r, \qquad
        \sigma^2 = \frac{1}{n} \sum_r \left( M_r + n_r (\mu_r - \mu)^2 \right)

    so that ranks with a share of a batch each compute what one rank computes with all of it.
    :class:`torch.nn.SyncBatchNorm` does so on a GPU and refuses a CPU.

    The norms are changed in place and keep their parameters, buffers, hooks and names: a
    checkpoint moves freely between one rank and many. Without a process group, with one rank, and
    in evaluation they are exactly the norms that they were.

    In training, every rank must run the same layers in the same order, backwards too; a rank may
    have one value a channel, or none. Each norm calls the process group once forwards and once
    backwards. The gradient of an input is that of the *sum* of all ranks' losses, and those of
    weight and bias are the rank's own part, so that :class:`DistributedDataParallel
    <torch.nn.parallel.DistributedDataParallel>`, which averages over ranks, ends with the gradient
    of the ranks' *mean* loss for every parameter.

    Args:
        model (torch.nn.Module): The model, or a norm. Every :class:`torch.nn.BatchNorm1d` and
            :class:`torch.nn.BatchNorm2d` in it is synchronised, and with them
            :class:`torch_geometric.nn.BatchNorm`, whose :obj:`allow_single_element` then speaks
            of the elements of all ranks.

    Returns:
        The model.
    """
    if not isinstance(model, Module):
        raise ValueError(
            f"synchronise: model must be a torch.nn.Module, got {type(model).__name__}"
        )
    synchronised = (_Synchronised, torch.nn.SyncBatchNorm)
    for name, module in model.named_modules():
        known = type(module) in _SYNCHRONISED or isinstance(module, synchronised)
        if isinstance(module, _BatchNorm) and not known:
            raise ValueError(
                f"synchronise: {name or 'model'} must be a BatchNorm1d or BatchNorm2d of torch.nn "
                f"with its size known, got {type(module).__name__}"
            )
    for module in model.modules():
        # As torch.nn.utils.parametrize does it: whoever holds the norm holds the new one.
        module.__class__ = _SYNCHRONISED.get(type(module), type(module))
    return model


class _Synchronised(_BatchNorm):
    """What the norms of torch.nn have in common."""

    def synchronises(self) -> bool:
        """Whether a forward pass now is one with the other ranks."""
        if not (self.training and dist.is_available() and dist.is_initialized()):
            return False
        return dist.get_world_size() > 1

    def forward(self, input: Tensor, allow_single_element: bool = False) -> Tensor:
        if not self.synchronises():
            return super().forward(input)
        return self._with_other_ranks(input, allow_single_element)

    @torch.compiler.disable  # one cut of the graph, where tracing the process group makes several
    def _with_other_ranks(self, x: Tensor, allow_single_element: bool) -> Tensor:
        self._check_input_dim(x)
        if x.size(1) != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: input must have {self.num_features} channels, got "
                f"{x.size(1)}"
            )
        count, mean, squares = _moments(x.detach())
        # From here on every rank decides alike, because it decides by numbers of all ranks.
        if count <= 1 and allow_single_element:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        if count == 0:
            return super().forward(x)
        if count == 1:
            raise ValueError(
                f"{type(self).__name__}: input must have more than 1 value a channel in training, "
                f"got 1 on all {dist.get_world_size()} ranks together"
            )
        if self.track_running_stats:
            move_statistics(self, mean, squares / (count - 1))
        return _Normalise.apply(x, self.weight, self.bias, mean, squares / count, count, self.eps)


class SyncBatchNorm1d(_Synchronised, BatchNorm1d):
    r"""A :class:`torch.nn.BatchNorm1d` after :func:`synchronise`."""


class SyncBatchNorm2d(_Synchronised, BatchNorm2d):
    r"""A :class:`torch.nn.BatchNorm2d` after :func:`synchronise`."""


class SyncBatchNorm(pyg_nn.BatchNorm):
    r"""A :class:`torch_geometric.nn.BatchNorm` after :func:`synchronise`."""

    def forward(self, x: Tensor) -> Tensor:
        # PyG looks at this rank's elements and would leave the other ranks waiting.
        if self.module.synchronises():
            return self.module(x, self.allow_single_element)
        return super().forward(x)


_SYNCHRONISED: dict[type, type] = {
    BatchNorm1d: SyncBatchNorm1d,
    BatchNorm2d: SyncBatchNorm2d,
    pyg_nn.BatchNorm: SyncBatchNorm,
}


def _moments(x: Tensor) -> tuple[int, Tensor, Tensor]:
    """Count, mean and sum of squared deviations of each channel over all ranks, in double
    precision, and to the last bit the same on every rank."""
    channels = x.size(1)
    message = torch.zeros(2 * channels + 1, dtype=torch.float64, device=x.device)
    if x.numel() > 0:
        count = x.numel() // channels
        mean, var = torch.batch_norm_update_stats(x.to(_precision(x)), None, None, 0.0)
        message[:channels] = mean
        message[channels:-1] = var
        message[channels:-1] *= count
        message[-1] = count
    everyone = message.new_empty(dist.get_world_size(), message.numel())
    dist.all_gather(list(everyone.unbind()), message)
    means, squares, counts = everyone.split([channels, channels, 1], dim=1)
    total = int(counts.sum())
    mean = (counts * means).sum(dim=0) / max(total, 1)
    return total, mean, (squares + counts * (means - mean).square()).sum(dim=0)


def _precision(x: Tensor) -> torch.dtype:
    """What the statistics of ``x`` are held in: half precision, as of autocast, is too coarse."""
    return torch.promote_types(x.dtype, torch.float32)


class _Normalise(Function):
    """``(x - mean) / sqrt(var + eps) * weight + bias``, where mean and variance are those of the
    ``x`` of all ranks, and the gradient knows it."""

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
    ) -> Tensor:
        mean, var = mean.to(_precision(x)), var.to(_precision(x))
        ctx.save_for_backward(x, weight, mean, var)
        ctx.count, ctx.eps = count, eps
        return _affine(x, mean, var, weight, bias, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, var = ctx.saved_tensors
        if x.numel() > 0:
            # In evaluation mode, this is sum(grad * x_hat) and sum(grad), in one pass.
            _, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
                grad, x, None, mean, var, None, None, False, ctx.eps, [False, True, True]
            )
        else:
            grad_weight, grad_bias = torch.zeros_like(mean), torch.zeros_like(mean)
        sums = torch.stack([grad_weight, grad_bias]).double()
        dist.all_reduce(sums)

        grad_x = None
        needs_x, needs_weight, needs_bias, *_ = ctx.needs_input_grad
        if needs_x:
            scale = (var + ctx.eps).rsqrt()
            if weight is not None:
                scale = scale * weight
            back = (sums / -ctx.count * scale).to(mean.dtype)
            grad_x = _affine(x.to(mean.dtype), mean, var, back[0], back[1], ctx.eps)
            grad_x = grad_x.addcmul_(grad, scale.view(-1, *[1] * (x.dim() - 2))).to(x.dtype)
        grad_weight = grad_weight if needs_weight else None
        grad_bias = grad_bias if needs_bias else None
        return grad_x, grad_weight, grad_bias, None, None, None, None


def _affine(
    x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """``x_hat * weight + bias`` in the precision of the statistics, with one pass over ``x``."""
    weight = weight if weight is None else weight.to(mean.dtype)
    bias = bias if bias is None else bias.to(mean.dtype)
    return F.batch_norm(x, mean, var, weight, bias, eps=eps)
