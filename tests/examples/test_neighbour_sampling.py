"""Layers on sampled neighbourhoods: with all neighbours they are the whole graph's."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import BatchNorm1d, Module

from fognn.nn import FOG, SAGEConv, WithFOG

FILE = Path(__file__).parents[2] / "examples" / "neighbour_sampling.py"
_spec = importlib.util.spec_from_file_location("neighbour_sampling", FILE)
assert _spec is not None
assert _spec.loader is not None
example = sys.modules["neighbour_sampling"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)

# A path with a fork, a self loop, a double edge and a node (6) that nobody of 0 and 1 sees.
EDGES = torch.tensor([[2, 3, 3, 4, 5, 2, 1, 6, 4, 0], [0, 0, 1, 2, 3, 2, 4, 5, 1, 6]])


def hand_made() -> object:
    """The two hops around nodes 0 and 1, worked out by hand."""
    node = torch.tensor([0, 1, 2, 3, 4, 5])  # seeds 0, 1; then 2, 3, 4; then 5
    # 2, 3 -> 0; 3, 4 -> 1 | 4, 2 -> 2; 5 -> 3; 1 -> 4
    source = torch.tensor([2, 3, 3, 4, 4, 2, 5, 1])
    target = torch.tensor([0, 0, 1, 1, 2, 2, 3, 4])
    ones = torch.ones(8, dtype=torch.float64)
    return example.Blocks(node, torch.stack([source, target]), ones, [2, 5, 6], [4, 8])


def network(name: str, layers: int, classes: int = 3) -> Module:
    """In double precision, with norms as after some training."""
    torch.manual_seed(0)
    if name == "sage-max+fog":  # the example has the mean
        net = example.SampledNet("fog", 4, 8, classes, layers)
        for i in range(layers):
            net.convs[i] = WithFOG(SAGEConv(8, 5), FOG(8, 3, 3, 2))
    else:
        net = example.SampledNet(name, 4, 8, classes, layers)
    for norm in net.modules():
        if isinstance(norm, BatchNorm1d):
            torch.nn.init.normal_(norm.running_mean)
            torch.nn.init.uniform_(norm.running_var, 0.5, 2.0)
            torch.nn.init.normal_(norm.weight)
            torch.nn.init.normal_(norm.bias, mean=1.0)  # most units are above zero
    return net.double()


def assert_equal_with_gradients(net: Module, x: Tensor, edge_index: Tensor, blocks) -> None:
    """Answers at the seeds, and their gradients by parameters and by all features."""
    seeds = blocks.node[: blocks.nodes[0]]
    leaves = [x, *net.parameters()]
    out, expected = net(x[blocks.node], blocks), net(x, edge_index)[seeds]
    close = {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(out, expected, **close)
    direction = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    for got, wanted in zip(
        torch.autograd.grad(out, leaves, direction),
        torch.autograd.grad(expected, leaves, direction),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted, **close)


ALL = [*example.NETWORKS, "sage-max+fog"]


@pytest.mark.parametrize("name", ALL)
def test_hand_made_blocks_equal_the_whole_graph(name: str) -> None:
    net = network(name, layers=2).eval()
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    assert_equal_with_gradients(net, x, EDGES, hand_made())
    # Without one edge of the last hop it is another answer: the test can see it.
    blocks = hand_made()
    shorter = blocks._replace(edge_index=blocks.edge_index[:, :7], edges=[4, 7])
    assert not torch.allclose(net(x[blocks.node], shorter), net(x, EDGES)[:2])


@pytest.mark.parametrize("name", ALL)
def test_plain_edges_between_sources_and_targets(name: str) -> None:
    """A user's own loop: a plain edge_index, and the pair of features."""
    net = network(name, layers=2).eval()
    x = torch.randn(7, 4, dtype=torch.float64)
    blocks = hand_made()
    h = net.encoder(x[blocks.node])
    for conv, norm, hop in zip(net.convs, net.norms, (1, 0), strict=True):
        target = h[: blocks.nodes[hop]]
        out = conv((h, target), blocks.edge_index[:, : blocks.edges[hop]])
        h = target + norm(out).relu()
    torch.testing.assert_close(net.head(h), net(x, EDGES)[:2], rtol=1e-9, atol=1e-9)


def test_the_sampler_finds_the_hand_made_blocks() -> None:
    blocks = example.PlainSampler(EDGES, 7, [-1, -1], seed=0).sample(torch.tensor([0, 1]))
    expected = hand_made()
    assert blocks.nodes == expected.nodes
    assert blocks.edges == expected.edges
    assert torch.equal(blocks.node, expected.node)
    assert torch.equal(blocks.weight, torch.ones(8))
    order = (blocks.edge_index[1] * 10 + blocks.edge_index[0]).sort().values
    wanted = (expected.edge_index[1] * 10 + expected.edge_index[0]).sort().values
    assert torch.equal(order, wanted)


