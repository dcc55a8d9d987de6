from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import BatchNorm
from torch_geometric.nn.resolver import activation_resolver
from torch_geometric.typing import PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.utils import checks


class Block(GraphLayer):
    r"""A layer followed by norm, activation, residual and dropout.

    .. math::
        \mathbf{x}_v' = \textrm{Dropout}(\mathbf{x}_v + \phi(\textrm{BN}(\mathbf{q}_v)))

    With :obj:`feed_forward`, that module is applied to :math:`\mathbf{x}_v'` at the end.

    If the layer also returns edge features, they are returned after dropout. A training batch of a
    single node has no variance; it is normalised by the running statistics, and does not change
    them.

    Args:
        conv (torch.nn.Module): The layer, with :obj:`channels` output channels.
        channels (int): Size of each output sample.
        act (str, optional): The activation :math:`\phi`, by a name that PyG's
            resolver accepts, or :obj:`None`. (default: :obj:`"relu"`)
        residual (bool, optional): If set to :obj:`False`, the input is not added.
            Otherwise it must have :obj:`channels` channels. (default: :obj:`True`)
        dropout (float, optional): The dropout probability in training.
            (default: :obj:`0.0`)
        feed_forward (torch.nn.Module, optional): A module on the node features, such as
            :class:`FeedForward`. (default: :obj:`None`)
    """

    def __init__(
        self,
        conv: Module,
        channels: int,
        act: str | None = "relu",
        residual: bool = True,
        dropout: float = 0.0,
        feed_forward: Module | None = None,
    ) -> None:
        super().__init__()
        if not (isinstance(dropout, int | float) and 0.0 <= dropout < 1.0):
            raise ValueError(f"Block: dropout must lie in [0, 1), got {dropout!r}")
        self.conv = conv
        self.channels = checks.positive_int("Block", "channels", channels)
        self.norm = BatchNorm(channels, allow_single_element=True)
        self.act = activation_resolver(act) if act is not None else None
        # BatchNorm's backward does not need its output.
        if self.act is not None and hasattr(self.act, "inplace"):
            self.act.inplace = True
        self.residual = residual
        self.dropout = dropout
        self.feed_forward = feed_forward

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.conv.reset_parameters()  # type: ignore[operator]
        self.norm.reset_parameters()
        if self.feed_forward is not None:
            self.feed_forward.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | PairTensor, edge_index: Any, *args: Any, **kwargs: Any) -> Any:
        out = self.conv(x, edge_index, *args, **kwargs)
        x = x if isinstance(x, Tensor) else x[1]  # on a bipartite graph, that of the targets
        q, rest = (out, ()) if isinstance(out, Tensor) else (out[0], tuple(out[1:]))
        if q.size(-1) != self.channels:
            raise ValueError(
                f"Block: channels must be what the layer gives, got {self.channels} for a layer "
                f"that gives {q.size(-1)}"
            )
        if self.residual and x.size(-1) != self.channels:
            raise ValueError(
                f"Block: x must have {self.channels} channels to be added to the output "
                f"(or residual=False), got {x.size(-1)}"
            )
        h = self.norm(q)
        if self.act is not None:
            h = self.act(h)
        h = self._drop(x + h if self.residual else h)
        if self.feed_forward is not None:
            h = self.feed_forward(h)
        return h if not rest else (h, *map(self._drop, rest))

    def _drop(self, value: Any) -> Any:
        if not isinstance(value, Tensor):  # attention weights come as a pair with their edges
            return value
        return F.dropout(value, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"residual={self.residual}, dropout={self.dropout}"
