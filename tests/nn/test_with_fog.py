import pytest
import torch
import torch_geometric.nn as pyg
from torch.nn import Linear, Module, ReLU, Sequential
from torch_geometric import EdgeIndex

import fognn.nn as ours
from fognn.nn import FOG, WithFOG, fog_widths

C, NODES, EDGES = 8, 10, 30


def mlp(inputs: int, outputs: int) -> Module:
    return Sequential(Linear(inputs, outputs), ReLU(), Linear(outputs, outputs))


# Each of PyG's layers with what it is called with beside x and edge_index.
EDGE_ATTR = {"edge_attr": torch.randn(EDGES, 3)}
EDGE_WEIGHT = {"edge_weight": torch.rand(EDGES)}
CONVS = {
    "CGConv": (lambda: pyg.CGConv(C, dim=3), EDGE_ATTR),
    "ChebConv": (lambda: pyg.ChebConv(C, 6, K=2), EDGE_WEIGHT),
    "EGConv": (lambda: pyg.EGConv(C, 8, num_heads=4), {}),
    "EdgeConv": (lambda: pyg.EdgeConv(mlp(2 * C, 6)), {}),
    "FAConv": (lambda: pyg.FAConv(C), {"x_0": torch.randn(NODES, C)}),
    "FiLMConv": (lambda: pyg.FiLMConv(C, 6), {}),
    "GATConv": (lambda: pyg.GATConv(C, 3, heads=2, edge_dim=3), EDGE_ATTR),
    "GCN2Conv": (lambda: pyg.GCN2Conv(C, alpha=0.1), {"x_0": torch.randn(NODES, C)}),
    "GCNConv": (lambda: pyg.GCNConv(C, 6), EDGE_WEIGHT),
    "GINConv": (lambda: pyg.GINConv(mlp(C, 6)), {}),
    "GINEConv": (lambda: pyg.GINEConv(mlp(C, 6), edge_dim=3), EDGE_ATTR),
    "GatedGraphConv": (lambda: pyg.GatedGraphConv(C, num_layers=2), EDGE_WEIGHT),
    "GraphConv": (lambda: pyg.GraphConv(C, 6), EDGE_WEIGHT),
    "NNConv": (lambda: pyg.NNConv(C, 6, mlp(3, 6 * C)), EDGE_ATTR),
    "PNAConv": (
        lambda: pyg.PNAConv(C, 6, ["mean", "max"], ["identity"], torch.ones(9).long(), edge_dim=3),
        EDGE_ATTR,
    ),
    "PointTransformerConv": (
        lambda: pyg.PointTransformerConv(C, 6),
        {"pos": torch.randn(NODES, 3)},
    ),
    "RGCNConv": (
        lambda: pyg.RGCNConv(C, 6, num_relations=2),
        {"edge_type": torch.arange(EDGES) % 2},
    ),
    "SAGEConv": (lambda: pyg.SAGEConv(C, 6), {}),
    "TAGConv": (lambda: pyg.TAGConv(C, 6), EDGE_WEIGHT),
    "TransformerConv": (lambda: pyg.TransformerConv(C, 3, heads=2, edge_dim=3), EDGE_ATTR),
}


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "GINConv", "SAGEConv", "PNAConv"])
def test_widths_from_out_channels_alone(name: str) -> None:
    make, extra = CONVS[name]
    both = WithFOG(make(), 8).eval()
    x, edge_index = torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))
    out = both(x=x, edge_index=edge_index, **extra)
    assert (both.fog.in_channels, both.fog.out_channels) == (C, 8)
    assert (both.fog.h1, both.fog.h2) == fog_widths(8)
    p = both.fog(x, edge_index, extra.get("edge_weight"))
    torch.testing.assert_close(out[:, :8], p)


def test_several_outputs() -> None:
    both = WithFOG(pyg.GATConv(C, 3, heads=2), FOG(C, 5, 3, 2))
    x, edge_index = torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))
    out, (edges, alpha) = both(x, edge_index, return_attention_weights=True)
    assert out.shape == (NODES, 11)
    assert alpha.shape == (edges.size(1), 2)
    gated = WithFOG(ours.GatedGCNConv(C, 6), FOG(C, 5, 3, 2))
    out, edge_attr = gated(x, edge_index, torch.randn(EDGES, C))
    assert out.shape == (NODES, 11)
    assert edge_attr.shape == (EDGES, C)


def test_edge_features_of_fog() -> None:
    torch.manual_seed(0)
    x, edge_index = torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))
    e = torch.randn(EDGES, 3)
    for conv, takes in ((pyg.GATConv(C, 6, edge_dim=3), True), (pyg.SAGEConv(C, 6), False)):
        both = WithFOG(conv, FOG(C, 5, 3, 2, edge_dim=3)).eval()
        q = conv(x, edge_index, edge_attr=e) if takes else conv(x, edge_index)
        expected = torch.cat([both.fog(x, edge_index, edge_attr=e), q], dim=1)
        torch.testing.assert_close(both(x, edge_index, edge_attr=e), expected)
        if takes:
            torch.testing.assert_close(both(x, edge_index, e), expected)
        with pytest.raises(ValueError, match="edge_attr must be given"):
            both(x, edge_index)


