import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.utils import scatter

from fognn.ops import adjacency, segment_sum, spmm


def plain(graph: Graph, x, weight=None, reduce="sum"):
    """PyG's own scatter of gathered messages."""
    source, target = graph.edge_index
    message = x[source]
    if weight is not None:
        heads = 1 if weight.dim() == 1 else weight.size(1)
        parts = message.view(graph.num_edges, heads, x.size(1) // heads)
        message = (parts * weight.view(graph.num_edges, heads, 1)).flatten(1)
    return scatter(message, target, dim=0, dim_size=graph.num_targets, reduce=reduce)


@given(graphs(bipartite=True))
def test_equals_gather_and_scatter(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        x = graph.randn(graph.num_sources, 6).to(dtype)
        close = {"rtol": tolerance, "atol": tolerance}
        for reduce in ("sum", "mean", "max"):
            out = spmm(adj, x, reduce=reduce)
            torch.testing.assert_close(out, plain(graph, x, reduce=reduce), **close)
        for shape in ((graph.num_edges,), (graph.num_edges, 3)):
            weight = graph.randn(*shape).to(dtype)
            out = spmm(adj, x, adj.sort(weight))
            torch.testing.assert_close(out, plain(graph, x, weight), **close)


@settings(max_examples=20)
@given(graphs(bipartite=True))
def test_gradients_are_those_of_finite_differences(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    x = graph.randn(graph.num_sources, 4).requires_grad_()
    assert gradcheck(lambda x: spmm(adj, x), x)
    assert gradcheck(lambda x: spmm(adj, x, reduce="mean"), x)
    assert gradcheck(lambda x: spmm(adj, x, reduce="max"), x)
    if graph.num_edges:
        for shape in ((graph.num_edges,), (graph.num_edges, 2)):
            weight = graph.randn(*shape).requires_grad_()
            assert gradcheck(lambda x, w: spmm(adj, x, w), (x, weight))
            assert gradgradcheck(lambda x, w: spmm(adj, x, w), (x, weight))


@settings(max_examples=20)
@given(graphs(bipartite=True))
def test_a_transpose_that_was_not_made_changes_nothing(graph: Graph) -> None:
    full = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    bare = full._replace(t_ptr=None, t_target=None, t_perm=None)
    weight = graph.randn(graph.num_edges)
    grads = []
    for adj in (full, bare):
        x = graph.randn(graph.num_sources, 3).requires_grad_()
        spmm(adj, x, weight).square().sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)


def test_bad_arguments() -> None:
    adj = adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    with pytest.raises(ValueError, match="reduce must be one of 'sum', 'mean', 'max', got 'min'"):
        spmm(adj, torch.ones(2, 3), reduce="min")
    with pytest.raises(ValueError, match="weight must be None with reduce='max'"):
        spmm(adj, torch.ones(2, 3), torch.ones(2), reduce="max")


@given(graphs())
def test_segment_sum(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources)
    value = graph.randn(graph.num_edges, 3).requires_grad_()
    expected = scatter(value, adj.target, dim=0, dim_size=graph.num_targets)
    torch.testing.assert_close(segment_sum(adj.ptr, value), expected)
    assert gradcheck(lambda v: segment_sum(adj.ptr, v), value)
