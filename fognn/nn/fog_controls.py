from typing import Any

import torch
from torch import Tensor
from torch_geometric.typing import OptTensor

from fognn.nn.fog import FOG, fog_widths
from fognn.nn.graph_layer import reciprocal_degree
from fognn.ops import Adjacency, kron_linear, spmm
from fognn.utils import checks

FOG_KINDS = ("kron", "kron-mean", "kron-neighbours", "hadamard", "concat", "own")


class FOGControl(FOG):
    r"""A control of :class:`FOG`: the same layer with another combination of the same features.

    Let :math:`\mathbf{a}_v` be the shrunk features of a node as a centre
    (:math:`\tilde{\mathbf{h}}_v` of :class:`FOG`, :math:`C_{h1}` channels), and
    :math:`\mathbf{b}_u` those of a node as a neighbour (:math:`\tilde{\mathbf{h}}_u`,
    :math:`C_{h2}` channels), norms and activations included; and :math:`w_{vu}` the edge weights,
    1 if there are none. The kinds are

    .. math::
        \textrm{kron:} \quad & \mathbf{W}_{vu} \Big( \mathbf{a}_v \otimes
        \sum_u w_{vu} \mathbf{b}_u \Big)

        \textrm{kron-mean:} \quad & \mathbf{W}_{vu} \Big( \mathbf{a}_v \otimes
        \sum_u \frac{w_{vu}}{\sum_j w_{vj}} \mathbf{b}_u \Big)

        \textrm{kron-neighbours:} \quad & \mathbf{W}_{vu} \Big( \sum_u w_{vu} \,
        \mathbf{a}_u \otimes \mathbf{b}_u \Big)

        \textrm{hadamard:} \quad & \mathbf{W}_{vu} \Big( \mathbf{a}_v \odot
        \sum_u w_{vu} \mathbf{b}_u \Big)

        \textrm{concat:} \quad & \mathbf{W}_{vu} \Big( \mathbf{a}_v \, \Vert \,
        \sum_u w_{vu} \mathbf{b}_u \Big)

        \textrm{own:} \quad & \mathbf{W}_{vu} \Big( \mathbf{a}_v \, \Vert \, \mathbf{b}_v \Big)

    ``"kron"`` is :class:`FOG` itself. ``"kron-neighbours"`` multiplies each neighbour with itself:
    its factor as a centre with that as a neighbour. ``"own"`` is ``"concat"`` without neighbours:
    what is left of FOG are its Linears, norms and activations. A node without neighbours has zeros
    in place of a sum or mean. All have the bias of :math:`\mathbf{W}_{vu}`, whose input channels
    are :math:`C_{h1} C_{h2}` for the Kronecker products, :math:`C_{h1} = C_{h2}` for
    ``"hadamard"``, and :math:`C_{h1} + C_{h2}` for ``"concat"`` and ``"own"``;
    :func:`fognn.models.equal_size` solves the widths for equal numbers of parameters.

    Args:
        in_channels (int): As in :class:`FOG`.
        out_channels (int): As in :class:`FOG`.
        h1 (int, optional): As in :class:`FOG`.
        h2 (int, optional): As in :class:`FOG`; for ``"hadamard"`` it must equal :obj:`h1`.
            (default: that of :class:`FOG`; :obj:`h1` for ``"hadamard"``)
        kind (str, optional): One of the kinds above. (default: :obj:`"kron"`)
        **kwargs (optional): Other arguments of :class:`FOG`. An :obj:`edge_dim` adds
            :math:`\mathbf{W}_e \mathbf{e}_{vu}` to :math:`\mathbf{b}_u` as in FOG; it must
            be :obj:`None` for ``"kron-neighbours"``, whose product it would need for each edge, and
            for ``"own"``.

    Shapes:
        As in :class:`FOG`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        h1: int | None = None,
        h2: int | None = None,
        kind: str = "kron",
        **kwargs: Any,
    ) -> None:
        checks.one_of("FOGControl", "kind", kind, FOG_KINDS)
        if kind == "hadamard":
            h1 = fog_widths(out_channels)[0] if h1 is None else h1
            h2 = h1 if h2 is None else h2
            if h1 != h2:
                raise ValueError(
                    f"FOGControl: h2 must equal h1={h1!r} for kind='hadamard', got {h2!r}"
                )
        if kind in ("kron-neighbours", "own") and kwargs.get("edge_dim") is not None:
            raise ValueError(
                f"FOGControl: edge_dim must be None for kind={kind!r}, got {kwargs['edge_dim']!r}"
            )
        self.kind = kind  # the constructor of FOG asks for the channels of the product
        super().__init__(in_channels, out_channels, h1, h2, **kwargs)

    def _product_channels(self) -> int:
        if self.kind == "hadamard":
            return self.h1
        return self.h1 + self.h2 if self.kind in ("concat", "own") else self.h1 * self.h2

    def aggregate(
        self, adj: Adjacency, h_source: Tensor, h_target: Tensor, weight: OptTensor, e: OptTensor
    ) -> Tensor:
        if self.kind == "own":
            return self.lin_vu(torch.cat([h_target, self.shrink_again(h_target)]).t())
        if self.kind == "kron-neighbours":
            # W is linear, so it is applied once a node and before the sum over edges.
            h_u, zero = self.shrink_again(h_source), torch.zeros_like(self.lin_vu.bias)
            product = kron_linear(h_source, h_u, self.lin_vu.weight, zero)
            return spmm(adj, product, self.masked(adj, weight)) + self.lin_vu.bias
        h_sum = self._sum(adj, h_source, weight, e)
        if self.kind == "kron-mean":
            # As in PyG, an explainer's mask does not change the degree.
            h_sum = h_sum * reciprocal_degree(adj, weight, h_sum.dtype)
        return self.correlate(h_target, h_sum)

    def correlate(self, h_v: Tensor, h_sum: Tensor) -> Tensor:
        if self.kind == "hadamard":
            return self.lin_vu((h_v * h_sum.t()).t())
        if self.kind == "concat":
            return self.lin_vu(torch.cat([h_v.t(), h_sum], dim=1))
        return super().correlate(h_v, h_sum)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, kind={self.kind})"
