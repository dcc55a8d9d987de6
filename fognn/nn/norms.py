"""The state of a BatchNorm, for layers and operators that compute the norm themselves."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import BatchNorm1d
from torch_geometric.nn import BatchNorm

from fognn.ops import Norm


def is_torchs(norm: BatchNorm) -> bool:
    """Whether the norm is torch's own with parameters and running statistics. A synchronised norm,
    or a user's own, must be called itself."""
    if type(norm) is not BatchNorm or type(norm.module) is not BatchNorm1d:
        return False
    return norm.module.affine and norm.module.track_running_stats and norm.allow_single_element


def norm_now(norm: BatchNorm, count: int) -> Norm:
    """The norm for ``count`` rows: in training with the statistics of the batch. A single row has
    no variance and is normalised by the running statistics (PyG's ``allow_single_element``)."""
    module = norm.module
    statistics = (module.running_mean, module.running_var)
    if module.training and count > 1:
        statistics = (None, None)
    return Norm(module.weight, module.bias, *statistics, module.eps)


def track(norm: BatchNorm, mean: Any, var: Any, count: int) -> None:
    """Updates the running statistics, as the norm's own forward does."""
    if norm.module.training and count > 1:
        move_statistics(norm.module, mean, var * (count / (count - 1)))


@torch.no_grad()
def move_statistics(module: Any, mean: Tensor, var: Tensor) -> None:
    """Updates the running statistics of a BatchNorm by a mean and an unbiased variance."""
    module.num_batches_tracked.add_(1)
    momentum = module.momentum
    if momentum is None:  # a cumulative average
        momentum = 1.0 / float(module.num_batches_tracked)
    for running, new in ((module.running_mean, mean), (module.running_var, var)):
        running.lerp_(new.to(running.dtype), momentum)
