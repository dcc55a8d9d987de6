from typing import Any

from torch import Tensor
from torch.nn import Dropout, Module
from torch_geometric.nn import BatchNorm, Linear
from torch_geometric.nn.resolver import activation_resolver
from torch_geometric.typing import PairTensor

from fognn.nn.graph_layer import GraphLayer, Resettable
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
        self.conv = conv
        self.channels = checks.positive_int("Block", "channels", channels)
        self.norm = BatchNorm(channels, allow_single_element=True)
        self.act = activation_resolver(act) if act is not None else None
        # BatchNorm's backward does not need its output.
        if self.act is not None and hasattr(self.act, "inplace"):
            self.act.inplace = True
        self.residual = residual
        self.dropout = Dropout(dropout)
        self.feed_forward = feed_forward

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
        # Attention weights come as a pair with their edges.
        return self.dropout(value) if isinstance(value, Tensor) else value

    def extra_repr(self) -> str:
        return f"residual={self.residual}"


class FeedForward(Resettable):
    r"""A feed-forward block on each node, as after the attention of a Transformer.

    .. math::
        \mathbf{x}_v' = \textrm{BN}(\mathbf{x}_v + \mathbf{W}_2 \, \textrm{Dropout}(
        \phi(\mathbf{W}_1 \mathbf{x}_v)))

    Both Linears have a bias. A training batch of a single node is normalised as in :class:`Block`.

    Args:
        channels (int): Size :math:`C` of each input and output sample.
        factor (float, optional): The size of the hidden layer is :math:`C` times this, rounded.
            (default: :obj:`2`)
        act (str, optional): The activation :math:`\phi`, by a name that PyG's resolver accepts.
            (default: :obj:`"relu"`)
        dropout (float, optional): The dropout probability in training. (default: :obj:`0.0`)

    Shapes:
        - **inputs:** node features :math:`(|\mathcal{V}|, C)`
        - **outputs:** node features :math:`(|\mathcal{V}|, C)`
    """

    def __init__(
        self, channels: int, factor: float = 2, act: str = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.in_channels = checks.positive_int("FeedForward", "channels", channels)
        self.out_channels = channels
        number = isinstance(factor, int | float) and not isinstance(factor, bool)
        if not (number and 0 < factor < float("inf")):
            raise ValueError(f"FeedForward: factor must be a positive number, got {factor!r}")
        self.hidden = max(1, round(factor * channels))
        self.dropout = Dropout(dropout)
        self.lin_1 = Linear(channels, self.hidden)
        self.act = activation_resolver(act)
        if hasattr(self.act, "inplace"):  # the backward of a Linear does not need its output
            self.act.inplace = True
        self.lin_2 = Linear(self.hidden, channels)
        self.norm = BatchNorm(channels, allow_single_element=True)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.lin_2(self.dropout(self.act(self.lin_1(x)))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, hidden={self.hidden})"
