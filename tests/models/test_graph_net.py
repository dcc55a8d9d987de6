import copy
import pickle

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from fognn.models import TASKS, create_model, list_models

GRAPH_MODELS = [name for name in list_models() if not name.startswith("fewshot")]


def graph(task: str, seed: int, nodes: int = 9, edges: int = 24) -> Data:
    generator = torch.Generator().manual_seed(seed)
    kind = TASKS[task]
    if kind.node_tokens:
        x = torch.randint(0, kind.node_tokens, (nodes,), generator=generator)
    else:
        x = torch.randn(nodes, kind.node_channels, generator=generator)
    edge_attr = None
    if kind.edge_tokens:
        edge_attr = torch.randint(0, kind.edge_tokens, (edges,), generator=generator)
    elif kind.edge_channels:
        edge_attr = torch.randn(edges, kind.edge_channels, generator=generator)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    return Data(x=x, edge_index=edge_index, edge_attr=edge_attr, num_nodes=nodes)


def model(name: str, task: str, channels: int = 16, **settings: int):
    torch.manual_seed(0)
    return create_model(name, task, channels=channels, **settings)


def answer(net, data):
    batch = data.batch if isinstance(data, Batch) else None
    return net(data.x, data.edge_index, data.edge_attr, batch)


def works(name: str, task: str) -> bool:
    kind = TASKS[task]
    return "-e" not in name or bool(kind.edge_tokens or kind.edge_channels)


CASES = [(name, task) for name in GRAPH_MODELS for task in TASKS if works(name, task)]


@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_batch_is_its_graphs_one_by_one(name: str, task: str) -> None:
    net = model(name, task).eval()
    graphs = [graph(task, seed, nodes=5 + seed) for seed in range(3)]
    together = answer(net, Batch.from_data_list(graphs))
    apart = torch.cat([answer(net, data) for data in graphs])
    torch.testing.assert_close(together, apart)
    assert together.size(1) == TASKS[task].out_channels


@pytest.mark.parametrize(("name", "task"), CASES)
def test_permuting_nodes_and_edges(name: str, task: str) -> None:
    net, data = model(name, task).eval(), graph(task, 0)
    out = answer(net, data)
    nodes, edges = torch.randperm(9), torch.randperm(24)
    place = torch.empty_like(nodes)
    place[nodes] = torch.arange(9)
    edge_attr = None if data.edge_attr is None else data.edge_attr[edges]
    permuted = net(data.x[nodes], place[data.edge_index[:, edges]], edge_attr)
    order = {"node": nodes, "edge": edges, "graph": slice(None)}[TASKS[task].level]
    torch.testing.assert_close(permuted, out[order])


@pytest.mark.parametrize(("name", "task"), CASES)
def test_sorted_edges_give_the_same_and_every_weight_learns(name: str, task: str) -> None:
    net, data = model(name, task, channels=48), graph(task, 0)
    edges, perm = EdgeIndex(data.edge_index, sparse_size=(9, 9)).sort_by("col")
    edge_attr = None if data.edge_attr is None else data.edge_attr[perm]
    out = answer(net, data)
    given = out[perm] if TASKS[task].level == "edge" else out
    torch.testing.assert_close(net(data.x, edges.fill_cache_(), edge_attr), given)
    out.pow(2).sum().backward()
    idle = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    # A bias before a norm has no gradient, a last layer's edge features have no reader, and a
    # ReLU may be silent for one graph; whole matrices are not.
    assert not [n for n in idle if n.endswith("weight") and "norm" not in n and "lin_C" not in n
                and not n.startswith("head")], idle  # fmt: skip


@pytest.mark.parametrize("name", ["gcn+fog", "gatedgcn-e+fog", "gin+fog"])
def test_copies_give_the_same(name: str) -> None:
    net, data = model(name, "zinc").eval(), graph("zinc", 0)
    expected = answer(net, data)
    fresh = create_model(name, "zinc", channels=16).eval()
    fresh.load_state_dict(net.state_dict())
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), fresh):
        assert torch.equal(answer(twin, data), expected)
    net.reset_parameters()
    assert not torch.equal(answer(net, data), expected)


@pytest.mark.parametrize("name", GRAPH_MODELS)
def test_compile_without_a_graph_break(name: str) -> None:
    torch.compiler.reset()
    task = "tsp" if "-e" in name else "cluster"
    # The first and the last block: compilation takes seconds a block.
    net, data = model(name, task, layers=2), graph(task, 0)
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(answer(compiled, data), answer(net, data))


def test_edge_features_where_they_are_needed() -> None:
    data = graph("zinc", 0)
    with pytest.raises(ValueError, match="edge_attr must be given: this network uses edge feature"):
        model("gatedgcn-e", "zinc")(data.x, data.edge_index)
    with pytest.raises(ValueError, match="edge_attr must have one entry for each of 24 edges"):
        model("gatedgcn-e", "zinc")(data.x, data.edge_index, data.edge_attr[:-1])
    net = model("gatedgcn", "zinc").eval()  # which looks at none
    out = net(data.x, data.edge_index)
    assert torch.equal(net(data.x, data.edge_index, data.edge_attr), out)


def test_bad_input() -> None:
    net, data = model("gcn+fog", "zinc"), graph("zinc", 0)
    with pytest.raises(ValueError, match=r"x must hold tokens in 0\.\.27, got 28"):
        net(torch.full((9,), 28), data.edge_index)
    with pytest.raises(ValueError, match=r"edge_index: targets \(row 1\) must lie in 0\.\.8"):
        net(data.x, torch.tensor([[0], [9]]))
