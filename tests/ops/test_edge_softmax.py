import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.utils import softmax

from fognn.ops import adjacency, edge_softmax


@given(graphs())
def test_equals_pyg(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources)
    score = 50 * graph.randn(graph.num_edges, 3)
    expected = softmax(score, adj.target, num_nodes=graph.num_sources)
    # PyG adds 1e-16 to the denominator.
    torch.testing.assert_close(edge_softmax(adj, score), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=20)
@given(graphs())
def test_gradients_are_those_of_finite_differences(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources)
    score = graph.randn(graph.num_edges, 2).requires_grad_()
    assert gradcheck(lambda s: edge_softmax(adj, s), score)
    assert gradgradcheck(lambda s: edge_softmax(adj, s), score)


def test_large_scores_do_not_overflow() -> None:
    adj = adjacency(torch.tensor([[0, 1], [0, 0]]), 2)
    alpha = edge_softmax(adj, torch.tensor([[1e4], [1e4]]))
    torch.testing.assert_close(alpha, torch.full((2, 1), 0.5))