@pytest.mark.parametrize("name", ALL)
@given(graph=graphs(min_nodes=2), layers=st.integers(1, 3), data=st.data())
def test_all_neighbours_equal_the_whole_graph(
    name: str, graph: Graph, layers: int, data: st.DataObject
) -> None:
    count = graph.num_sources
    seeds = data.draw(st.permutations(range(count)))[: data.draw(st.integers(1, count))]
    sampler = example.PlainSampler(graph.edge_index, count, [-1] * layers, graph.seed)
    x = graph.randn(count, 4).requires_grad_()
    blocks = sampler.sample(torch.tensor(seeds))
    assert_equal_with_gradients(network(name, layers).eval(), x, graph.edge_index, blocks)


@pytest.mark.parametrize("name", ALL)
def test_training_norms_agree_where_every_node_is_a_seed(name: str) -> None:
    """FOG's first norm then sees every node twice, which changes neither mean nor variance."""
    net = network(name, layers=2).train()
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    blocks = example.PlainSampler(EDGES, 7, [-1, -1], seed=0).sample(torch.randperm(7))
    assert_equal_with_gradients(net, x, EDGES, blocks)


def test_fan_out() -> None:
    data = example.generated_graph(500, 12, classes=5, channels=8, seed=0)
    sampler = example.PlainSampler(data.edge_index, 500, [4, 3], seed=0)
    seeds = torch.arange(0, 500, 10)
    blocks = sampler.sample(seeds)
    assert torch.equal(blocks.node[:50], seeds)
    assert blocks.node.unique().numel() == blocks.node.numel() == blocks.nodes[2]
    assert blocks.nodes[0] == 50 < blocks.nodes[1] < blocks.nodes[2]
    degree = torch.bincount(blocks.edge_index[1], minlength=blocks.nodes[2])
    assert degree.tolist() == (
        [4] * 50 + [3] * (blocks.nodes[1] - 50) + [0] * (blocks.nodes[2] - blocks.nodes[1])
    )
    assert torch.equal(blocks.weight.unique(), torch.tensor([12 / 4, 12 / 3]))
    # Every sampled edge is one of the graph, none taken twice as often as it is there.
    sampled = blocks.node[blocks.edge_index]
    there = torch.bincount(data.edge_index[0] * 500 + data.edge_index[1], minlength=250_000)
    taken = torch.bincount(sampled[0] * 500 + sampled[1], minlength=250_000)
    assert bool((taken <= there).all())
    net = example.SampledNet("gcn+fog", 8, 16, 5, layers=2)
    assert net(data.x[blocks.node], blocks).shape == (50, 5)
    assert not torch.equal(sampler.sample(seeds).edge_index, blocks.edge_index)


def test_weighted_sums_are_right_on_average() -> None:
    edge_index = torch.tensor([[1, 2, 3, 4, 5, 5], [0, 0, 0, 0, 0, 1]])
    sampler = example.PlainSampler(edge_index, 6, [2], seed=0)
    total, rounds = torch.zeros(6), 3000
    for _ in range(rounds):
        blocks = sampler.sample(torch.tensor([0, 1]))
        row = blocks.adj_t(0, torch.float32).to_dense()[0]
        total[blocks.node] += row
    # Each of five neighbours is there in two cases of five, with a weight of 5/2: 1 on average.
    torch.testing.assert_close(
        total / rounds, torch.tensor([0.0, 1, 1, 1, 1, 1]), atol=0.1, rtol=0.0
    )


def test_blocks_out_of_order_are_refused() -> None:
    edge_index = torch.tensor([[1, 2], [1, 0]])
    with pytest.raises(ValueError, match="edge_index must be sorted by target"):
        example.blocks_of(torch.arange(3), edge_index, 1, 1, torch.ones(3))


@pytest.mark.parametrize("name", example.NETWORKS)
def test_training_on_samples_learns(name: str) -> None:
    torch.manual_seed(0)
    data = example.generated_graph(600, 10, classes=3, channels=6, seed=0)
    sampler = example.PlainSampler(data.edge_index, 600, [5, 3], seed=0)
    train, test = (mask.nonzero().flatten() for mask in (data.train, ~data.train))
    net = example.SampledNet(name, 6, 16, 3, layers=2)
    adam = torch.optim.Adam(net.parameters(), 0.01)
    losses = [example.train_epoch(net, adam, data, sampler.batches(train, 60)) for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
    assert example.accuracy(net, data, test) > 0.6  # a third by chance
