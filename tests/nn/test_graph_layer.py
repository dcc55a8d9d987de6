"""The layers take part in PyG's explanations and heterogeneous networks, or raise."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch.nn import Linear, Module, ReLU, Sequential
from torch_geometric.explain import (
    AttentionExplainer,
    Explainer,
    GNNExplainer,
    GraphMaskExplainer,
)
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import to_hetero, to_hetero_with_bases

from fognn.models import Task, create_model
from fognn.nn import FOG, Block, GATConv, GatedGCNConv, GCNConv, GINConv, SAGEConv, WithFOG

C, NODES, EDGES = 6, 8, 24
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def graph() -> tuple[Tensor, Tensor, Tensor]:
    """Features, unsorted edges, and the mask of an explainer before its sigmoid."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NODES, C, dtype=torch.double, generator=generator)
    edge_index = torch.randint(0, NODES, (2, EDGES), generator=generator)
    return x, edge_index, torch.randn(EDGES, dtype=torch.double, generator=generator)


def twin_of(ours: Module) -> Module:
    """PyG's layer with the same weights."""
    if isinstance(ours, GCNConv):
        theirs: Module = pyg.GCNConv(C, 5, add_self_loops=False)
        theirs.lin.weight, theirs.bias = ours.lin.weight, ours.bias
    elif isinstance(ours, GATConv):
        theirs = pyg.GATConv(C, 3, heads=2, add_self_loops=False, bias=False)
        theirs.lin.weight = ours.lin.weight
        theirs.att_src.data = ours.att_src.data.unsqueeze(0)
        theirs.att_dst.data = ours.att_dst.data.unsqueeze(0)
    elif isinstance(ours, GINConv):
        mlp = Sequential(Linear(C, 5), copy.deepcopy(ours.norm), ReLU(), Linear(5, 5))
        theirs = pyg.GINConv(mlp)  # which draws the weights anew
        mlp[0].load_state_dict(ours.lin_V.state_dict())
        mlp[3].load_state_dict(ours.lin_U.state_dict())
    else:
        theirs = pyg.SAGEConv(C, 5, aggr=ours.aggr, project=ours.aggr == "max")
        theirs.lin_r.weight.data, theirs.lin_l.weight.data = ours.lin_U.weight.data.split(C, 1)
        theirs.lin_l.bias = ours.lin_U.bias
        if ours.lin_P is not None:
            theirs.lin.load_state_dict(ours.lin_P.state_dict())
    return theirs.double()


@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda: GCNConv(C, 5),
        lambda: GATConv(C, 3, heads=2),
        lambda: GINConv(C, 5),
        lambda: SAGEConv(C, 5),
        lambda: SAGEConv(C, 5, aggr="mean"),
    ],
    ids=["GCN", "GAT", "GIN", "SAGE-max", "SAGE-mean"],
)
def test_a_mask_does_what_it_does_to_pygs_layer(make, sigmoid: bool) -> None:
    torch.manual_seed(0)
    ours = make().double()
    x, edge_index, mask = graph()
    results = []
    for conv in (ours, twin_of(ours)):
        leaf = mask.clone().requires_grad_()
        plain = conv(x, edge_index)
        set_masks(conv, leaf, edge_index, apply_sigmoid=sigmoid)
        out = conv(x, edge_index)
        (grad,) = torch.autograd.grad(out.sin().sum(), leaf)
        clear_masks(conv)
        assert not torch.allclose(out, plain)
        torch.testing.assert_close(conv(x, edge_index), plain)
        results.append((plain, out, grad))
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_mask_is_an_edge_weight_of_fog(weighted: bool) -> None:
    torch.manual_seed(0)
    x, edge_index, mask = graph()
    e, weight = torch.randn(EDGES, 3).double(), torch.rand(EDGES).double()
    fog = FOG(C, 5, edge_dim=3).double()
    factor = mask.sigmoid() * weight if weighted else mask.sigmoid()
    expected = fog(x, edge_index, factor, e)
    set_masks(fog, mask, edge_index)
    out = fog(x, edge_index, weight if weighted else None, e)
    torch.testing.assert_close(out, expected, **CLOSE)


