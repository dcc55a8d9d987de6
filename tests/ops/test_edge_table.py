import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch.autograd import gradcheck, gradgradcheck

from fognn.ops import EdgeTable, adjacency, edge_sum, kernels, relu_sum, rows_of_edges


def table(rows: int, channels: int, edges: int) -> EdgeTable:
    values = torch.randn(rows, channels, dtype=torch.float64, requires_grad=True)
    return EdgeTable(values, torch.randint(0, rows, (edges,)))


@settings(max_examples=30)
@given(graphs(bipartite=True))
def test_relu_sum_is_the_equation(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    source, target = graph.edge_index
    for channels in (1, 19):
        x = graph.randn(graph.num_sources, channels).double().requires_grad_()
        edges = table(3, channels, adj.num_edges)
        sorted_edges = edges._replace(row=adj.sort(edges.row))
        message = torch.relu(x[source] + edges.features)
        literal = message.new_zeros(graph.num_targets, channels).index_add(0, target, message)
        found = [relu_sum(adj, x, sorted_edges), relu_sum(adj, x, sorted_edges.features)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "_LOOPS", False)
            found += [relu_sum(adj, x, sorted_edges), relu_sum(adj, x, sorted_edges.features)]
        wanted = torch.autograd.grad(literal.sin().sum(), (x, edges.values))
        for out in found:
            torch.testing.assert_close(out, literal)
            grads = torch.autograd.grad(out.sin().sum(), (x, edges.values))
            torch.testing.assert_close(grads, wanted)


@pytest.mark.parametrize("rows", [3, 100])
@pytest.mark.parametrize("weighted", [False, True])
def test_edge_sum_is_the_equation(rows: int, weighted: bool) -> None:
    torch.manual_seed(0)
    edge_index = torch.randint(0, 7, (2, 40))
    adj = adjacency(edge_index, 7, 9)  # two nodes without edges
    edges = table(rows, 4, 40)
    weight = torch.randn(40, dtype=torch.float64, requires_grad=True) if weighted else None
    value = edges.features if weight is None else edges.features * weight.unsqueeze(1)
    literal = value.new_zeros(9, 4).index_add(0, edge_index[1], value)
    sorted_edges = edges._replace(row=adj.sort(edges.row))
    inputs = [edges.values] + ([] if weight is None else [weight])
    wanted = torch.autograd.grad(literal.sin().sum(), inputs)
    for form in (sorted_edges, sorted_edges.counted(adj), rows_of_edges(sorted_edges)):
        out = edge_sum(adj, form, None if weight is None else adj.sort(weight))
        torch.testing.assert_close(out, literal)
        torch.testing.assert_close(torch.autograd.grad(out.sin().sum(), inputs), wanted)


def test_weights_of_messages() -> None:
    torch.manual_seed(0)
    adj = adjacency(torch.randint(0, 5, (2, 12)), 5)
    x, edges = torch.randn(5, 3).double(), table(4, 3, 12)
    twice = relu_sum(adj, x, edges, torch.full((12,), 2.0).double())
    torch.testing.assert_close(twice, 2 * relu_sum(adj, x, edges))


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    adj = adjacency(torch.randint(0, 4, (2, 9)), 4)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    edges = table(2, 3, 9)

    def total(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return relu_sum(adj, x, edges._replace(values=values)).square()

    assert gradcheck(total, (x, edges.values))
    assert gradgradcheck(total, (x, edges.values))


def test_nan_is_not_swallowed() -> None:
    adj = adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    x = torch.tensor([[torch.nan], [1.0]])
    out = relu_sum(adj, x, torch.zeros(2, 1))
    assert out.isnan().tolist() == [[False], [True]]


def test_compiles_as_one_operator() -> None:
    adj = adjacency(torch.randint(0, 6, (2, 20)), 6)
    x, values = torch.randn(6, 3, requires_grad=True), torch.randn(4, 3)
    edges = EdgeTable(values, torch.randint(0, 4, (20,)))
    torch.library.opcheck(
        torch.ops.fognn.relu_sum.default, (x, values, edges.row, adj.ptr, adj.source)
    )
    compiled = torch.compile(relu_sum, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(adj, x, edges), relu_sum(adj, x, edges))


def test_a_row_that_is_not_there_is_an_error() -> None:
    adj = adjacency(torch.tensor([[0], [1]]), 2)
    with pytest.raises(IndexError, match=r"0\.\.1"):
        relu_sum(adj, torch.ones(2, 2), EdgeTable(torch.ones(2, 2), torch.tensor([5])))
