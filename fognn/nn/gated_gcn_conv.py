import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import BatchNorm, Linear
from torch_geometric.typing import Adj, PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.nn.norms import as_norm, can_fuse, update_running_statistics
from fognn.ops import Adjacency, gated_edges, gated_sum, kernels, stacked
from fognn.utils import checks


class GatedGCNConv(GraphLayer):
    r"""The gated graph convolution with edge features from the `"Residual Gated Graph ConvNets"
    <https://arxiv.org/abs/1711.07553>`_ paper, in the form of the public benchmark.

    .. math::
        \hat{\mathbf{e}}_{vu} &= \mathbf{A} \mathbf{x}_v + \mathbf{B} \mathbf{x}_u +
        \mathbf{C} \mathbf{e}_{vu}

        \mathbf{q}_v &= \mathbf{W} \left( \mathbf{U} \mathbf{x}_v +
        \frac{\sum_{u} \sigma(\hat{\mathbf{e}}_{vu}) \odot \mathbf{V} \mathbf{x}_u}
        {\sum_{u} \sigma(\hat{\mathbf{e}}_{vu}) + \varepsilon} \right)

        \mathbf{e}_{vu}' &= \mathbf{e}_{vu} +
        \textrm{ReLU}(\textrm{BN}(\hat{\mathbf{e}}_{vu}))

    Args:
        channels (int): Size :math:`C` of each node and edge sample, in and inside.
        out_channels (int, optional): Size of each output sample. If given, :math:`\mathbf{W}` maps
            to it, as it does beside FOG; if :obj:`None`, there is no :math:`\mathbf{W}` and the
            size is :obj:`channels`. (default: :obj:`None`)
        gate (str, optional): The input of :math:`\sigma`: :obj:`"before"` the norm,
            :math:`\hat{\mathbf{e}}_{vu}`, as in the public benchmark; or :obj:`"after"` it,
            :math:`\textrm{ReLU}(\textrm{BN}(\hat{\mathbf{e}}_{vu}))`, as the FOG paper writes.
            (default: :obj:`"before"`)
        edge_output (bool, optional): If set to :obj:`False`, the new edge features are neither
            computed nor returned, as in the last layer of a network, where they are not used.
            (default: :obj:`True`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, C)` or a pair if bipartite,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`, whose values are not used,
          edge features :math:`(|\mathcal{E}|, C)`, or :math:`(1, C)` if all edges have
          the same
        - **outputs:** node features :math:`(|\mathcal{V}|, F_{out})` and, with
          :obj:`edge_output`, edge features :math:`(|\mathcal{E}|, C)`
    """

    def __init__(
        self,
        channels: int,
        out_channels: int | None = None,
        gate: str = "before",
        edge_output: bool = True,
    ) -> None:
        super().__init__()
        checks.one_of("GatedGCNConv", "gate", gate, ("before", "after"))
        self.channels = checks.positive_int("GatedGCNConv", "channels", channels)
        self.gate = gate
        self.edge_output = edge_output
        self.lin_A = Linear(channels, channels)
        self.lin_B = Linear(channels, channels)
        self.lin_C = Linear(channels, channels)
        self.lin_U = Linear(channels, channels)
        self.lin_V = Linear(channels, channels)
        self.norm_e = BatchNorm(channels, allow_single_element=True)
        self.out_channels = channels if out_channels is None else out_channels
        checks.positive_int("GatedGCNConv", "out_channels", self.out_channels)
        self.lin_W = None if out_channels is None else Linear(channels, out_channels)
        self.reset_parameters()

    def forward(
        self, x: Tensor | PairTensor, edge_index: Adj, edge_attr: Tensor
    ) -> Tensor | tuple[Tensor, Tensor]:
        dtype = self.lin_A.weight.dtype
        source, target, adj = self.inputs(x, edge_index, self.channels, dtype)
        checks.features("GatedGCNConv", "edge_attr", edge_attr, self.channels, dtype)
        if edge_attr.size(0) != 1:
            checks.per_edge("GatedGCNConv", "edge_attr", edge_attr, adj.num_edges)
            edge_attr = adj.sort(edge_attr)

        fuse = self.gate == "before" and can_fuse(self.norm_e) and not self.explain
        tensors = (source, target, edge_attr, self.lin_C.weight)
        if fuse and adj.num_edges and kernels.has_loops(*tensors):
            out, e = self._fused(adj, source, target, edge_attr)
        else:
            out, e = self._composed(adj, source, target, edge_attr)
        if self.lin_W is not None:
            out = self.lin_W(out)
        return (out, adj.unsort(e)) if self.edge_output and e is not None else out

    def _fused(
        self, adj: Adjacency, source: Tensor, target: Tensor, e: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        # One product for the targets, and one for the sources.
        linears = [(lin.weight, lin.bias) for lin in (self.lin_A, self.lin_U)]
        of_target = F.linear(target, *stacked(*linears))
        linears = [(lin.weight, lin.bias) for lin in (self.lin_B, self.lin_V)]
        of_source = F.linear(source, *stacked(*linears))
        lin = self.lin_C
        norm = as_norm(self.norm_e, adj.num_edges) if self.edge_output else None
        out, new, mean, var = gated_edges(adj, of_target, of_source, e, lin.weight, lin.bias, norm)
        if self.edge_output:
            update_running_statistics(self.norm_e, mean, var, adj.num_edges)
        return out, new

    def _composed(
        self, adj: Adjacency, source: Tensor, target: Tensor, e: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """The equations in separate operations of torch, where :meth:`_fused` is not possible."""
        hat = self.lin_A(target).index_select(0, adj.target) + self.lin_C(e)
        hat = hat + self.lin_B(source).index_select(0, adj.source)
        of_source, of_target = self.lin_V(source), self.lin_U(target)
        mask = self.masked(adj)
        if self.gate == "before" and not self.edge_output:
            return of_target + gated_sum(adj, hat, of_source, mask), None
        normed = self.norm_e(hat).relu()
        gate = hat if self.gate == "before" else normed
        return of_target + gated_sum(adj, gate, of_source, mask), e + normed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, {self.out_channels}, gate={self.gate})"
