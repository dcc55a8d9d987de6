from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import reset

from fognn.ops import Adjacency


class GraphLayer(MessagePassing):
    r"""The base of all layers on graphs.

    It is a :class:`torch_geometric.nn.MessagePassing`, because that is how
    :func:`torch_geometric.nn.to_hetero` and :class:`torch_geometric.explain.Explainer` find the
    layers of a network. The sums over edges are those of :mod:`fognn.ops`: there are no messages.
    """

    def __init__(self) -> None:
        super().__init__(aggr=None)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for module in self.children():
            reset(module)

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

    def refuse_mask(self) -> None:
        r"""Raises if the layer is being explained, for one whose sums have no weights."""
        if self._explain is True:
            name = type(self).__name__
            raise NotImplementedError(f"{name} has no edge weights that an explainer could mask")

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