@pytest.mark.parametrize("gate", ["before", "after"])
def test_a_mask_of_gated_gcn_equals_a_loop(gate: str) -> None:
    torch.manual_seed(0)
    conv = GatedGCNConv(C, gate=gate).double().eval()
    x, edge_index, mask = graph()
    e = torch.randn(EDGES, C).double()
    top, bottom = torch.zeros(NODES, C).double(), torch.full((NODES, C), 1e-6).double()
    for i, (u, v) in enumerate(edge_index.t().tolist()):
        hat = conv.lin_A(x[v]) + conv.lin_B(x[u]) + conv.lin_C(e[i])
        sigma = hat if gate == "before" else conv.norm_e(hat.unsqueeze(0))[0].relu()
        top[v] += mask[i].sigmoid() * sigma.sigmoid() * conv.lin_V(x[u])
        bottom[v] += sigma.sigmoid()
    plain, new = conv(x, edge_index, e)
    set_masks(conv, mask, edge_index)
    out, new_too = conv(x, edge_index, e)
    torch.testing.assert_close(out, conv.lin_U(x) + top / bottom, **CLOSE)
    torch.testing.assert_close(new_too, new)
    assert not torch.allclose(out, plain)


class Net(Module):
    def __init__(self, make=lambda i: pyg.GCNConv(i, 4)) -> None:
        super().__init__()
        self.conv1 = WithFOG(make(C), 16)
        self.conv2 = WithFOG(make(20), 16)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def explainer(net: Module, algorithm, **kwargs) -> Explainer:
    config = {"mode": "regression", "task_level": "node", "return_type": "raw"}
    options = {"edge_mask_type": "object", **kwargs}
    return Explainer(net, algorithm, explanation_type="model", model_config=config, **options)


def test_with_every_edge_masked_both_halves_are_without_neighbours() -> None:
    torch.manual_seed(0)
    net = WithFOG(GCNConv(C, 4), 4).double().eval()
    x, edge_index, _ = graph()
    set_masks(net, torch.zeros(EDGES).double(), edge_index, apply_sigmoid=False)
    nothing = edge_index[:, :0]
    out = net(x, edge_index)
    clear_masks(net)
    torch.testing.assert_close(out, net(x, nothing), **CLOSE)


def test_gnn_explainer_finds_the_edge_that_fog_uses() -> None:
    torch.manual_seed(0)
    net = Net().double().eval()
    with torch.no_grad():  # the output is FOG's half alone
        for conv in (net.conv1, net.conv2):
            conv.conv.lin.weight.zero_()
    x, _, _ = graph()
    edge_index = torch.tensor([[5, 4, 0], [6, 1, 2]])  # 4 -> 1 is the only edge to node 1
    explain = explainer(net, GNNExplainer(epochs=30))
    mask = explain(x, edge_index, index=1).edge_mask
    assert mask[1] > 0
    assert mask[0] == mask[2] == 0  # no gradient: these do not reach node 1
    assert all(module.explain is None for module in (net.conv1, net.conv1.fog, net.conv1.conv))
    full = explain.get_masked_prediction(x, edge_index, edge_mask=torch.ones(3).double())
    none = explain.get_masked_prediction(x, edge_index, edge_mask=torch.zeros(3).double())
    assert (full - none)[1, :16].abs().max() > 1e-3
    torch.testing.assert_close(full, net(x, edge_index))


@pytest.mark.parametrize("name", ["gcn+fog", "gatedgcn-e+fog"])
def test_a_network_by_name_takes_a_mask_in_the_users_order(name: str) -> None:
    torch.manual_seed(0)
    task = Task("node", 2, node_channels=C, edge_channels=3)
    net = create_model(name, task, channels=8, layers=2).double().eval()
    x, edge_index, mask = graph()
    e = torch.randn(EDGES, 3).double()
    order = torch.argsort(edge_index[1], stable=True)
    results = []
    for perm in (torch.arange(EDGES), order, order.flip(0)):
        edges = edge_index[:, perm]
        set_masks(net, mask[perm], edges)
        results.append(net(x, edges, e[perm]))
        clear_masks(net)
    torch.testing.assert_close(results[1], results[0], **CLOSE)
    torch.testing.assert_close(results[2], results[0], **CLOSE)
    assert not torch.allclose(results[0], net(x, edge_index, e))


def test_self_loops_that_the_network_adds_keep_their_weight() -> None:
    torch.manual_seed(0)
    fog = FOG(C, 5).double()
    x, edge_index, mask = graph()
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    mask = mask[: edge_index.size(1)]
    loops = torch.arange(NODES).repeat(2, 1)
    both = torch.cat([edge_index, loops], dim=1)
    expected = fog(x, both, torch.cat([mask.sigmoid(), torch.ones(NODES).double()]))
    set_masks(fog, mask, edge_index)
    torch.testing.assert_close(fog(x, both), expected, **CLOSE)
    with pytest.raises(ValueError, match=r"FOG: the edge mask .* each of 3 edges, got \d+"):
        fog(x, edge_index[:, :3])


