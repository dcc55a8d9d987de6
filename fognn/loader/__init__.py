"""Loaders whose batches have sorted edges: many graphs packed into flat tensors, one whole graph,
or sampled neighbourhoods of its nodes."""

from fognn.loader.neighbors import Neighborhood, NeighborSampler
from fognn.loader.packed import PackedLoader
from fognn.loader.single_graph import FullGraphLoader, NeighborLoader, PackedGraph

__all__ = [
    "FullGraphLoader",
    "NeighborLoader",
    "NeighborSampler",
    "Neighborhood",
    "PackedGraph",
    "PackedLoader",
]
