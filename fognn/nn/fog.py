import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import BatchNorm, LayerNorm, Linear
from torch_geometric.nn.resolver import activation_resolver
from torch_geometric.typing import Adj, OptTensor, PairTensor

from fognn.nn.graph_layer import GraphLayer
from fognn.ops import Adjacency, kron_linear, segment_sum, spmm
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


class FOG(GraphLayer):
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

    With :obj:`edge_dim`, the neighbour's vector is :math:`\tilde{\mathbf{h}}_u + \mathbf{W}_e
    \mathbf{e}_{vu}`. The sum factorises as before: :math:`\mathbf{W}_e` is applied to the sum of
    the edge features of each node.

    The equation is the paper's, with ReLU before the norm: :obj:`act_first=True`. By default the
    order is the other one, :math:`\textrm{ReLU}(\textrm{BN}(\mathbf{W} \mathbf{x}))`, as a norm
    after ReLU multiplies a unit that is zero on all training data by up to
    :math:`1 / \sqrt{\epsilon}`, about 300, on a node that activates it in evaluation.

    Args:
        in_channels (int): Size of each input sample, or :obj:`-1` to derive the size from the
            first input to the forward method.
        out_channels (int): Size :math:`C_p` of each output sample.
        h1 (int, optional): Size :math:`C_{h1}` of the shrunk centre features.
            (default: that of :func:`fog_widths`)
        h2 (int, optional): Size :math:`C_{h2}` of the shrunk neighbour features.
            (default: that of :func:`fog_widths`)
        edge_dim (int, optional): Size of each edge sample; :obj:`None` if edges have no features.
            (default: :obj:`None`)
        norm (str or Callable, optional): The norm BN: :obj:`"batch_norm"`, as in the paper,
            :obj:`"layer_norm"` (over the channels of each node), a function that returns a module
            for a number of channels, or :obj:`None`. (default: :obj:`"batch_norm"`)
        act (str or Callable, optional): The activation that takes the place of ReLU, by a name
            that PyG's resolver accepts or as a function, or :obj:`None`.
            (default: :obj:`"relu"`)
        eps (float, optional): The norm's :math:`\epsilon`, which is added to the variance.
            (default: that of the norm, :obj:`1e-5`)
        act_first (bool, optional): If set to :obj:`True`, the activation is applied before the
            norm, as in the paper. (default: :obj:`False`)

    Shapes:
        - **inputs:**
          node features :math:`(|\mathcal{V}|, F_{in})` or
          :math:`((|\mathcal{V_s}|, F_{in}), (|\mathcal{V_t}|, F_{in}))` if bipartite (both sides
          pass through the same :math:`\mathbf{W}_1`; its norm takes statistics over both),
          edge indices :math:`(2, |\mathcal{E}|)`, sparse :math:`(|\mathcal{V_t}|,
          |\mathcal{V_s}|)` or :class:`fognn.ops.Adjacency`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*,
          edge features :math:`(|\mathcal{E}|, D)` *(with* :obj:`edge_dim` *)*; for a sparse
          matrix, both in the order of its rows
        - **outputs:** node features :math:`(|\mathcal{V}|, C_p)` or
          :math:`(|\mathcal{V_t}|, C_p)` if bipartite
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        h1: int | None = None,
        h2: int | None = None,
        edge_dim: int | None = None,
        norm: str | Callable[..., Module] | None = "batch_norm",
        act: str | Callable[[Tensor], Tensor] | None = "relu",
        eps: float | None = None,
        act_first: bool = False,
    ) -> None:
        super().__init__()
        if in_channels != -1:
            checks.positive_int("FOG", "in_channels", in_channels)
        self.out_channels = checks.positive_int("FOG", "out_channels", out_channels)
        default_h1, default_h2 = fog_widths(out_channels)
        self.h1 = default_h1 if h1 is None else checks.positive_int("FOG", "h1", h1)
        self.h2 = default_h2 if h2 is None else checks.positive_int("FOG", "h2", h2)
        self.act_first = act_first

        # ReLU is applied in place, and needs no module.
        self.act = None if act in (None, "relu") else activation_resolver(act)
        self._relu = act == "relu"
        self.lin_1 = Linear(in_channels, self.h1)
        self.norm_1 = _resolve_norm(norm, self.h1, eps)
        self.lin_2 = Linear(self.h1, self.h2)
        self.norm_2 = _resolve_norm(norm, self.h2, eps)
        self.lin_vu = Linear(self._product_channels(), out_channels)
        self.lin_e = self.edge_linear(edge_dim, self.h2, bias=False)
        self.reset_parameters()

    @property
    def in_channels(self) -> int:
        r"""Size of each input sample; :obj:`-1` until a lazy layer has seen one."""
        return self.lin_1.in_channels

    def forward(
        self,
        x: Tensor | PairTensor,
        edge_index: Adj,
        edge_weight: OptTensor = None,
        edge_attr: OptTensor = None,
    ) -> Tensor:
        dtype = self.lin_vu.weight.dtype
        source, target, adj = self.inputs(x, edge_index, self.in_channels, dtype)
        if self.in_channels == -1:
            self.lin_1.initialize_parameters(self.lin_1, (source,))
        edge_weight = self.edge_weights(adj, edge_weight)
        edges = self.edge_features(adj, edge_attr, dtype)
        if source is target:
            h_source = h_target = self.shrink(source)
        else:
            both = self.shrink(source, target)
            h_source, h_target = both.split([source.size(0), target.size(0)], dim=1)
        return self.aggregate(adj, h_source, h_target, edge_weight, edges)

    # Nodes are the last dimension inside, so that norms and products of few channels over many
    # nodes read memory in order (benchmarks/kernels.py compares both layouts).

    def shrink(self, *x: Tensor) -> Tensor:
        r"""Returns :math:`\tilde{\mathbf{h}}_v`, ``[h1, num_nodes]``, of all arguments in order."""
        parts = [_linear(self.lin_1, part.t()) for part in x]
        h = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return self._normalise(self.norm_1, h)

    def shrink_again(self, h: Tensor) -> Tensor:
        r"""Returns :math:`\tilde{\mathbf{h}}_u`, ``[h2, num_nodes]``, from :meth:`shrink`."""
        return self._normalise(self.norm_2, _linear(self.lin_2, h))

    def aggregate(
        self, adj: Adjacency, h_source: Tensor, h_target: Tensor, weight: OptTensor, e: OptTensor
    ) -> Tensor:
        r"""Returns the output from :meth:`shrink` of sources and targets."""
        return self.correlate(h_target, self._sum(adj, h_source, weight, e))

    def _sum(self, adj: Adjacency, h_source: Tensor, weight: OptTensor, e: OptTensor) -> Tensor:
        weight = self.masked(adj, weight)
        h_sum = spmm(adj, self.shrink_again(h_source).t(), weight)
        if self.lin_e is not None and e is not None:
            h_sum = h_sum + self.lin_e(segment_sum(adj.ptr, e, weight))
        return h_sum

    def correlate(self, h_v: Tensor, h_sum: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{W}_{vu} (\tilde{\mathbf{h}}_v \otimes \mathbf{s}_v)` from
        ``[h1, num_nodes]`` and the sums ``[num_nodes, h2]``."""
        return kron_linear(h_v, h_sum.t(), self.lin_vu.weight, self.lin_vu.bias)

    def _product_channels(self) -> int:
        return self.h1 * self.h2

    def _normalise(self, norm: Any, h: Tensor) -> Tensor:
        if self.act_first:
            return _norm(norm, self._activate(h))
        # A user's own norm may need its output for the gradient.
        return self._activate(_norm(norm, h), inplace=isinstance(norm, BatchNorm | LayerNorm))

    def _activate(self, h: Tensor, inplace: bool = True) -> Tensor:
        if self._relu:
            return h.relu_() if inplace else h.relu()
        return h if self.act is None else self.act(h.t()).t()

    def __repr__(self) -> str:
        widths = f"{self.in_channels}, {self.out_channels}, h1={self.h1}, h2={self.h2}"
        if self.edge_dim is not None:
            widths += f", edge_dim={self.edge_dim}"
        return f"{self.__class__.__name__}({widths})"


def _linear(lin: Linear, h: Tensor) -> Tensor:
    return torch.addmm(lin.bias.unsqueeze(1), lin.weight, h)


def _resolve_norm(norm: Any, channels: int, eps: float | None) -> Any:
    if norm is None:
        if eps is not None:
            raise ValueError(f"FOG: eps must be None with norm=None, got {eps!r}")
        return None
    if eps is not None and not (isinstance(eps, int | float) and eps > 0):
        raise ValueError(f"FOG: eps must be a positive number, got {eps!r}")
    options = {} if eps is None else {"eps": eps}
    if norm == "batch_norm":
        return BatchNorm(channels, **options, allow_single_element=True)
    if norm == "layer_norm":  # PyG's default mode takes statistics over all nodes of the batch
        return LayerNorm(channels, mode="node", **options)
    if isinstance(norm, Module | str) or not callable(norm):
        raise ValueError(
            "FOG: norm must be 'batch_norm', 'layer_norm', None or a function that returns a "
            f"module for a number of channels, got {norm!r}"
        )
    return norm(channels, **options)


def _norm(norm: Any, h: Tensor) -> Tensor:
    if norm is None:
        return h
    # One node has no variance, which PyG's allow_single_element takes care of.
    if not isinstance(norm, BatchNorm) or h.size(1) <= 1:
        return norm(h.t()).t()
    return norm.module(h.unsqueeze(0)).squeeze(0)
