r"""The hosts, layers that FOG can be beside, by name; :func:`register_host` adds one."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import FiLMConv, GATv2Conv, PNAConv

from fognn.nn import GATConv, GatedGCNConv, GCNConv, GINConv, SAGEConv
from fognn.nn.graph_layer import Resettable
from fognn.ops import Adjacency
from fognn.utils import checks

Layer = TypeVar("Layer", bound=Callable[..., Module])
# Settings of all networks on graphs, and of those with FOG.
NET_SETTINGS = ("channels", "layers", "dropout", "ffn", "edge_features", "readout", "head")
FOG_SETTINGS: tuple[str, ...] = ("fog_channels", "h1", "h2")
FOG_SETTINGS += ("fog_kind", "fog_norm", "fog_act", "fog_eps", "fog_act_first")
# Settings of create_model that a user's layer cannot have for itself.
_RESERVED = (*NET_SETTINGS, "head_channels", "pretrained", *FOG_SETTINGS)


@dataclass(frozen=True)
class Host:
    """A host: its layer is ``conv(in_channels, out_channels, **options)``."""

    conv: Callable[..., Module]
    options: tuple[str, ...]
    """The names of its settings."""
    given: tuple[str, ...] = ()
    """Arguments that the network gives: ``edge_dim``, and whether the layer is the ``last``."""
    act: str = "relu"
    edges: str = "none"
    """The edge features that its layers map to new ones: ``none``, ``constant`` or ``features``."""
    jumping: bool = False

    @property
    def takes_edge_features(self) -> bool:
        """Whether its layers read the edge features of a task."""
        return "edge_dim" in self.given or self.edges == "features"


HOSTS: dict[str, Host] = {}


def _host(name: str, **fields: Any) -> Callable[[Layer], Layer]:
    def register(layer: Layer) -> Layer:
        names = _options(layer)
        given = tuple(name for name in names if name in ("edge_dim", "last"))
        options = tuple(name for name in names if name not in given)
        HOSTS[name] = Host(layer, options, given, **fields)
        return layer

    return register


def _options(layer: Callable[..., Module]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(layer).parameters.values() if p.kind in kinds][2:]


_host("gcn")(GCNConv)


@_host("gat", act="elu")
def _gat(
    channels: int, q: int, heads: int = 8, last: bool = False, edge_dim: int | None = None
) -> Module:
    heads = 1 if last else heads
    return GATConv(channels, _of_each_head("gat", q, heads), heads, edge_dim=edge_dim)


@_host("gatedgcn", edges="constant")
@_host("gatedgcn-e", edges="features")
def _gated_gcn(channels: int, q: int, gate: str = "before", last: bool = False) -> Module:
    # Heads do not read edge features, so the last layer has none.
    return GatedGCNConv(channels, q if q < channels else None, gate, edge_output=not last)


_host("gin", jumping=True)(GINConv)
_host("graphsage")(SAGEConv)


def _of_each_head(host: str, channels: int, heads: int) -> int:
    checks.positive_int(host, "heads", heads)
    if channels % heads:
        raise ValueError(f"{host}: heads must divide its {channels} channels, got {heads}")
    return channels // heads


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
    if name in HOSTS or name.startswith("fewshot-"):
        raise ValueError(f"register_host: name must be a new one, got {name!r}")

    def register(layer: Layer) -> Layer:
        def conv(channels: int, q: int, **options: Any) -> Module:
            return _OnEdgeIndex(name, layer(channels, q, **options), edges)

        options = tuple(option for option in _options(layer) if option not in _RESERVED)
        HOSTS[name] = Host(conv, options, act=act, edges="features" if edges else "none")
        return layer

    return register


class _OnEdgeIndex(Resettable):
    """Calls a user's layer with a tensor of edges, in place of an :class:`Adjacency`."""

    def __init__(self, name: str, conv: Module, edges: bool) -> None:
        super().__init__()
        if getattr(conv, "flow", "source_to_target") != "source_to_target":
            raise ValueError(
                f"register_host: flow of the layer of {name!r} must be 'source_to_target', as that "
                f"of FOG, got {conv.flow!r}"
            )
        self.conv = conv
        self.edges = edges

    def forward(self, x: Tensor, edge_index: Adjacency, edge_attr: Tensor | None = None) -> Any:
        adj = edge_index
        edges = torch.stack([adj.unsort(adj.source), adj.unsort(adj.target)])
        features = {"edge_attr": edge_attr} if self.edges else {}
        return self.conv(x=x, edge_index=edges, **features)


@register_host("film")
def _film(in_channels: int, out_channels: int) -> Module:
    return FiLMConv(in_channels, out_channels)


@register_host("gatv2", act="elu")
def _gatv2(in_channels: int, out_channels: int, heads: int = 8) -> Module:
    width = _of_each_head("gatv2", out_channels, heads)
    return GATv2Conv(in_channels, width, heads, add_self_loops=False)  # as all hosts


@register_host("pna")
def _pna(in_channels: int, out_channels: int, degrees: Sequence[int] = (0, 1)) -> Module:
    # With the aggregators and scalers of its paper. The mean of the logarithms of the degrees is
    # the unit of the logarithm of a degree.
    if not any(degrees[1:]):
        raise ValueError(
            "pna: degrees must be the number of nodes with 0, 1, 2, ... in-edges, and have a node "
            f"with an in-edge, got {degrees!r}"
        )
    scalers = ["identity", "amplification", "attenuation"]
    # Its values are read, also where modules are built without values.
    histogram = torch.tensor(degrees, device="cpu")
    return PNAConv(in_channels, out_channels, ["mean", "min", "max", "std"], scalers, deg=histogram)


# Without those of a user's register_host.
BUILT_IN = tuple(HOSTS)
