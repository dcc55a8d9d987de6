import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import to_torch_csc_tensor, to_torch_csr_tensor

from fognn.ops import Adjacency, adjacency


def edge_index_forms(graph: Graph) -> dict[str, tuple[object, Tensor]]:
    """All forms of one graph, each with the user's order of the edges in it."""
    edge_index = graph.edge_index
    size = (graph.num_sources, graph.num_targets)
    by_col, col_perm = EdgeIndex(edge_index, sparse_size=size).sort_by("col")
    by_row, row_perm = EdgeIndex(edge_index, sparse_size=size).sort_by("row")
    same = torch.arange(graph.num_edges)
    return {
        "plain": (edge_index, same),
        "int32": (edge_index.int(), same),
        "EdgeIndex": (EdgeIndex(edge_index, sparse_size=size), same),
        "by target": (by_col, col_perm),
        "by target, filled": (by_col.clone().fill_cache_(), col_perm),
        "by target, no size": (EdgeIndex(by_col.as_tensor(), sort_order="col"), col_perm),
        "by source": (by_row, row_perm),
    }


def dense(adj: Adjacency, num_sources: int) -> Tensor:
    out = torch.zeros(adj.num_targets, num_sources, dtype=torch.long)
    return out.index_put((adj.target.long(), adj.source.long()), torch.tensor(1), accumulate=True)


@given(graphs(bipartite=True))
def test_all_forms_are_one_graph(graph: Graph) -> None:
    source, target = graph.edge_index
    expected = torch.zeros(graph.num_targets, graph.num_sources, dtype=torch.long)
    expected.index_put_((target, source), torch.tensor(1), accumulate=True)
    for name, (edge_index, order) in edge_index_forms(graph).items():
        adj = adjacency(edge_index, graph.num_sources, graph.num_targets)
        assert torch.equal(dense(adj, graph.num_sources), expected), name

        # Edge values follow their edges, and come back in the user's order.
        given_source = source[order]
        assert torch.equal(adj.sort(given_source), adj.source.long()), name
        assert torch.equal(adj.unsort(adj.sort(given_source)), given_source), name
        assert torch.equal(adj.sort(target[order]), adj.target.long()), name

        # The transpose holds the same edges, and t_perm says which is which.
        rows = torch.arange(graph.num_sources).repeat_interleave(adj.t_ptr.long().diff())
        assert torch.equal(adj.source[adj.t_perm].long(), rows), name
        assert torch.equal(adj.target[adj.t_perm], adj.t_target), name


@given(graphs(bipartite=True))
def test_sparse_matrices(graph: Graph) -> None:
    weight = graph.randn(graph.num_edges)
    size = (graph.num_sources, graph.num_targets)
    dense = torch.zeros(size, dtype=torch.float64)
    dense.index_put_(tuple(graph.edge_index), weight, accumulate=True)
    for convert in (to_torch_csr_tensor, to_torch_csc_tensor):
        adj_t = convert(graph.edge_index, weight, size=size).t()
        adj = adjacency(adj_t, graph.num_sources, graph.num_targets)
        found = torch.zeros_like(dense)
        found.index_put_((adj.source, adj.target), adj.weight, accumulate=True)
        torch.testing.assert_close(found, dense)
        assert torch.equal(adj.target[adj.t_perm], adj.t_target)


def test_an_adjacency_passes_through() -> None:
    adj = adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    assert adjacency(adj, 2) is adj
    with pytest.raises(ValueError, match=r"has 2 target nodes, but x has 3"):
        adjacency(adj, 3)


def test_an_edge_index_that_was_changed_is_looked_at_again() -> None:
    edge_index = EdgeIndex([[0, 1], [0, 1]], sparse_size=(2, 2), sort_order="col")
    for _ in range(2):
        assert adjacency(edge_index, 2).source.tolist() == [0, 1]
    edge_index._data[0, 1] = 7
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1 .*, got 7"):
        adjacency(edge_index, 2)
    edge_index._data.copy_(torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="must be sorted by col"):
        adjacency(edge_index, 2)


def test_an_edge_index_of_another_size_is_looked_at_again() -> None:
    edge_index = EdgeIndex([[0, 4], [0, 4]], sparse_size=(5, 5), sort_order="col")
    adjacency(edge_index, 5)
    edge_index.sparse_resize_(3, 3)
    with pytest.raises(ValueError, match=r"must lie in 0\.\.2 .*, got 4"):
        adjacency(edge_index, 3)


def test_no_transpose_without_a_gradient() -> None:
    edge_index = torch.tensor([[1, 0], [0, 1]])
    with torch.no_grad():
        assert adjacency(edge_index, 2).t_ptr is None
        assert adjacency(EdgeIndex(edge_index, sort_order="col"), 2).t_ptr is None
    assert adjacency(edge_index, 2).t_ptr is not None


def test_the_users_edge_index_stays_as_it_was() -> None:
    edge_index = EdgeIndex(torch.tensor([[0, 1], [0, 1]]), sort_order="col")
    adjacency(edge_index, 5)
    assert edge_index.sparse_size() == (None, None)
    assert adjacency(edge_index, 7).num_targets == 7


@pytest.mark.parametrize(
    ("edge_index", "message"),
    [
        (torch.tensor([[0, -1], [1, 0]]), r"sources \(row 0\) must lie in 0\.\.2 .*, got -1"),
        (torch.tensor([[0, 1], [1, 3]]), r"targets \(row 1\) must lie in 0\.\.2 .*, got 3"),
        (torch.tensor([[0, 2**40], [1, 0]]), r"got 1099511627776"),
        (torch.tensor([0, 1]), r"must have shape \[2, num_edges\], got \[2\]"),
        (torch.zeros(3, 4, dtype=torch.long), r"must have shape \[2, num_edges\], got \[3, 4\]"),
        (torch.zeros(2, 4), r"must be int64 or int32, got torch.float32"),
        ([[0], [1]], r"must be a \[2, num_edges\] tensor, .*, got list"),
        (torch.eye(3).to_sparse(), r"must be strided, CSR or CSC, got torch.sparse_coo"),
        (torch.eye(4).to_sparse_csr(), r"shape \[num_targets, num_sources\] = \[3, 3\]"),
        (EdgeIndex([[0, 5], [0, 1]], sort_order="col"), r"must lie in 0\.\.2 .*, got 5"),
        (
            EdgeIndex([[0, 1], [0, 1]], sparse_size=(9, 9)),
            r"sparse_size must be \(3, 3\), .*, got \(9, 9\)",
        ),
        (
            EdgeIndex([[0, 1, 2], [2, 0, 1]], sparse_size=(3, 3), sort_order="col"),
            r"must be sorted by col, as its sort_order says",
        ),
        (
            torch.sparse_csr_tensor([0, 1, 2, 3], [0, 1, 7], torch.ones(3), (3, 3),
                                    check_invariants=False),
            r"sources \(columns\) must lie in 0\.\.2 .*, got 7",
        ),
        (
            torch.sparse_csc_tensor([0, 1, 2, 3], [0, 1, -4], torch.ones(3), (3, 3),
                                    check_invariants=False),
            r"targets \(rows\) must lie in 0\.\.2 .*, got -4",
        ),
        (
            torch.sparse_csr_tensor([0, 9, 2, 3], [0, 1, 2], torch.ones(3), (3, 3),
                                    check_invariants=False),
            r"row pointers must grow from 0",
        ),
    ],
)  # fmt: skip
def test_bad_input(edge_index, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adjacency(edge_index, 3)
