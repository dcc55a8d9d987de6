"""Random graphs for hypothesis: isolated nodes, multi-edges, self loops, no edges, one node."""

from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor


class Graph(NamedTuple):
    edge_index: Tensor
    num_sources: int
    num_targets: int
    seed: int

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    def randn(self, *size: int) -> Tensor:
        """Numbers that belong to this graph, so that a failing example can be repeated."""
        generator = torch.Generator().manual_seed(self.seed)
        return torch.randn(*size, dtype=torch.float64, generator=generator)


@st.composite
def graphs(
    draw: st.DrawFn,
    bipartite: bool = False,
    min_nodes: int = 1,
    max_nodes: int = 8,
    min_edges: int = 0,
) -> Graph:
    sources = draw(st.integers(min_nodes, max_nodes))
    targets = draw(st.integers(min_nodes, max_nodes)) if bipartite else sources
    edge = st.tuples(st.integers(0, sources - 1), st.integers(0, targets - 1))
    edges = draw(st.lists(edge, min_size=min_edges, max_size=24))
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous()
    return Graph(edge_index, sources, targets, draw(st.integers(0, 2**32 - 1)))
