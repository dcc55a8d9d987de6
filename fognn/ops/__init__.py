r"""Sums over edges, each with its own backward. Nothing here has weights."""

from fognn.ops.adjacency import Adjacency, adjacency
from fognn.ops.edge_softmax import edge_softmax
from fognn.ops.gated_sum import gated_sum
from fognn.ops.kron_linear import kron_linear
from fognn.ops.spmm import segment_sum, spmm

__all__ = [
    "Adjacency",
    "adjacency",
    "edge_softmax",
    "gated_sum",
    "kron_linear",
    "segment_sum",
    "spmm",
]
