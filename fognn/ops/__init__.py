r"""Sums over edges, each an operator with its own backward. Nothing here has weights."""

from fognn.ops.adjacency import Adjacency, adjacency
from fognn.ops.gated_edges import Norm, gated_edges, gated_sum, stacked
from fognn.ops.kron_linear import kron_linear
from fognn.ops.spmm import add_ends, edge_softmax, segment_sum, spmm

__all__ = [
    "Adjacency",
    "Norm",
    "add_ends",
    "adjacency",
    "edge_softmax",
    "gated_edges",
    "gated_sum",
    "kron_linear",
    "segment_sum",
    "spmm",
    "stacked",
]
