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
        adj (Adjacency): The graph.
        gate (torch.Tensor): The gates before the sigmoid, ``[num_edges, channels]``, in the order
            of ``adj``.
        x (torch.Tensor): Features of the sources, ``[num_sources, channels]``.
        eps (float, optional): Keeps the quotient of a node without in-edges at zero.
            (default: :obj:`1e-6`)
    """
    sigma = gate.sigmoid()
    total = segment_sum(adj.ptr, sigma * x.index_select(0, adj.source))
    return total / (segment_sum(adj.ptr, sigma) + eps)
