import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GINConv, GINEConv

from fognn.nn.fog import FOG
from fognn.nn.graph_layer import GraphLayer
from fognn.utils import checks


class WithFOG(GraphLayer):
    r"""Applies :class:`FOG` beside any graph layer of PyG, and concatenates the two outputs.

    .. math::
        \mathbf{x}_v' = \mathbf{p}_v \, \Vert \, \mathbf{q}_v

    where :math:`\mathbf{p}_v` is FOG's output and :math:`\mathbf{q}_v` the layer's. It is called
    like the layer: all arguments are passed to the layer, and :obj:`x`, :obj:`edge_index` and
    :obj:`edge_weight` also to FOG, which sums in the direction of the layer's :obj:`flow`. If the
    layer returns a tuple (edge features, attention weights), the first entry is concatenated and
    the others are returned unchanged. A FOG with an :obj:`edge_dim` also gets :obj:`edge_attr`.
    Edge weights and features that the layer does not take are FOG's alone.

    Args:
        conv (torch.nn.Module): The layer. Its forward method must have arguments :obj:`x` and
            :obj:`edge_index`.
        out_channels (int or FOG): Size of FOG's part of the output, or a :class:`FOG`. FOG's
            input size is the layer's :obj:`in_channels`, or for GIN and GINE that of their
            :obj:`nn`; if the layer has none, FOG derives it from the first input.
        use_edge_weight (bool, optional): If set to :obj:`False`, FOG ignores :obj:`edge_weight`.
            (default: :obj:`True`)

    Example::

        conv = WithFOG(GATConv(64, 8, heads=4), 32)
        x = conv(x, edge_index)  # 64 channels: 32 of FOG, 32 of GAT
    """

    def __init__(self, conv: Module, out_channels: int | FOG, use_edge_weight: bool = True) -> None:
        super().__init__()
        if not isinstance(conv, Module):
            raise ValueError(
                f"WithFOG: conv must be a layer, such as GCNConv(64, 32), got {conv!r}"
            )
        names = list(inspect.signature(conv.forward).parameters)
        for name in ("x", "edge_index"):
            if name not in names:
                raise ValueError(
                    f"WithFOG: conv must take an argument {name!r}, but "
                    f"{type(conv).__name__}.forward has {', '.join(names) or 'none'}"
                )
        if not isinstance(out_channels, FOG):
            checks.positive_int("WithFOG", "out_channels", out_channels)
            out_channels = FOG(_in_channels(conv), out_channels)
        self.conv = conv
        self.fog = out_channels
        self.use_edge_weight = use_edge_weight
        self._names = names

    @property
    def add_self_loops(self) -> bool:
        r"""Whether the layer adds self loops, for which PyG's :func:`to_hetero` asks."""
        return bool(getattr(self.conv, "add_self_loops", False))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self._names, args, strict=False)) | kwargs
        for name in ("x", "edge_index"):
            if name not in given:
                raise ValueError(f"WithFOG: {name} must be given")
        x, edge_index = given["x"], given["edge_index"]
        if getattr(self.conv, "flow", None) == "target_to_source":
            x = x if isinstance(x, Tensor) else (x[1], x[0])
            if edge_index.layout == torch.strided:  # of a sparse one the layer raises
                edge_index = edge_index.flip(0)
        of_edges = {"edge_weight": given.get("edge_weight")} if self.use_edge_weight else {}
        if self.fog.edge_dim is not None:
            of_edges["edge_attr"] = given.get("edge_attr")
        p = self.fog(x, edge_index, **of_edges)
        for name in of_edges:
            if name not in self._names:  # FOG's alone
                kwargs.pop(name, None)
        q = self.conv(*args, **kwargs)
        if isinstance(q, Tensor):
            return torch.cat([p, q], dim=-1)
        return (torch.cat([p, q[0]], dim=-1), *q[1:])


def _in_channels(conv: Module) -> int:
    r"""Returns the input size of a layer; :obj:`-1` if it does not say it."""
    found: Any = getattr(conv, "in_channels", None)
    if found is None and isinstance(conv, GINConv | GINEConv):
        names = ("in_channels", "in_features", "num_features")
        sizes = (getattr(part, name, None) for part in conv.nn.modules() for name in names)
        found = next((size for size in sizes if size is not None), None)
    if isinstance(found, tuple) and len(set(found)) == 1:
        found = found[0]
    return found if isinstance(found, int) and found > 0 else -1
