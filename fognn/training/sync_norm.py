"""BatchNorm over the batch of all ranks, on any device."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_geometric.nn as pyg_nn
from torch import Tensor
from torch.nn import BatchNorm1d, BatchNorm2d, Module
from torch.nn.modules.batchnorm import _BatchNorm

from fognn.nn.normalise import Normalise, merged_moments, precision_of
from fognn.nn.norms import move_statistics


def synchronise(model: Module) -> Module:
    r"""Makes every batch norm of a model normalise with the statistics of all ranks together.

    With ranks :math:`r` that hold :math:`n_r` values a channel, of mean :math:`\mu_r` and sum of
    squared deviations :math:`M_r`,

    .. math::
        n = \sum_r n_r, \qquad \mu = \frac{1}{n} \sum_r n_r \mu_r, \qquad
        \sigma^2 = \frac{1}{n} \sum_r \left( M_r + n_r (\mu_r - \mu)^2 \right)

    so that the ranks together compute the same as one rank with the whole batch.
    :class:`torch.nn.SyncBatchNorm` does the same on GPUs only.

    The norms are changed in place and keep their parameters, buffers, hooks and names, so
    checkpoints do not depend on the number of ranks. Without a process group, with one rank and in
    evaluation mode, their outputs do not change.

    In training, every rank must run the same layers in the same order, in the backward pass too; a
    rank may have a single value for each channel, or none. Each norm makes one collective call in
    the forward and one in the backward pass. The gradient of an input is that of the *sum* of the
    losses of all ranks, and the gradients of weight and bias are the rank's own part, so that
    :class:`DistributedDataParallel <torch.nn.parallel.DistributedDataParallel>`, which averages
    over ranks, gives the gradient of the *mean* loss for every parameter.

    Args:
        model (torch.nn.Module): The model, or a norm. Every :class:`torch.nn.BatchNorm1d` and
            :class:`torch.nn.BatchNorm2d` in it is synchronised, and with them
            :class:`torch_geometric.nn.BatchNorm`, whose :obj:`allow_single_element` then refers
            to the elements of all ranks.

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
                f"synchronise: {name or 'model'} must be a BatchNorm1d or BatchNorm2d of torch.nn, "
                f"and not lazy, got {type(module).__name__}"
            )
    for module in model.modules():
        # Like torch.nn.utils.parametrize: other references to the norm stay valid.
        module.__class__ = _SYNCHRONISED.get(type(module), type(module))
    return model


class _Synchronised(_BatchNorm):
    """Base class of the synchronised norms of torch.nn."""

    def synchronises(self) -> bool:
        """Returns whether a forward pass uses the statistics of all ranks."""
        if not (self.training and dist.is_available() and dist.is_initialized()):
            return False
        return dist.get_world_size() > 1

    def forward(self, input: Tensor, allow_single_element: bool = False) -> Tensor:
        if not self.synchronises():
            return super().forward(input)
        return self._with_other_ranks(input, allow_single_element)

    @torch.compiler.disable  # one graph break; tracing the collective calls causes several
    def _with_other_ranks(self, x: Tensor, allow_single_element: bool) -> Tensor:
        self._check_input_dim(x)
        if x.size(1) != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: input must have {self.num_features} channels, got "
                f"{x.size(1)}"
            )
        count, mean, squares = _moments(x.detach())
        # count is that of all ranks, so all ranks take the same branch.
        if count <= 1 and allow_single_element:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        if count == 0:
            return super().forward(x)
        if count == 1:
            raise ValueError(
                f"{type(self).__name__}: input must have more than 1 value per channel in "
                f"training, got 1 on all {dist.get_world_size()} ranks together"
            )
        if self.track_running_stats:
            move_statistics(self, mean, squares / (count - 1))
        var = squares / count
        return Normalise.apply(
            x, self.weight, self.bias, mean, var, count, self.eps, dist.all_reduce
        )


class SyncBatchNorm1d(_Synchronised, BatchNorm1d):
    r"""A :class:`torch.nn.BatchNorm1d` after :func:`synchronise`."""


class SyncBatchNorm2d(_Synchronised, BatchNorm2d):
    r"""A :class:`torch.nn.BatchNorm2d` after :func:`synchronise`."""


class SyncBatchNorm(pyg_nn.BatchNorm):
    r"""A :class:`torch_geometric.nn.BatchNorm` after :func:`synchronise`."""

    def forward(self, x: Tensor) -> Tensor:
        # PyG's check depends on this rank's elements only, and the other ranks would wait.
        if self.module.synchronises():
            return self.module(x, self.allow_single_element)
        return super().forward(x)


_SYNCHRONISED: dict[type, type] = {
    BatchNorm1d: SyncBatchNorm1d,
    BatchNorm2d: SyncBatchNorm2d,
    pyg_nn.BatchNorm: SyncBatchNorm,
}


def _moments(x: Tensor) -> tuple[int, Tensor, Tensor]:
    """Returns count, mean and sum of squared deviations of each channel over all ranks, in double
    precision and bitwise equal on every rank."""
    channels = x.size(1)
    message = torch.zeros(2 * channels + 1, dtype=torch.float64, device=x.device)
    if x.numel() > 0:
        count = x.numel() // channels
        mean, var = torch.batch_norm_update_stats(x.to(precision_of(x)), None, None, 0.0)
        message[:channels] = mean
        message[channels:-1] = var
        message[channels:-1] *= count
        message[-1] = count
    gathered = message.new_empty(dist.get_world_size(), message.numel())
    dist.all_gather(list(gathered.unbind()), message)
    means, squares, counts = gathered.split([channels, channels, 1], dim=1)
    total = int(counts.sum())
    return total, *merged_moments(counts, means, squares, total)
