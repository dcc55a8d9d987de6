import math

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import BatchNorm, Linear
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.inputs import edge_weights, node_pair
from fognn.ops import adjacency, kron_linear, spmm
from fognn.utils import checks


def fog_widths(out_channels: int) -> tuple[int, int]:
    r"""The inner widths :math:`(C_{h1}, C_{h2})` that the paper takes for :math:`C_p` channels.

    The paper does not state a rule, but all of its networks follow
    :math:`C_{h1} = \lfloor \sqrt{2 C_p} \rfloor` and :math:`C_{h2} = \lfloor C_{h1} / 2 \rfloor`,
    so that the Kronecker product has about as many channels as the output.
    """
    checks.positive_int("fog_widths", "out_channels", out_channels)
    h1 = math.isqrt(2 * out_channels)
    return h1, max(h1 // 2, 1)


class FOG(Module):
    r"""The feature correlation aggregation module from the paper "Feature Correlation
    Aggregation: on the Path to Better Graph Neural Networks".

    .. math::
        \mathbf{p}_v = \mathbf{W}_{vu} \sum_{u \in \mathcal{N}(v)}
        \tilde{\mathbf{h}}_v \otimes \tilde{\mathbf{h}}_u

    with the shrunk features of the centre and of its neighbours

    .. math::
        \tilde{\mathbf{h}}_v &= \textrm{BN}(\textrm{ReLU}(\mathbf{W}_1 \mathbf{x}_v))

        \tilde{\mathbf{h}}_u &= \textrm{BN}(\textrm{ReLU}(\mathbf{W}_2 \,
        \textrm{BN}(\textrm{ReLU}(\mathbf{W}_1 \mathbf{x}_u)))).

    The Kronecker product is bilinear, so the sum is computed as :math:`\tilde{\mathbf{h}}_v
    \otimes \sum_u \tilde{\mathbf{h}}_u`, which is exact: one sparse product of :math:`C_{h2}`
    channels over the edges, and one product per node. A node without in-edges gets the bias of
    :math:`\mathbf{W}_{vu}`. A training batch of a single node is normalised by the running
    statistics, because one node has no variance.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the
            first input to the forward method.
        out_channels (int): Size :math:`C_p` of each output sample.
        h1 (int, optional): Size :math:`C_{h1}` of the shrunk centre features.
            (default: that of :func:`fog_widths`)
        h2 (int, optional): Size :math:`C_{h2}` of the shrunk neighbour features.
            (default: that of :func:`fog_widths`)
        check (bool, optional): If set to :obj:`True`, raises a :class:`ValueError` that names the
            row if features or weights hold NaN or infinity. This costs a pass over the features.
            (default: :obj:`False`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or
          :math:`((|\mathcal{V_s}|, F_{in}), (|\mathcal{V_t}|, F_{in}))` if bipartite (both sides
          pass through the same :math:`\mathbf{W}_1`; its norm takes statistics over both),
          edge indices :math:`(2, |\mathcal{E}|)`, sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)` or :class:`fognn.ops.Adjacency`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **outputs:** node features :math:`(|\mathcal{V}|, C_p)` or
          :math:`(|\mathcal{V_t}|, C_p)` if bipartite
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        h1: int | None = None,
        h2: int | None = None,
        check: bool = False,
    ) -> None:
        super().__init__()
        if in_channels != -1:
            checks.positive_int("FOG", "in_channels", in_channels)
        self.out_channels = checks.positive_int("FOG", "out_channels", out_channels)
        default_h1, default_h2 = fog_widths(out_channels)
        self.h1 = default_h1 if h1 is None else checks.positive_int("FOG", "h1", h1)
        self.h2 = default_h2 if h2 is None else checks.positive_int("FOG", "h2", h2)
        self.check = check

        self.lin_1 = Linear(in_channels, self.h1)
        self.norm_1 = BatchNorm(self.h1, allow_single_element=True)
        self.lin_2 = Linear(self.h1, self.h2)
        self.norm_2 = BatchNorm(self.h2, allow_single_element=True)
        self.lin_vu = Linear(self.h1 * self.h2, out_channels)

        self.reset_parameters()

    @property
    def in_channels(self) -> int:
        r"""Size of each input sample; :obj:`-1` until a lazy layer has seen one."""
        return self.lin_1.in_channels

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        for module in (self.lin_1, self.norm_1, self.lin_2, self.norm_2, self.lin_vu):
            module.reset_parameters()

    def forward(
        self, x: Tensor | PairTensor, edge_index: Adj, edge_weight: OptTensor = None
    ) -> Tensor:
        dtype = self.lin_vu.weight.dtype
        source, target = node_pair("FOG", x, self.in_channels, dtype, self.check)
        if self.in_channels == -1:
            self.lin_1.initialize_parameters(self.lin_1, (source,))
        adj = adjacency(edge_index, source.size(0), target.size(0))
        edge_weight = edge_weights("FOG", adj, edge_weight)
        if self.check and edge_weight is not None:
            checks.finite("FOG", "edge_weight", edge_weight.unsqueeze(1))

        if source is target:
            h_source = h_target = self.shrink(source)
        else:
            both = self.shrink(source, target)
            h_source, h_target = both.split([source.size(0), target.size(0)], dim=1)
        h_sum = spmm(adj, self.shrink_again(h_source).t(), edge_weight)
        return self.correlate(h_target, h_sum)

    # Nodes are the last dimension inside, so that norms and products of few channels over many
    # nodes read memory in order (benchmarks/kernels.py compares both layouts).

    def shrink(self, *x: Tensor) -> Tensor:
        r"""Returns :math:`\tilde{\mathbf{h}}_v`, ``[h1, num_nodes]``, of all arguments in order."""
        parts = [_linear(self.lin_1, part.t()) for part in x]
        h = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return _norm(self.norm_1, h.relu_())

    def shrink_again(self, h: Tensor) -> Tensor:
        r"""Returns :math:`\tilde{\mathbf{h}}_u`, ``[h2, num_nodes]``, from :meth:`shrink`."""
        return _norm(self.norm_2, _linear(self.lin_2, h).relu_())

    def correlate(self, h_v: Tensor, h_sum: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{W}_{vu} (\tilde{\mathbf{h}}_v \otimes \mathbf{s}_v)` from
        ``[h1, num_nodes]`` and the sums ``[num_nodes, h2]``."""
        return kron_linear(h_v, h_sum.t(), self.lin_vu.weight, self.lin_vu.bias)

    def __repr__(self) -> str:
        widths = f"{self.in_channels}, {self.out_channels}, h1={self.h1}, h2={self.h2}"
        return f"{self.__class__.__name__}({widths})"


def _linear(lin: Linear, h: Tensor) -> Tensor:
    return torch.addmm(lin.bias.unsqueeze(1), lin.weight, h)


def _norm(norm: BatchNorm, h: Tensor) -> Tensor:
    if h.size(1) <= 1:  # as PyG's allow_single_element: one node has no variance
        return norm(h.t()).t()
    return norm.module(h.unsqueeze(0)).squeeze(0)
