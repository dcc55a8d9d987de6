"""The gated sum of GatedGCN."""

from torch import Tensor

from fognn.ops.adjacency import Adjacency
from fognn.ops.spmm import segment_sum


def gated_sum(adj: Adjacency, gate: Tensor, x: Tensor, eps: float = 1e-6) -> Tensor:
    r"""Sums neighbours through gates that are normalised over the in-edges of each node.

    .. math::
        \mathbf{y}_v = \frac{\sum_{u} \sigma(\mathbf{e}_{vu}) \odot \mathbf{x}_u}
        {\sum_{u} \sigma(\mathbf{e}_{vu}) + \varepsilon}

    Args:
        adj: The graph.
        gate: ``[num_edges, channels]``, the gates before the sigmoid, in the order of ``adj``.
        x: ``[num_sources, channels]``.
        eps: Keeps the quotient of a node without in-edges at zero.
    """
    sigma = gate.sigmoid()
    total = segment_sum(adj.ptr, sigma * x.index_select(0, adj.source))
    return total / (segment_sum(adj.ptr, sigma) + eps)
