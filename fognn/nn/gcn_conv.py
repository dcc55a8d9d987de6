import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import zeros
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.graph_layer import GraphLayer, reciprocal_degree
from fognn.ops import segment_sum, spmm
from fognn.utils import checks


class GCNConv(GraphLayer):
    r"""The graph convolution from the `"Semi-supervised Classification with Graph Convolutional
    Networks" <https://arxiv.org/abs/1609.02907>`_ paper, without self loops.

    .. math::
        \mathbf{q}_v = \mathbf{U} \sum_{u \in \mathcal{N}(v)} \frac{w_{vu}}{c_{vu}} \mathbf{x}_u
        + \mathbf{b}

    With :obj:`edge_dim`, the message of an edge is :math:`\mathbf{U} \mathbf{x}_u + \mathbf{W}_e
    \mathbf{e}_{vu}` in place of :math:`\mathbf{U} \mathbf{x}_u`. It is linear, so
    :math:`\mathbf{W}_e` is applied to the sum of the edge features of each node.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the
            first input to the forward method.
        out_channels (int): Size of each output sample.
        norm (str, optional): :obj:`"mean"`: :math:`c_{vu} = \sum_j w_{vj}`, the number of
            neighbours if there are no weights; :obj:`"sym"`: :math:`c_{vu} = \sqrt{d_u d_v}` with
            the weighted in-degrees :math:`d`; :obj:`"none"`: :math:`c_{vu} = 1`. The FOG paper
            states the symmetric one; the results of GCN that it quotes have the mean.
            (default: :obj:`"sym"`)
        edge_dim (int, optional): Size of each edge sample; :obj:`None` if edges have no features.
            (default: :obj:`None`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or a pair if bipartite (not with
          :obj:`"sym"`),
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*,
          edge features :math:`(|\mathcal{E}|, D)` *(with* :obj:`edge_dim` *)*
        - **outputs:** node features :math:`(|\mathcal{V}|, F_{out})`
    """

    def __init__(
        self, in_channels: int, out_channels: int, norm: str = "sym", edge_dim: int | None = None
    ) -> None:
        super().__init__()
        checks.one_of("GCNConv", "norm", norm, ("mean", "sym", "none"))
        self.out_channels = checks.positive_int("GCNConv", "out_channels", out_channels)
        self.norm = norm
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.lin_e = self.edge_linear(edge_dim, out_channels, bias=False)
        self.bias = Parameter(torch.empty(out_channels))
        self.reset_parameters()

    @property
    def in_channels(self) -> int:
        return self.lin.in_channels

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        super().reset_parameters()
        zeros(self.bias)

    def forward(
        self,
        x: Tensor | PairTensor,
        edge_index: Adj,
        edge_weight: OptTensor = None,
        edge_attr: OptTensor = None,
    ) -> Tensor:
        dtype = self.bias.dtype
        source, target, adj = self.inputs(x, edge_index, self.in_channels, dtype)
        if self.norm == "sym" and source is not target:
            raise ValueError("GCNConv: x must be one tensor with norm='sym', got a pair")
        edge_weight = self.edge_weights(adj, edge_weight)
        edges = self.edge_features(adj, edge_attr, dtype)

        # The sum over edges is taken at whichever width is smaller.
        narrow = self.out_channels <= source.size(1)
        h = self.lin(source) if narrow else source
        # 1 / d of the targets for the mean; 1 / sqrt(d) of both ends for the symmetric norm.
        scale = None if self.norm == "none" else reciprocal_degree(adj, edge_weight, h.dtype)
        of_source: OptTensor = None
        if scale is not None and self.norm == "sym":
            scale = of_source = scale.sqrt()
        # An explainer's mask scales messages, and not the degrees, as in PyG.
        weight = self.masked(adj, edge_weight)
        out = spmm(adj, h if of_source is None else h * of_source, weight)
        out = out if scale is None else out.mul_(scale)
        out = out if narrow else self.lin(out)
        if self.lin_e is not None and edges is not None:
            if of_source is not None:
                factor = of_source.squeeze(1).index_select(0, adj.source)
                weight = factor if weight is None else weight.to(dtype) * factor
            total = segment_sum(adj.ptr, edges, weight)
            out = out + self.lin_e(total if scale is None else total * scale)
        return out.add_(self.bias)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, norm={self.norm})"
