import inspect
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from fognn.nn.fog import FOG
from fognn.nn.graph_layer import GraphLayer
from fognn.utils import checks


class WithFOG(GraphLayer):
    r"""Applies :class:`FOG` beside any graph layer of PyG, and concatenates the two outputs.

    .. math::
        \mathbf{x}_v' = \mathbf{p}_v \, \Vert \, \mathbf{q}_v

    where :math:`\mathbf{p}_v` is FOG's output and :math:`\mathbf{q}_v` the layer's. It is called
    like the layer: all arguments are passed to the layer, and :obj:`x` and :obj:`edge_index` also
    to FOG. If the layer returns a tuple (edge features, attention weights), the first entry is
    concatenated and the others are returned unchanged. FOG uses the weights of a sparse
    :obj:`edge_index`, but not an :obj:`edge_weight`. A FOG with an :obj:`edge_dim` also gets
    :obj:`edge_attr`, which the layer gets only if it takes it.

    Args:
        conv (torch.nn.Module): The layer. Its forward method must have arguments :obj:`x` and
            :obj:`edge_index`.
        out_channels (int or FOG): Size of FOG's part of the output, or a :class:`FOG`. FOG's
            input size is the layer's :obj:`in_channels`; if the layer has none, FOG derives it from
            the first input to the forward method.

    Example::

        conv = WithFOG(GATConv(64, 8, heads=4), 32)
        x = conv(x, edge_index)  # 64 channels: 32 of FOG, 32 of GAT
    """

    def __init__(self, conv: Module, out_channels: int | FOG) -> None:
        super().__init__()
        if isinstance(out_channels, FOG):
            fog = out_channels
        else:
            checks.positive_int("WithFOG", "out_channels", out_channels)
            in_channels = getattr(conv, "in_channels", -1)
            fog = FOG(in_channels if isinstance(in_channels, int) else -1, out_channels)
        names = list(inspect.signature(conv.forward).parameters)
        for name in ("x", "edge_index"):
            if name not in names:
                raise ValueError(
                    f"WithFOG: conv must take an argument {name!r}, but "
                    f"{type(conv).__name__}.forward has {', '.join(names) or 'none'}"
                )
        self.conv = conv
        self.fog = fog
        self._x = names.index("x")
        self._edge_index = names.index("edge_index")
        self._edge_attr = names.index("edge_attr") if "edge_attr" in names else None

    @property
    def add_self_loops(self) -> bool:
        r"""Whether the layer adds self loops. PyG's :func:`to_hetero` asks for it, because they
        are wrong on a bipartite graph."""
        return bool(getattr(self.conv, "add_self_loops", False))

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.conv.reset_parameters()  # type: ignore[operator]
        self.fog.reset_parameters()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        x = self._argument("x", self._x, args, kwargs)
        edge_index = self._argument("edge_index", self._edge_index, args, kwargs)
        if self.fog.edge_dim is None:
            p = self.fog(x, edge_index)
        elif self._edge_attr is None:  # FOG's alone
            p = self.fog(x, edge_index, edge_attr=kwargs.pop("edge_attr", None))
        else:
            edge_attr = self._argument("edge_attr", self._edge_attr, args, kwargs)
            p = self.fog(x, edge_index, edge_attr=edge_attr)
        q = self.conv(*args, **kwargs)
        if isinstance(q, Tensor):
            return torch.cat([p, q], dim=-1)
        return (torch.cat([p, q[0]], dim=-1), *q[1:])

    def _argument(self, name: str, place: int, args: tuple, kwargs: dict) -> Any:
        if name in kwargs:
            return kwargs[name]
        if place < len(args):
            return args[place]
        raise ValueError(f"WithFOG: {name} must be given")