def test_bipartite_and_sorted_edges() -> None:
    torch.manual_seed(0)
    both = WithFOG(pyg.SAGEConv(C, 6), FOG(C, 5, 3, 2)).eval()
    x = (torch.randn(NODES, C), torch.randn(4, C))
    edge_index = torch.stack([torch.randint(0, NODES, (EDGES,)), torch.randint(0, 4, (EDGES,))])
    out = both(x, edge_index)
    assert out.shape == (4, 11)
    edges = EdgeIndex(edge_index, sparse_size=(NODES, 4)).sort_by("col")[0]
    torch.testing.assert_close(both(x, edges), out)


@pytest.mark.parametrize("name", CONVS)
def test_any_conv_of_pyg(name: str) -> None:
    torch.manual_seed(0)
    make, extra = CONVS[name]
    conv = make().eval()
    both = WithFOG(conv, FOG(C, 5, 3, 2)).eval()
    x, edge_index = torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))
    q = conv(x=x, edge_index=edge_index, **extra)
    out = both(x=x, edge_index=edge_index, **extra)
    p = both.fog(x, edge_index, extra.get("edge_weight"))
    torch.testing.assert_close(out, torch.cat([p, q], dim=1))
    # The positional call that a user of the layer makes.
    if "pos" not in extra and "x_0" not in extra:
        torch.testing.assert_close(both(x, edge_index, **extra), out)
    out.sum().backward()
    assert all(p.grad is not None for p in both.fog.parameters())
    both.reset_parameters()


def test_edge_weights_of_fog_have_a_switch() -> None:
    x, edge_index = torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))
    weight = torch.rand(EDGES)
    for conv in (pyg.GraphConv(C, 6), pyg.SAGEConv(C, 6)):  # the second takes none
        fog = FOG(C, 5, 3, 2).eval()
        weighted, plain = WithFOG(conv, fog), WithFOG(conv, fog, use_edge_weight=False)
        out = weighted.eval()(x, edge_index, edge_weight=weight)
        torch.testing.assert_close(out[:, :5], fog(x, edge_index, weight))
    out = plain.eval()(x, edge_index)
    torch.testing.assert_close(out[:, :5], fog(x, edge_index))
    graph_conv = WithFOG(pyg.GraphConv(C, 6), fog, use_edge_weight=False).eval()
    out = graph_conv(x, edge_index, edge_weight=weight)
    torch.testing.assert_close(out[:, :5], fog(x, edge_index))


@pytest.mark.parametrize("bipartite", [False, True])
def test_the_flow_of_the_layer(bipartite: bool) -> None:
    both = WithFOG(pyg.SimpleConv(flow="target_to_source"), FOG(C, 5, 3, 2)).eval()
    x, y = torch.randn(NODES, C), torch.randn(4, C)
    edge_index = torch.stack([torch.randint(0, NODES, (EDGES,)), torch.randint(0, 4, (EDGES,))])
    if bipartite:  # the sums are over targets, at each source
        out, p = both((x, y), edge_index), both.fog((y, x), edge_index.flip(0))
    else:
        out, p = both(x, edge_index), both.fog(x, edge_index.flip(0))
        edges = EdgeIndex(edge_index, sparse_size=(NODES, NODES)).sort_by("row")[0]
        torch.testing.assert_close(both(x, edges), out)
    torch.testing.assert_close(out[:, :5], p)


def test_the_width_of_a_layer_with_an_mlp() -> None:
    normed = torch.nn.Sequential(torch.nn.BatchNorm1d(C), mlp(C, 6))
    edges = pyg.GINEConv(pyg.MLP([C, 6, 6]), edge_dim=3)
    for conv in (pyg.GINConv(mlp(C, 6)), pyg.GINConv(normed), edges):
        both = WithFOG(conv, 8)
        assert both.fog.in_channels == C
        assert sum(p.numel() for p in both.parameters()) > 0
    assert WithFOG(pyg.SAGEConv((C, C), 6), 8).fog.in_channels == C
    assert WithFOG(pyg.EdgeConv(mlp(2 * C, 6)), 8).fog.in_channels == -1
    lazy = WithFOG(pyg.SAGEConv(-1, 6), 8)
    assert lazy(torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))).shape == (NODES, 14)
    assert lazy.fog.in_channels == C


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"WithFOG: out_channels .* got Linear"):
        WithFOG(pyg.GCNConv(C, 6), Linear(C, 6))
    with pytest.raises(ValueError, match=r"WithFOG: conv must be a layer.*GCNConv"):
        WithFOG(pyg.GCNConv, 32)
    with pytest.raises(ValueError, match="conv must take an argument 'x'"):
        WithFOG(Linear(C, 6), FOG(C, 5, 3, 2))
    with pytest.raises(ValueError, match="WithFOG: edge_index must be given"):
        WithFOG(pyg.GCNConv(C, 6), FOG(C, 5, 3, 2))(torch.randn(NODES, C))
