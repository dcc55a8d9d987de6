import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import glorot, reset
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.ops import edge_softmax, spmm
from fognn.utils import checks


class GATConv(GraphLayer):
    r"""The graph attention layer from the `"Graph Attention Networks"
    <https://arxiv.org/abs/1710.10903>`_ paper, without self loops and without a bias.

    .. math::
        \mathbf{q}_v = \big\Vert_{k=1}^{K} \sum_{u \in \mathcal{N}(v)} \alpha_{vu}^k
        \mathbf{U}^k \mathbf{x}_u, \qquad
        \alpha_{vu}^k = \textrm{softmax}_u \, \textrm{LeakyReLU} \left( \mathbf{a}_k^{\top}
        \mathbf{U}^k \mathbf{x}_v + \mathbf{b}_k^{\top} \mathbf{U}^k \mathbf{x}_u \right)

    With :obj:`edge_dim`, the term :math:`\mathbf{c}_k^{\top} \mathbf{W}_e^k \mathbf{e}_{vu}` is
    added inside LeakyReLU, as in PyG.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the
            first input to the forward method.
        out_channels (int): Size of the output of each head, as in PyG.
        heads (int, optional): Number :math:`K` of heads, which are concatenated.
            (default: :obj:`1`)
        negative_slope (float, optional): Slope of LeakyReLU below zero. (default: :obj:`0.2`)
        edge_dim (int, optional): Size of each edge sample; :obj:`None` if edges have no features.
            (default: :obj:`None`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or a pair if bipartite,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`, whose values are not used,
          edge features :math:`(|\mathcal{E}|, D)` *(with* :obj:`edge_dim` *)*
        - **outputs:** node features :math:`(|\mathcal{V}|, K \cdot F_{out})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        negative_slope: float = 0.2,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.out_channels = checks.positive_int("GATConv", "out_channels", out_channels)
        self.heads = checks.positive_int("GATConv", "heads", heads)
        self.negative_slope = negative_slope
        width = heads * out_channels
        self.lin = Linear(in_channels, width, bias=False, weight_initializer="glorot")
        self.att_src = Parameter(torch.empty(heads, out_channels))
        self.att_dst = Parameter(torch.empty(heads, out_channels))
        self.lin_e = self.edge_linear(edge_dim, width, bias=False, weight_initializer="glorot")
        empty = torch.empty(heads, out_channels)
        self.att_edge = None if self.lin_e is None else Parameter(empty)
        self.reset_parameters()

    @property
    def in_channels(self) -> int:
        return self.lin.in_channels

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        reset(self.lin)
        glorot(self.att_src)
        glorot(self.att_dst)
        reset(self.lin_e)
        glorot(self.att_edge)

    def forward(
        self, x: Tensor | PairTensor, edge_index: Adj, edge_attr: OptTensor = None
    ) -> Tensor:
        dtype = self.att_src.dtype
        source, target, adj = self.inputs(x, edge_index, self.in_channels, dtype)
        h = self.lin(source)
        h_target = h if source is target else self.lin(target)
        score = self._score(h, self.att_src).index_select(0, adj.source)
        score = score + self._score(h_target, self.att_dst).index_select(0, adj.target)
        edges = self.edge_features(adj, edge_attr, dtype)
        if edges is not None and self.lin_e is not None and self.att_edge is not None:
            score = score + self._score(self.lin_e(edges), self.att_edge)
        score = torch.nn.functional.leaky_relu(score, self.negative_slope)
        return spmm(adj, h, self.masked(adj, edge_softmax(adj, score)))

    def _score(self, h: Tensor, att: Tensor) -> Tensor:
        return (h.view(-1, *att.shape) * att).sum(dim=-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads})"
