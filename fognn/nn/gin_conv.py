from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.nn import Parameter
from torch_geometric.nn import BatchNorm, Linear
from torch_geometric.nn.inits import zeros
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.ops import segment_sum, spmm
from fognn.utils import checks


class GINConv(GraphLayer):
    r"""The graph isomorphism layer from the `"How Powerful are Graph Neural Networks?"
    <https://arxiv.org/abs/1810.00826>`_ paper, with a learnt :math:`\epsilon`.

    .. math::
        \mathbf{q}_v = \mathbf{U} \, \textrm{ReLU} \left( \textrm{BN} \left( \mathbf{V} \left(
        (1 + \epsilon) \mathbf{x}_v + \sum_{u \in \mathcal{N}(v)} \mathbf{x}_u \right) \right)
        \right)

    With :obj:`edge_dim`, the sum is that of GINE (`"Strategies for Pre-training Graph Neural
    Networks" <https://arxiv.org/abs/1905.12265>`_), :math:`\sum_u \textrm{ReLU}(\mathbf{x}_u +
    \mathbf{e}_{vu})`; edge features of another size than the nodes' pass through a Linear first.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the
            first input to the forward method.
        out_channels (int): Size of each output sample.
        hidden (int, optional): Size of the hidden layer. (default: :obj:`out_channels`)
        edge_dim (int, optional): Size of each edge sample; :obj:`None` if edges have no features.
            (default: :obj:`None`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or a pair if bipartite,
          edge indices :math:`(2, |\mathcal{E}|)` or sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*,
          edge features :math:`(|\mathcal{E}|, D)` *(with* :obj:`edge_dim` *)*
        - **outputs:** node features :math:`(|\mathcal{V}|, F_{out})`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden: int | None = None,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.out_channels = checks.positive_int("GINConv", "out_channels", out_channels)
        hidden = out_channels if hidden is None else hidden
        self.hidden = checks.positive_int("GINConv", "hidden", hidden)
        if edge_dim is not None:
            checks.positive_int("GINConv", "in_channels", in_channels)  # not lazy
        self.lin_e = self.edge_linear(edge_dim, in_channels, always=False)
        self.eps = Parameter(torch.empty(1))
        self.lin_V = Linear(in_channels, hidden)
        self.norm = BatchNorm(hidden, allow_single_element=True)
        self.lin_U = Linear(hidden, out_channels)
        self.reset_parameters()

    @property
    def in_channels(self) -> int:
        return self.lin_V.in_channels

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        super().reset_parameters()
        zeros(self.eps)

    def forward(
        self,
        x: Tensor | PairTensor,
        edge_index: Adj,
        edge_weight: OptTensor = None,
        edge_attr: OptTensor = None,
    ) -> Tensor:
        source, target, adj = self.inputs(x, edge_index, self.in_channels, self.eps.dtype)
        weight = self.masked(adj, self.edge_weights(adj, edge_weight))
        if self.in_channels == -1:
            self.lin_V.initialize_parameters(self.lin_V, (source,))
        edges = self.edge_features(adj, edge_attr, self.eps.dtype)
        if edges is not None:
            edges = edges if self.lin_e is None else self.lin_e(edges)
            message = (source.index_select(0, adj.source) + edges).relu_()
            total = segment_sum(adj.ptr, message, weight)
            h = self.lin_V(_Combine.apply(total, target, self.eps))
        elif self.hidden < source.size(1):  # the sum over edges is taken at the smaller width
            source_V = F.linear(source, self.lin_V.weight)
            target_V = source_V if source is target else F.linear(target, self.lin_V.weight)
            h = _Combine.apply(spmm(adj, source_V, weight), target_V, self.eps)
            h = h.add_(self.lin_V.bias)
        else:
            h = self.lin_V(_Combine.apply(spmm(adj, source, weight), target, self.eps))
        return self.lin_U(self.norm(h).relu_())

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.in_channels}, {self.out_channels})"


class _Combine(Function):
    """``neighbours + (1 + eps) * centre``. The gradient of ``eps`` is a dot product, where autograd
    would write a matrix and then sum it."""

    @staticmethod
    def forward(ctx: Any, neighbours: Tensor, centre: Tensor, eps: Tensor) -> Tensor:
        ctx.save_for_backward(centre, eps)
        return torch.addcmul(neighbours, centre, 1 + eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        centre, eps = ctx.saved_tensors
        # Under autocast the two may differ in precision.
        grad_eps = torch.dot(grad.flatten(), centre.to(grad.dtype).flatten()).view(1)
        return grad, grad * (1 + eps), grad_eps
