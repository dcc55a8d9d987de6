"""What a layer that computes its own norm must know of torch's."""

from typing import Any

import torch
from torch.nn import BatchNorm1d
from torch_geometric.nn import BatchNorm

from fognn.ops import Norm


def is_torchs(norm: BatchNorm) -> bool:
    """Whether the norm is torch's own, and not one that is synchronised between machines, or a
    user's, which only it can compute."""
    return type(norm) is BatchNorm and type(norm.module) is BatchNorm1d


def norm_now(norm: BatchNorm, count: int) -> Norm:
    """The norm as it acts on ``count`` rows: in training by their statistics. One row has no
    variance, and is normalised by the running statistics (PyG's ``allow_single_element``)."""
    module = norm.module
    statistics = (module.running_mean, module.running_var)
    if module.training and count > 1:
        statistics = (None, None)
    return Norm(module.weight, module.bias, *statistics, module.eps)


@torch.no_grad()
def track(norm: BatchNorm, mean: Any, var: Any, count: int) -> None:
    """Moves the running statistics, as the norm's own forward does after :func:`norm_now`."""
    module = norm.module
    if not module.training or count <= 1:
        return
    module.num_batches_tracked.add_(1)
    momentum = module.momentum
    if momentum is None:  # a cumulative average
        momentum = 1.0 / float(module.num_batches_tracked)
    module.running_mean.lerp_(mean, momentum)
    module.running_var.lerp_(var * (count / (count - 1)), momentum)
