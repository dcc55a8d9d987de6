import torch
from torch import Tensor
from torch.nn.functional import linear, normalize
from torch_geometric.nn import Linear
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.ops import Adjacency, spmm
from fognn.utils import checks


class SAGEConv(GraphLayer):
    r"""The GraphSAGE layer from the `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ paper.

    .. math::
        \mathbf{q}_v = \mathbf{U} \left( \mathbf{x}_v \, \Vert \, \max_{u \in \mathcal{N}(v)}
        \textrm{ReLU}(\mathbf{P} \mathbf{x}_u) \right) + \mathbf{b}

    With :obj:`edge_dim`, :math:`\mathbf{x}_u + \mathbf{e}_{vu}` takes the place of the neighbour's
    :math:`\mathbf{x}_u`; edge features of another size than the nodes' pass through a Linear
    first.

    Args:
        in_channels (int): Size of each input sample.
        out_channels (int): Size of each output sample.
        aggr (str, optional): :obj:`"max"`: as above, which the FOG paper's parameter counts
            imply; or :obj:`"mean"`: the mean of :math:`\mathbf{x}_u` without
            :math:`\mathbf{P}`, as in its equation. (default: :obj:`"max"`)
        benchmark (bool, optional): If set to :obj:`True`, the layer is the one of the public
            benchmark whose figures the paper quotes: :math:`\textrm{ReLU}(\mathbf{P}
            \mathbf{x}_v)` replaces :math:`\mathbf{x}_v`, and the output is divided by
            its Euclidean norm and passed through ReLU. Only with :obj:`aggr="max"`.
            (default: :obj:`False`)
        edge_dim (int, optional): Size of each edge sample; :obj:`None` if edges have no features.
            (default: :obj:`None`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or a pair if bipartite,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`, whose values are not used,
          edge features :math:`(|\mathcal{E}|, D)` *(with* :obj:`edge_dim` *)*
        - **outputs:** node features :math:`(|\mathcal{V}|, F_{out})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        aggr: str = "max",
        benchmark: bool = False,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        checks.one_of("SAGEConv", "aggr", aggr, ("max", "mean"))
        if benchmark and aggr != "max":
            raise ValueError(f"SAGEConv: aggr must be 'max' with benchmark=True, got {aggr!r}")
        self.in_channels = checks.positive_int("SAGEConv", "in_channels", in_channels)
        self.out_channels = checks.positive_int("SAGEConv", "out_channels", out_channels)
        self.aggr = aggr
        self.benchmark = benchmark
        self.lin_P = Linear(in_channels, in_channels) if aggr == "max" else None
        self.lin_U = Linear(2 * in_channels, out_channels)
        self.lin_e = self.edge_linear(edge_dim, in_channels, always=False)
        self.reset_parameters()

    def forward(
        self, x: Tensor | PairTensor, edge_index: Adj, edge_attr: OptTensor = None
    ) -> Tensor:
        dtype = self.lin_U.weight.dtype
        source, target, adj = self.inputs(x, edge_index, self.in_channels, dtype)
        edges = self.edge_features(adj, edge_attr, dtype)
        if edges is not None and self.lin_e is not None:
            edges = self.lin_e(edges)
        if self.lin_P is None:
            return self.lin_U(torch.cat([target, self._aggregate(adj, source, edges)], dim=1))
        h = self.lin_P(source)
        if edges is None:
            neighbours = self._aggregate(adj, h.relu_())
        else:  # ReLU(P (x_u + e)) from P x_u and P e
            neighbours = self._aggregate(adj, h, linear(edges, self.lin_P.weight))
        if not self.benchmark:
            return self.lin_U(torch.cat([target, neighbours], dim=1))
        centre = h.relu() if source is target else self.lin_P(target).relu()
        return normalize(self.lin_U(torch.cat([centre, neighbours], dim=1))).relu()

    def _aggregate(self, adj: Adjacency, x: Tensor, edges: OptTensor = None) -> Tensor:
        mask = self.masked(adj)
        if edges is None and mask is None:
            return spmm(adj, x, reduce=self.aggr)
        message = x.index_select(0, adj.source)
        if edges is not None:
            message = message + edges
            message = message.relu_() if self.aggr == "max" else message
        if mask is not None:
            message = message * mask.to(message.dtype).unsqueeze(1)
        every = torch.arange(adj.num_edges, dtype=adj.ptr.dtype, device=adj.ptr.device)
        return spmm(Adjacency(adj.ptr, every), message, reduce=self.aggr)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, aggr={self.aggr})"
