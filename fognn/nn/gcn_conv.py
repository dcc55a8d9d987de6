import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import zeros
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.nn.inputs import edge_weights, node_pair
from fognn.ops import Adjacency, adjacency, segment_sum, spmm
from fognn.utils import checks


class GCNConv(GraphLayer):
    r"""The graph convolution from the `"Semi-supervised Classification with Graph Convolutional
    Networks" <https://arxiv.org/abs/1609.02907>`_ paper, without self loops.

    .. math::
        \mathbf{q}_v = \mathbf{U} \sum_{u \in \mathcal{N}(v)} \frac{w_{vu}}{c_{vu}} \mathbf{x}_u
        + \mathbf{b}

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the
            first input to the forward method.
        out_channels (int): Size of each output sample.
        norm (str, optional): :obj:`"mean"`: :math:`c_{vu} = \sum_j w_{vj}`, the number of
            neighbours if there are no weights; :obj:`"sym"`: :math:`c_{vu} = \sqrt{d_u d_v}` with
            the weighted in-degrees :math:`d`; :obj:`"none"`: :math:`c_{vu} = 1`. The FOG paper
            states the symmetric one; the results of GCN that it quotes have the mean.
            (default: :obj:`"sym"`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or a pair if bipartite (not with
          :obj:`"sym"`),
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **outputs:** node features :math:`(|\mathcal{V}|, F_{out})`
    """

    def __init__(self, in_channels: int, out_channels: int, norm: str = "sym") -> None:
        super().__init__()
        checks.one_of("GCNConv", "norm", norm, ("mean", "sym", "none"))
        self.out_channels = checks.positive_int("GCNConv", "out_channels", out_channels)
        self.norm = norm
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    @property
    def in_channels(self) -> int:
        return self.lin.in_channels

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()
        zeros(self.bias)

    def forward(
        self, x: Tensor | PairTensor, edge_index: Adj, edge_weight: OptTensor = None
    ) -> Tensor:
        source, target = node_pair("GCNConv", x, self.in_channels, self.bias.dtype)
        if self.norm == "sym" and source is not target:
            raise ValueError("GCNConv: x must be one tensor with norm='sym', got a pair")
        adj = adjacency(edge_index, source.size(0), target.size(0))
        edge_weight = edge_weights("GCNConv", adj, edge_weight)

        # The sum over edges is taken at whichever width is smaller.
        if self.out_channels <= source.size(1):
            return self._aggregate(adj, self.lin(source), edge_weight).add_(self.bias)
        return self.lin(self._aggregate(adj, source, edge_weight)).add_(self.bias)

    def _aggregate(self, adj: Adjacency, x: Tensor, weight: OptTensor) -> Tensor:
        if self.norm == "none":
            return spmm(adj, x, self.masked(adj, weight))
        if weight is None:
            degree = adj.ptr.diff().to(x.dtype).unsqueeze(1)
        else:
            degree = segment_sum(adj.ptr, weight.to(x.dtype).unsqueeze(1))
        # An explainer's mask scales messages, and not the degrees, as in PyG.
        weight = self.masked(adj, weight)
        # A node without neighbours keeps a zero, as it does in PyG.
        if self.norm == "mean":
            return spmm(adj, x, weight).mul_(_reciprocal(degree))
        scale = _reciprocal(degree).sqrt()
        return spmm(adj, x * scale, weight).mul_(scale)

    def __repr__(self) -> str:
        widths = f"{self.in_channels}, {self.out_channels}"
        return f"{self.__class__.__name__}({widths}, norm={self.norm})"


def _reciprocal(degree: Tensor) -> Tensor:
    return degree.reciprocal().masked_fill(degree == 0, 0.0)
