"""Checks of the arguments that all layers have, and degrees."""

import torch
from torch import Tensor
from torch_geometric.typing import PairTensor

from fognn.ops import Adjacency, segment_sum
from fognn.utils import checks


def node_pair(owner: str, x: Tensor | PairTensor, channels: int, dtype: torch.dtype) -> PairTensor:
    """Returns the features of sources and targets, the same object on a homogeneous graph."""
    if isinstance(x, Tensor):
        x = (x, x)
    elif not isinstance(x, tuple | list) or len(x) != 2:
        what = type(x).__name__
        raise ValueError(f"{owner}: x must be a tensor or a pair (x_source, x_target), got {what}")
    names = ("x", "x") if x[0] is x[1] else ("x[0] (sources)", "x[1] (targets)")
    for name, part in zip(names, x, strict=True):
        checks.features(owner, name, part, channels, dtype)
        channels = part.size(1)
    return x[0], x[1]


def edge_weights(owner: str, adj: Adjacency, weight: Tensor | None) -> Tensor | None:
    """Returns edge weights in the order of ``adj``: the argument, or a sparse matrix's values."""
    if weight is None:
        return adj.weight
    if adj.weight is not None:
        raise ValueError(
            f"{owner}: edge_weight must be None for a sparse edge_index, whose values are the "
            "weights"
        )
    checks.per_edge(owner, "edge_weight", weight, adj.num_edges)
    if weight.dim() == 2 and weight.size(1) == 1:
        weight = weight.squeeze(1)
    if weight.dim() != 1:
        shape = list(weight.shape)
        raise ValueError(f"{owner}: edge_weight must have shape [num_edges], got {shape}")
    return adj.sort(weight)


def edge_features(
    owner: str, adj: Adjacency, value: Tensor | None, channels: int | None, dtype: torch.dtype
) -> Tensor | None:
    """Returns edge features, ``[num_edges, channels]``, in the order of ``adj``."""
    if channels is None:
        if value is not None:
            raise ValueError(f"{owner}: edge_attr must be None for a layer without edge_dim")
        return None
    if not isinstance(value, Tensor):
        what = type(value).__name__
        raise ValueError(f"{owner}: edge_attr must be given with edge_dim={channels}, got {what}")
    checks.per_edge(owner, "edge_attr", value, adj.num_edges)
    if value.dim() == 1:
        value = value.unsqueeze(1)
    checks.features(owner, "edge_attr", value, channels, dtype)
    return adj.sort(value)


def reciprocal_degree(adj: Adjacency, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Returns one over the sum of the weights of each node, ``[num_targets, 1]``; 0 for a node
    without neighbours, as in PyG."""
    if weight is None:
        degree = adj.ptr.diff().to(dtype).unsqueeze(1)
    else:
        degree = segment_sum(adj.ptr, weight.to(dtype).unsqueeze(1))
    return degree.reciprocal().masked_fill(degree == 0, 0.0)
