import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import Module

from fognn.models.registry import FEW_SHOT, FOG_SETTINGS, HOSTS, NET_SETTINGS, Host
from fognn.ops import Adjacency

Layer = TypeVar("Layer", bound=Callable[..., Module])
# Settings of create_model that a layer cannot have for itself.
RESERVED = (*NET_SETTINGS, "head_channels", "pretrained", *FOG_SETTINGS)


def register_host(name: str, edges: bool = False, act: str = "relu") -> Callable[[Layer], Layer]:
    r"""Adds a layer to :func:`create_model`, as ``name`` and, with FOG beside it, as ``name+fog``.

    It decorates a class or function ``layer(in_channels, out_channels, **settings)`` that returns
    a module with arguments :obj:`x` and :obj:`edge_index`, such as a layer of PyG. Its further
    arguments are settings of :func:`create_model` (all but :obj:`dropout`, which is the
    network's). The layer gets a ``[2, num_edges]`` tensor of edges; the values of a sparse
    adjacency are not used. A program that loads a network by such a name must register it first.

    Args:
        name (str): The name: lower-case letters, digits, ``-`` and ``_``.
        edges (bool, optional): If set to :obj:`True`, the layer also has an argument
            :obj:`edge_attr`, the encoded edge features with as many channels as the nodes; it may
            return new ones beside the node features. The task must have edge features.
            (default: :obj:`False`)
        act (str, optional): The activation after the layer, by a name that PyG's resolver
            accepts. (default: :obj:`"relu"`)

    Example::

        @register_host("tag")
        def tag(in_channels, out_channels, K=3):
            return torch_geometric.nn.TAGConv(in_channels, out_channels, K=K)

        net = create_model("tag+fog", task, channels=64, K=2)
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_-]*(?<!fog)", name):
        raise ValueError(
            "register_host: name must be lower-case letters, digits, '-' and '_', and not end in "
            f"'fog', got {name!r}"
        )
    if name in HOSTS or name in FEW_SHOT:
        raise ValueError(f"register_host: name must be a new one, got {name!r}")

    def register(layer: Layer) -> Layer:
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names = [p.name for p in inspect.signature(layer).parameters.values() if p.kind in kinds]

        def conv(channels: int, q: int, *_: Any, **options: Any) -> Module:
            return _OnEdgeIndex(name, layer(channels, q, **options), edges)

        options = tuple(option for option in names[2:] if option not in RESERVED)
        HOSTS[name] = Host(conv, act, options, "features" if edges else "none")
        return layer

    return register


class _OnEdgeIndex(Module):
    """Calls a user's layer with a tensor of edges, in place of an :class:`Adjacency`."""

    def __init__(self, name: str, conv: Module, edges: bool) -> None:
        super().__init__()
        parameters = inspect.signature(conv.forward).parameters
        for argument in ("x", "edge_index", "edge_attr")[: 3 if edges else 2]:
            if argument not in parameters:
                raise ValueError(
                    f"register_host: the layer of {name!r} must take an argument {argument!r}, but "
                    f"{type(conv).__name__}.forward has {', '.join(parameters) or 'none'}"
                )
        self.conv = conv
        self.edges = edges

    def reset_parameters(self) -> None:
        self.conv.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Adjacency, edge_attr: Tensor | None = None) -> Any:
        adj = edge_index
        edges = torch.stack([adj.unsort(adj.source), adj.unsort(adj.target)])
        if self.edges:
            return self.conv(x=x, edge_index=edges, edge_attr=edge_attr)
        return self.conv(x=x, edge_index=edges)
