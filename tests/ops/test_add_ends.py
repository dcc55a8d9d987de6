import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch.autograd import gradcheck

from fognn.ops import Adjacency, add_ends, adjacency, kernels


@settings(max_examples=30)
@given(graphs(bipartite=True))
def test_equals_the_equation_and_the_plain_path(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    for channels in (1, 19):
        p = graph.randn(graph.num_sources, channels).requires_grad_()
        q = graph.randn(graph.num_targets, channels).neg().add(0.3).requires_grad_()
        out = add_ends(adj, p, q)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "_LOOPS", False)
            plain = add_ends(adj, p, q)
        source, target = graph.edge_index
        literal = torch.relu(p[source] + q[target])
        torch.testing.assert_close(out, adj.sort(literal))
        torch.testing.assert_close(plain, out)
        grads = [torch.autograd.grad(t.sin().sum(), (p, q)) for t in (out, plain, literal)]
        torch.testing.assert_close(grads[0], grads[2])
        torch.testing.assert_close(grads[1], grads[2])


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    adj = adjacency(torch.randint(0, 4, (2, 9)), 4)
    p = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    q = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda p, q: add_ends(adj, p, q), (p, q))


def test_nan_is_not_swallowed() -> None:
    adj = adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    p = torch.tensor([[torch.nan], [1.0]])
    assert add_ends(adj, p, torch.zeros(2, 1)).isnan().tolist() == [[False], [True]]


def test_compiles_as_one_operator() -> None:
    adj = adjacency(torch.randint(0, 6, (2, 20)), 6)
    p, q = torch.randn(6, 3, requires_grad=True), torch.randn(6, 3)
    torch.library.opcheck(torch.ops.fognn.add_ends.default, (p, q, adj.ptr, adj.source))
    compiled = torch.compile(add_ends, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(adj, p, q), add_ends(adj, p, q))


def test_a_source_that_is_not_there_is_an_error() -> None:
    wrong = Adjacency(torch.tensor([0, 1]), torch.tensor([7]))
    with pytest.raises(IndexError, match=r"must name sources in 0\.\.2"):
        add_ends(wrong, torch.ones(3, 2), torch.ones(1, 2))
