from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.nn.inits import reset
from torch_geometric.typing import PairTensor

from fognn.ops import Adjacency, adjacency, segment_sum
from fognn.utils import checks


class Resettable(Module):
    """The base of modules whose parameters are those of their parts."""

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for module in self.children():
            reset(module)


class GraphLayer(Resettable, MessagePassing):
    r"""The base of all layers on graphs.

    It is a :class:`torch_geometric.nn.MessagePassing`, because that is how
    :func:`torch_geometric.nn.to_hetero` and :class:`torch_geometric.explain.Explainer` find the
    layers of a network. The sums over edges are those of :mod:`fognn.ops`: there are no messages.
    """

    edge_dim: int | None

    def __init__(self) -> None:
        super().__init__(aggr=None)

    def edge_linear(
        self, edge_dim: int | None, channels: int, always: bool = True, **options: Any
    ) -> Linear | None:
        r"""Returns the Linear of edge features; unless ``always``, only if the sizes differ."""
        self.edge_dim = edge_dim
        if edge_dim is None:
            return None
        checks.positive_int(type(self).__name__, "edge_dim", edge_dim)
        return Linear(edge_dim, channels, **options) if always or edge_dim != channels else None

    def inputs(
        self, x: Tensor | PairTensor, edge_index: Any, channels: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Adjacency]:
        r"""Returns the features of sources and targets, on one set of nodes the same object, and
        the graph."""
        owner, given = type(self).__name__, type(x).__name__
        if isinstance(x, Tensor):
            x = (x, x)
        elif not isinstance(x, tuple | list) or len(x) != 2:
            raise ValueError(
                f"{owner}: x must be a tensor or a pair (x_source, x_target), got {given}"
            )
        names = ("x", "x") if x[0] is x[1] else ("x[0] (sources)", "x[1] (targets)")
        for name, part in zip(names, x, strict=True):
            checks.features(owner, name, part, channels, dtype)
            channels = part.size(1)
        return x[0], x[1], adjacency(edge_index, x[0].size(0), x[1].size(0))

    def edge_weights(self, adj: Adjacency, weight: Tensor | None) -> Tensor | None:
        r"""Returns edge weights, or a sparse matrix's values, in the order of ``adj``."""
        owner = type(self).__name__
        if weight is None:
            return adj.weight
        if adj.weight is not None:
            raise ValueError(
                f"{owner}: edge_weight must be None for a sparse edge_index, whose values are the "
                "weights"
            )
        checks.per_edge(owner, "edge_weight", weight, adj.num_edges)
        weight = weight.squeeze(1) if weight.shape[1:] == (1,) else weight
        if weight.dim() != 1:
            shape = list(weight.shape)
            raise ValueError(f"{owner}: edge_weight must have shape [num_edges], got {shape}")
        return adj.sort(weight)

    def edge_features(
        self, adj: Adjacency, value: Tensor | None, dtype: torch.dtype
    ) -> Tensor | None:
        r"""Returns edge features, ``[num_edges, edge_dim]``, in the order of ``adj``."""
        owner, channels = type(self).__name__, self.edge_dim
        if channels is None:
            if value is not None:
                raise ValueError(f"{owner}: edge_attr must be None for a layer without edge_dim")
            return None
        if not isinstance(value, Tensor):
            given = type(value).__name__
            raise ValueError(
                f"{owner}: edge_attr must be given with edge_dim={channels}, got {given}"
            )
        checks.per_edge(owner, "edge_attr", value, adj.num_edges)
        value = value.unsqueeze(1) if value.dim() == 1 else value
        checks.features(owner, "edge_attr", value, channels, dtype)
        return adj.sort(value)

    def masked(self, adj: Adjacency, weight: Tensor | None = None) -> Tensor | None:
        r"""Returns edge weights times the edge mask of an explanation, in the order of ``adj``;
        the weights themselves if the layer is not being explained."""
        if self._explain is not True:
            return weight
        name = type(self).__name__
        mask = self._edge_mask
        if mask is None or "explain_message" in self.__dict__:  # as GraphMaskExplainer
            raise NotImplementedError(
                f"{name} computes no messages: use an explainer that sets an edge mask"
            )
        if self._apply_sigmoid:
            mask = mask.sigmoid()
        if mask.size(0) != adj.num_edges and self._loop_mask is not None:
            # As in PyG: the network has added self loops after the other edges; they stay.
            mask = torch.cat([mask[self._loop_mask], mask.new_ones(adj.num_targets)])
        if mask.size(0) != adj.num_edges:
            raise ValueError(
                f"{name}: the edge mask must have one entry for each of {adj.num_edges} edges, "
                f"got {self._edge_mask.size(0)}"
            )
        mask = adj.sort(mask)
        if weight is None:
            return mask
        mask = mask.to(weight.dtype)
        return weight * (mask if weight.dim() == 1 else mask.unsqueeze(1))

    def propagate(self, *args: Any, **kwargs: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no propagate")

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """PyG writes a file with code for ``propagate``; there is none."""

    def _no_hook(self, hook: Any) -> Any:
        name = type(self).__name__
        raise NotImplementedError(f"{name} computes no messages that a hook could read")

    # Layers that hold others show them.
    __repr__ = Module.__repr__


# Hooks on messages would never be called: to register one (as to_hetero_with_bases does) raises.
for _name in vars(MessagePassing):
    if _name.startswith("register_"):
        setattr(GraphLayer, _name, GraphLayer._no_hook)


def reciprocal_degree(adj: Adjacency, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Returns one over the sum of each node's weights, ``[num_targets, 1]``; 0 without any."""
    if weight is None:
        degree = adj.ptr.diff().to(dtype).unsqueeze(1)
    else:
        degree = segment_sum(adj.ptr, weight.to(dtype).unsqueeze(1))
    return degree.reciprocal().masked_fill(degree == 0, 0.0)
