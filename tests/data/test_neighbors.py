"""Loaders of one graph: the whole of it, and sampled neighbourhoods."""

from itertools import islice

import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from fognn.data import FullGraphLoader, NeighborLoader, PackedGraph
from fognn.nn import FOG, GATConv, GatedGCNConv, GCNConv, GINConv, SAGEConv


def random_graph(nodes: int = 200, edges: int = 2000, seed: int = 0) -> Data:
    """Directed, with double edges and self loops; the last ten nodes have no edges."""
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(nodes, 4, generator=generator),
        edge_index=torch.randint(nodes - 10, (2, edges), generator=generator),
        edge_attr=torch.arange(edges),
        y=torch.arange(nodes),
    )


def mask_of(nodes: int, *chosen: int) -> torch.Tensor:
    return torch.isin(torch.arange(nodes), torch.tensor(chosen))


def test_the_whole_graph() -> None:
    data = random_graph()
    graph = PackedGraph(data)
    train, val = mask_of(200, 3, 5), mask_of(200, 7)
    loader, other = FullGraphLoader(graph, train), FullGraphLoader(graph, val)
    assert len(loader) == 1
    (batch,), (again,) = list(loader), list(other)
    assert torch.equal(batch.mask, train)
    assert torch.equal(again.mask, val)
    assert "mask" not in graph.batch
    # The adjacency is prepared once.
    assert batch.edge_index is again.edge_index
    assert isinstance(batch.edge_index, EdgeIndex)
    assert batch.edge_index.is_sorted_by_col
    assert batch.edge_index._indptr is not None
    assert batch.edge_index._T_indptr is not None
    batch.edge_index.validate()
    # Edge attributes are sorted with the edges.
    assert torch.equal(data.edge_index[:, batch.edge_attr], batch.edge_index.as_tensor())
    assert torch.equal(batch.x, data.x)
    assert torch.equal(batch.y, data.y)
    assert batch.num_graphs == 1
    loader.set_epoch(3)
    assert torch.equal(next(iter(loader)).mask, train)


def test_a_neighbourhood() -> None:
    data = random_graph()
    loader = NeighborLoader(PackedGraph(data), data.y % 3 == 0, (4, 3), 16, shuffle=True)
    assert len(loader) == 5
    in_degree = torch.bincount(data.edge_index[1], minlength=200)
    seeds = []
    for batch in loader:
        size = int(batch.mask.sum())
        assert batch.mask[:size].all()
        seeds += batch.n_id[:size].tolist()
        assert batch.n_id.unique().numel() == batch.num_nodes
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert torch.equal(batch.y, batch.n_id)
        # Each edge is one of the graph, and none is taken twice.
        edges = batch.edge_index.as_tensor()
        assert torch.equal(data.edge_index[:, batch.edge_attr], batch.n_id[edges])
        assert batch.edge_attr.unique().numel() == batch.edge_attr.numel()
        batch.edge_index.validate()
        # As many edges as allowed at a seed, and as many or none at the others.
        got = torch.bincount(edges[1], minlength=batch.num_nodes)
        full = in_degree[batch.n_id]
        assert torch.equal(got[:size], full[:size].clamp(max=4))
        rest = got[size:]
        assert ((rest == full[size:].clamp(max=3)) | (rest == 0)).all()
        assert rest.any()
        # Nothing that no seed needs.
        reached = torch.zeros(batch.num_nodes, dtype=torch.bool)
        reached[:size] = True
        for _ in range(2):
            reached[edges[0][reached[edges[1]]]] = True
        assert reached.all()
    assert sorted(seeds) == list(range(0, 200, 3))


def content(batch) -> tuple:
    return batch.n_id.tolist(), batch.edge_index.as_tensor().tolist(), batch.edge_attr.tolist()


def test_a_sample_depends_on_seed_epoch_and_batch_only() -> None:
    data = random_graph()
    graph = PackedGraph(data)

    def loader(seed: int = 0, epoch: int = 0, **options) -> NeighborLoader:
        options = {"shuffle": True, **options}
        found = NeighborLoader(graph, data.y < 100, (3, 2), 10, seed=seed, **options)
        found.set_epoch(epoch)
        return found

    first = [content(batch) for batch in loader()]
    assert [content(batch) for batch in loader()] == first
    # Resumed after three batches, as the training loop does.
    assert [content(batch) for batch in islice(loader(), 3, None)] == first[3:]
    for other in (loader(seed=1), loader(epoch=1)):
        assert content(next(iter(other))) != first[0]
    # Of validation and test, all epochs are the same.
    fixed = loader(shuffle=False)
    before = [content(batch) for batch in fixed]
    fixed.set_epoch(7)
    assert [content(batch) for batch in fixed] == before
    assert [node for nodes, _, _ in before for node in nodes[:10]] == list(range(100))
    # With the same seeds, two batches have other neighbours.
    sampler = loader()
    seeds = torch.arange(20)
    samples = {
        tuple(sampler.sample(seeds, key)[2].tolist())
        for key in [(0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 1, 0, 0), (1, 0, 0, 0)]
    }
    assert len(samples) == 5


