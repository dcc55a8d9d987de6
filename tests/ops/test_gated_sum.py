import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch.autograd import gradcheck

from fognn.ops import adjacency, gated_sum


@settings(max_examples=30)
@given(graphs(bipartite=True))
def test_equals_the_equation(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    x = graph.randn(graph.num_sources, 3)
    gate = graph.randn(graph.num_edges, 3)
    expected = torch.zeros(graph.num_targets, 3, dtype=torch.float64)
    for v in range(graph.num_targets):
        edges = [i for i, target in enumerate(graph.edge_index[1]) if target == v]
        above = sum(gate[i].sigmoid() * x[graph.edge_index[0, i]] for i in edges)
        below = sum(gate[i].sigmoid() for i in edges)
        if edges:
            expected[v] = above / (below + 1e-6)
    torch.testing.assert_close(gated_sum(adj, adj.sort(gate), x), expected)


@settings(max_examples=10)
@given(graphs())
def test_gradients_are_those_of_finite_differences(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources)
    x = graph.randn(graph.num_sources, 2).requires_grad_()
    gate = graph.randn(graph.num_edges, 2).requires_grad_()
    assert gradcheck(lambda g, x: gated_sum(adj, g, x), (gate, x))
