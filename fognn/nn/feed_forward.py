import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import BatchNorm, Linear
from torch_geometric.nn.resolver import activation_resolver

from fognn.utils import checks


class FeedForward(Module):
    r"""A feed-forward block on each node, as after the attention of a Transformer.

    .. math::
        \mathbf{x}_v' = \textrm{BN}(\mathbf{x}_v + \mathbf{W}_2 \, \textrm{Dropout}(
        \phi(\mathbf{W}_1 \mathbf{x}_v)))

    Both Linears have a bias. A training batch of a single node is normalised by the running
    statistics, because one node has no variance.

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
        if not (isinstance(dropout, int | float) and 0.0 <= dropout < 1.0):
            raise ValueError(f"FeedForward: dropout must lie in [0, 1), got {dropout!r}")
        self.hidden = max(1, round(factor * channels))
        self.dropout = dropout
        self.lin_1 = Linear(channels, self.hidden)
        self.act = activation_resolver(act)
        if hasattr(self.act, "inplace"):  # the backward of a Linear does not need its output
            self.act.inplace = True
        self.lin_2 = Linear(self.hidden, channels)
        self.norm = BatchNorm(channels, allow_single_element=True)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for module in (self.lin_1, self.lin_2, self.norm):
            module.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(self.act(self.lin_1(x)), self.dropout, self.training)
        return self.norm(x + self.lin_2(h))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, hidden={self.hidden})"