def test_ranks_share_the_seeds() -> None:
    data = random_graph()
    graph = PackedGraph(data)
    parts = [
        NeighborLoader(graph, data.y < 100, (3,), 10, True, rank=rank, world_size=2)
        for rank in (0, 1)
    ]
    assert [len(part) for part in parts] == [5, 5]
    seeds = [batch.n_id[batch.mask] for part in parts for batch in part]
    assert torch.equal(torch.cat(seeds).sort().values, torch.arange(100))


@pytest.mark.parametrize("k", [1, 3, 7])
def test_edges_are_sampled_uniformly(k: int) -> None:
    """Each edge, and each pair of edges, as often as any other: a chi-square statistic."""
    degree, rounds = 8, 4000
    edge_index = torch.stack([torch.arange(1, degree + 1), torch.zeros(degree, dtype=torch.long)])
    data = Data(x=torch.ones(degree + 1, 1), edge_index=edge_index)
    loader = NeighborLoader(PackedGraph(data), torch.ones(degree + 1) > 0, (k,), 1)
    one = torch.zeros(degree)
    two = torch.zeros(degree, degree)
    for number in range(rounds):
        edges = loader.sample(torch.tensor([0]), (0, 0, number, 0))[2]
        assert edges.unique().numel() == k
        one[edges] += 1
        two[edges[:, None], edges] += 1
    expected = rounds * k / degree
    variance = expected * (1 - k / degree)
    # About 7 on average, above 24.3 in one case of a thousand.
    assert float(((one - expected) ** 2 / variance).sum() * (degree - 1) / degree) < 24.3
    if k > 1:
        pairs = two[torch.triu(torch.ones_like(two), 1).bool()]
        share = k * (k - 1) / (degree * (degree - 1))
        spread = (rounds * share * (1 - share)) ** 0.5
        assert float((pairs - rounds * share).abs().max()) < 4 * spread


class Layers(torch.nn.Module):
    def __init__(self, make, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(make(4) for _ in range(count))

    def forward(self, x, edge_index, e):
        for layer in self.layers:
            if isinstance(layer, GatedGCNConv):
                out, e = layer(x, edge_index, e)
            else:
                out = layer(x, edge_index)
            x = x + out
        return x


HOSTS = {
    "fog": lambda c: FOG(c, c, 3, 2),
    "gcn": lambda c: GCNConv(c, c, norm="mean"),
    "gin": lambda c: GINConv(c, c),
    "sage": lambda c: SAGEConv(c, c),
    "gat": lambda c: GATConv(c, c // 2, heads=2),
    "gatedgcn": lambda c: GatedGCNConv(c, c),
}


@pytest.mark.parametrize("host", HOSTS)
@given(graph=graphs(min_nodes=2), layers=st.integers(1, 3), limit=st.sampled_from([-1, 24]))
def test_all_neighbours_equal_the_whole_graph(
    host: str, graph: Graph, layers: int, limit: int
) -> None:
    torch.manual_seed(0)
    net = Layers(HOSTS[host], layers).double().eval()
    nodes = graph.num_sources
    data = Data(
        x=graph.randn(nodes, 4),
        edge_index=graph.edge_index,
        edge_attr=graph.randn(graph.num_edges, 4),
        y=torch.arange(nodes),
    )
    packed = PackedGraph(data)
    whole = net(packed.batch.x, packed.batch.edge_index, packed.batch.edge_attr)
    loader = NeighborLoader(packed, torch.arange(nodes) % 2 == 0, [limit] * layers, 2)
    for batch in loader:
        out = net(batch.x, batch.edge_index, batch.edge_attr)[batch.mask]
        torch.testing.assert_close(out, whole[batch.n_id[batch.mask]], rtol=1e-9, atol=1e-9)


def test_isolated_nodes_and_no_edges() -> None:
    none = torch.zeros(2, 0, dtype=torch.long)
    graph = PackedGraph(Data(x=torch.ones(4, 2), edge_index=none, y=torch.arange(4)))
    (batch,) = NeighborLoader(graph, torch.ones(4, dtype=torch.bool), (2, 2), 10)
    assert batch.num_edges == 0
    assert batch.n_id.tolist() == [0, 1, 2, 3]
    (batch,) = FullGraphLoader(graph, mask_of(4, 1))
    assert batch.num_edges == 0


@pytest.mark.parametrize("neighbors", [(), (0,), (3, -2), (2.5,), (True,)])
def test_wrong_neighbors(neighbors: tuple) -> None:
    graph = PackedGraph(random_graph())
    with pytest.raises(ValueError, match="neighbors must be positive ints"):
        NeighborLoader(graph, mask_of(200, 1), neighbors, 4)


def test_wrong_masks() -> None:
    graph = PackedGraph(random_graph())
    for make in (FullGraphLoader, lambda g, m: NeighborLoader(g, m, (2,), 4)):
        with pytest.raises(ValueError, match=r"mask must be bool of shape \[200\] .*\[3\]"):
            make(graph, torch.ones(3, dtype=torch.bool))
        with pytest.raises(ValueError, match=r"mask must be bool of shape .* select a node"):
            make(graph, mask_of(200))
    with pytest.raises(ValueError, match="batch_size must be an int of at least 1, got 0"):
        NeighborLoader(graph, mask_of(200, 1), (2,), 0)