def test_explainers_that_read_messages_raise() -> None:
    x, edge_index, _ = graph()
    net = Net(lambda i: pyg.GATConv(i, 4)).eval()
    options = {"node_mask_type": "object"}
    with pytest.raises(AttributeError, match="in_channels"):
        explainer(net, GraphMaskExplainer(2, epochs=1), **options)(x.float(), edge_index)
    with pytest.raises(NotImplementedError, match="FOG computes no messages"):
        explainer(FOG(C, 4), GraphMaskExplainer(1, epochs=1), **options)(x.float(), edge_index)
    net = Net(lambda i: pyg.GATConv(i, 4)).eval()
    with pytest.raises(NotImplementedError, match="computes no messages"):
        explainer(net, AttentionExplainer())(x.float(), edge_index)
    for conv in (net.conv1, net.conv2):
        conv.explain = conv.fog.explain = False
    explanation = explainer(net, AttentionExplainer())(x.float(), edge_index)
    assert explanation.edge_mask.shape == (EDGES,)


METADATA = (
    ["a", "b"],
    [("a", "to", "b"), ("b", "to", "a"), ("a", "self", "a")],
)


def hetero_graph() -> tuple[dict, dict]:
    generator = torch.Generator().manual_seed(0)
    size = {"a": 5, "b": 7}
    x = {k: torch.randn(n, C, dtype=torch.double, generator=generator) for k, n in size.items()}
    edges = {}
    for key in METADATA[1]:
        ends = [torch.randint(0, size[k], (12,), generator=generator) for k in (key[0], key[2])]
        edges[key] = torch.stack(ends)
    return x, edges


def by_hand(layer, x: dict, edges: dict) -> dict:
    """Sums the layer of each edge type over the edge types that end in a node type."""
    out: dict = {}
    for (a, name, b), edge_index in edges.items():
        conv = layer[f"{a}__{name}__{b}"]
        value = conv(x[a] if a == b else (x[a], x[b]), edge_index)
        out[b] = out[b] + value if b in out else value
    return out


@pytest.mark.parametrize(
    "make",
    [
        lambda i: WithFOG(pyg.SAGEConv(i, 4), 4),
        lambda i: WithFOG(SAGEConv(i, 4), 4),
        lambda i: WithFOG(GINConv(i, 4), 4),
        lambda i: WithFOG(GATConv(i, 4), 4),
        lambda i: WithFOG(GCNConv(i, 4, norm="mean"), 4),
        lambda i: FOG(i, 8),
        lambda i: GINConv(i, 8),
        lambda i: Block(WithFOG(SAGEConv(i, 4), 4), 8, residual=False),
    ],
    ids=["PyG+FOG", "SAGE+FOG", "GIN+FOG", "GAT+FOG", "GCN+FOG", "FOG", "GIN", "Block"],
)
def test_to_hetero_equals_each_edge_type_by_hand(make) -> None:
    class TwoLayers(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = make(C), make(8)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv2(self.conv1(x, edge_index).relu(), edge_index)

    torch.manual_seed(0)
    net = to_hetero(TwoLayers(), METADATA).double()
    x, edges = hetero_graph()
    out = net(x, edges)
    hidden = {key: value.relu() for key, value in by_hand(net.conv1, x, edges).items()}
    expected = by_hand(net.conv2, hidden, edges)
    assert out.keys() == expected.keys() == {"a", "b"}
    for key in out:
        torch.testing.assert_close(out[key], expected[key], **CLOSE)


def test_to_hetero_raises_for_what_is_not_defined() -> None:
    with pytest.raises(ValueError, match="add_self_loops"):
        to_hetero(Net(lambda i: pyg.GATConv(i, 4)), METADATA)
    x, edges = hetero_graph()
    net = to_hetero(Net(lambda i: GCNConv(i, 4)), METADATA).double()
    with pytest.raises(ValueError, match="GCNConv: x must be one tensor with norm='sym'"):
        net(x, edges)
    with pytest.raises(NotImplementedError, match="computes no messages"):
        to_hetero_with_bases(Net(lambda i: pyg.SAGEConv(i, 4)), METADATA, num_bases=2)
    net = create_model("gcn+fog", Task("node", 2, node_channels=C), channels=8, layers=2)
    with pytest.raises((ValueError, TypeError), match=r"edge_index|x must|Proxy"):
        to_hetero(net, METADATA)
