import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch_geometric.nn import Linear
from torch_geometric.typing import Adj, PairTensor
from torch_geometric.utils import scatter

from fognn.nn.graph_layer import GraphLayer
from fognn.nn.inputs import node_pair
from fognn.ops import Adjacency, adjacency, spmm
from fognn.utils import checks


class SAGEConv(GraphLayer):
    r"""The GraphSAGE layer from the `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ paper.

    .. math::
        \mathbf{q}_v = \mathbf{U} \left( \mathbf{x}_v \, \Vert \, \max_{u \in \mathcal{N}(v)}
        \textrm{ReLU}(\mathbf{P} \mathbf{x}_u) \right) + \mathbf{b}

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

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or a pair if bipartite,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`, whose values are not used
        - **outputs:** node features :math:`(|\mathcal{V}|, F_{out})`
    """

    def __init__(
        self, in_channels: int, out_channels: int, aggr: str = "max", benchmark: bool = False
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
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for module in self.children():
            module.reset_parameters()

    def forward(self, x: Tensor | PairTensor, edge_index: Adj) -> Tensor:
        dtype = self.lin_U.weight.dtype
        source, target = node_pair("SAGEConv", x, self.in_channels, dtype)
        adj = adjacency(edge_index, source.size(0), target.size(0))
        if self.lin_P is None:
            return self.lin_U(torch.cat([target, self._reduce(adj, source)], dim=1))
        pooled = self.lin_P(source).relu_()
        neighbours = self._reduce(adj, pooled)
        if not self.benchmark:
            return self.lin_U(torch.cat([target, neighbours], dim=1))
        centre = pooled if source is target else self.lin_P(target).relu()
        return normalize(self.lin_U(torch.cat([centre, neighbours], dim=1))).relu()

    def _reduce(self, adj: Adjacency, x: Tensor) -> Tensor:
        mask = self.edge_mask(adj)
        if mask is None:
            return spmm(adj, x, reduce=self.aggr)
        messages = x.index_select(0, adj.source) * mask.to(x.dtype).unsqueeze(1)
        return scatter(messages, adj.target, 0, adj.num_targets, reduce=self.aggr)

    def __repr__(self) -> str:
        widths = f"{self.in_channels}, {self.out_channels}"
        return f"{self.__class__.__name__}({widths}, aggr={self.aggr})"
