import pytest
import torch
from torch_geometric.utils import to_undirected

from fognn.data import pack
from fognn.data.pack import offsets, sort_edges


def random_graphs(nodes: list[int], edges: list[int]):
    generator = torch.Generator().manual_seed(0)
    parts = [
        torch.randint(0, n, (e, 2), generator=generator) for n, e in zip(nodes, edges, strict=True)
    ]
    return torch.cat(parts), torch.tensor(nodes), torch.tensor(edges)


def in_plain_python(edge_index, num_nodes, num_edges):
    order, source, perm, begin = [], [], [], 0
    for e in num_edges.tolist():
        pairs = edge_index[begin : begin + e].tolist()
        by_target = sorted(range(e), key=lambda i: (pairs[i][1], pairs[i][0]))
        pairs = [pairs[i] for i in by_target]
        order += [begin + i for i in by_target]
        source += [u - v for u, v in pairs]
        by_source = sorted(range(e), key=lambda i: (pairs[i][0], pairs[i][1]))
        perm += [place - i for i, place in enumerate(by_source)]
        begin += e
    return order, source, perm


@pytest.mark.parametrize("chunk", [1 << 16, 12, 1])
def test_sorted_as_in_plain_python(monkeypatch, chunk):
    # Small chunks: many of them, and graphs that are larger than one and need wide keys.
    monkeypatch.setattr(pack, "CHUNK_NODES", chunk)
    args = random_graphs([5, 1, 9, 20, 3, 3], [12, 2, 0, 60, 4, 1])
    out = sort_edges(*args)
    order, source, perm = in_plain_python(*args)
    assert out.order is not None
    assert out.order.tolist() == order
    assert out.source.tolist() == source
    assert out.transpose.tolist() == perm
    ptr = offsets(args[1])
    shift = torch.repeat_interleave(ptr[:-1], args[2])[:, None]
    everywhere = args[0] + shift
    assert torch.equal(out.out_degree, torch.bincount(everywhere[:, 0], minlength=int(ptr[-1])))
    assert torch.equal(out.in_degree, torch.bincount(everywhere[:, 1], minlength=int(ptr[-1])))


def test_large_graphs_keep_their_numbers():
    n = 70_000  # More nodes than 16 bits count, more edges too.
    args = random_graphs([n, 40_000], [90_000, 50_000])
    out = sort_edges(*args)
    order, source, perm = in_plain_python(*args)
    assert out.source.dtype == out.transpose.dtype == torch.int32
    assert out.source.tolist() == source
    assert out.transpose.tolist() == perm
    assert out.order is not None
    assert out.order.tolist() == order


def test_sorted_edges_stay_where_they_are():
    edges = torch.tensor([[1, 0], [2, 0], [0, 1], [0, 2]])
    out = sort_edges(edges, torch.tensor([3]), torch.tensor([4]))
    assert out.order is None
    assert out.source.dtype == torch.int16


def test_undirected_is_found_graph_by_graph():
    both = to_undirected(torch.tensor([[0, 1, 2], [1, 2, 2]])).T
    one_way = torch.tensor([[0, 1], [1, 0], [0, 2]])
    # Every edge has its reverse, but not as often.
    uneven = torch.tensor([[0, 1], [0, 1], [1, 0]])
    twice = torch.tensor([[0, 1], [0, 1], [1, 0], [1, 0]])
    graphs = [both, one_way, both[:0], uneven, twice]
    sizes = torch.tensor([len(graph) for graph in graphs])
    out = sort_edges(torch.cat(graphs), torch.full((5,), 3), sizes)
    assert out.undirected.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize(("edge", "words"), [((0, 3), "0 -> 3"), ((-1, 0), "-1 -> 0")])
def test_edge_to_a_node_that_is_not_there(monkeypatch, edge, words):
    monkeypatch.setattr(pack, "CHUNK_NODES", 3)
    edges = torch.tensor([[0, 1], [1, 0], list(edge)])
    with pytest.raises(ValueError, match=rf"dataset\[2\]: edge {words} .* must be in \[0, 3\)"):
        sort_edges(edges, torch.tensor([3, 3, 3]), torch.tensor([1, 1, 1]))
