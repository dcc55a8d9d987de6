import pytest
import torch
import torch_geometric.nn as pyg
from graph_strategies import Graph, graphs
from hypothesis import given

from fognn.nn import GCNConv


def twins(in_channels: int, out_channels: int, norm: str):
    torch.manual_seed(0)
    ours = GCNConv(in_channels, out_channels, norm).double()
    torch.nn.init.normal_(ours.bias)
    if norm == "mean":
        theirs = pyg.SAGEConv(in_channels, out_channels, aggr="mean", root_weight=False).double()
        theirs.lin_l.load_state_dict({"weight": ours.lin.weight, "bias": ours.bias})
    else:
        theirs = pyg.GCNConv(
            in_channels, out_channels, add_self_loops=False, normalize=norm == "sym"
        ).double()
        theirs.load_state_dict({"lin.weight": ours.lin.weight, "bias": ours.bias})
    return ours, theirs


@pytest.mark.parametrize("norm", ["mean", "sym", "none"])
@pytest.mark.parametrize("widths", [(4, 3), (3, 5)])
@given(graph=graphs())
def test_equals_pyg(norm: str, widths: tuple[int, int], graph: Graph) -> None:
    ours, theirs = twins(*widths, norm)
    grads = []
    for conv in (ours, theirs):
        x = graph.randn(graph.num_sources, widths[0]).requires_grad_()
        out = conv(x, graph.edge_index)
        grads.append((out, *torch.autograd.grad(out.sin().sum(), (x, next(conv.parameters())))))
    if norm == "mean":  # PyG's order of parameters is another one
        grads = [g[:2] for g in grads]
    for got, wanted in zip(*grads, strict=True):
        if got.shape == wanted.shape:
            torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("norm", ["sym", "none"])
@given(graph=graphs())
def test_edge_weights_equal_pyg(norm: str, graph: Graph) -> None:
    ours, theirs = twins(4, 3, norm)
    x = graph.randn(graph.num_sources, 4)
    weight = graph.randn(graph.num_edges).abs() + 0.1
    torch.testing.assert_close(
        ours(x, graph.edge_index, weight), theirs(x, graph.edge_index, weight)
    )


def test_weighted_mean() -> None:
    conv = GCNConv(1, 1, norm="mean")
    torch.nn.init.ones_(conv.lin.weight)
    x = torch.tensor([[1.0], [4.0], [0.0]])
    edge_index, weight = torch.tensor([[0, 1], [2, 2]]), torch.tensor([3.0, 1.0])
    torch.testing.assert_close(conv(x, edge_index, weight), torch.tensor([[0.0], [0.0], [1.75]]))


def test_isolated_nodes_get_the_bias() -> None:
    for norm in ("mean", "sym", "none"):
        conv = GCNConv(4, 3, norm)
        torch.nn.init.normal_(conv.bias)
        out = conv(torch.randn(5, 4), torch.empty(2, 0, dtype=torch.long))
        assert torch.equal(out, conv.bias.expand(5, 3))


def test_bipartite() -> None:
    ours, theirs = twins(4, 3, "mean")
    x = (torch.randn(5, 4).double(), torch.randn(2, 4).double())
    edge_index = torch.tensor([[0, 1, 4], [0, 1, 1]])
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))
    with pytest.raises(ValueError, match="x must be one tensor with norm='sym', got a pair"):
        GCNConv(4, 3, "sym").double()(x, edge_index)


def test_repr_lazy_and_bad_input() -> None:
    assert str(GCNConv(4, 3)) == "GCNConv(4, 3, norm=sym)"
    lazy = GCNConv(-1, 3)
    lazy(torch.randn(5, 4), torch.tensor([[0], [1]]))
    assert lazy.in_channels == 4
    with pytest.raises(ValueError, match="GCNConv: x must have 4 channels, got 2"):
        lazy(torch.randn(5, 2), torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match="GCNConv: norm must be one of 'mean', 'sym', 'none'"):
        GCNConv(4, 3, "both")


@pytest.mark.parametrize("norm", ["mean", "sym", "none"])
@pytest.mark.parametrize("widths", [(4, 3), (3, 4)])
def test_gradients_of_edge_weights(norm: str, widths: tuple[int, int]) -> None:
    torch.manual_seed(0)
    conv = GCNConv(*widths, norm).double()
    x = torch.randn(5, widths[0], dtype=torch.float64, requires_grad=True)
    edge_index = torch.tensor([[0, 1, 4, 2, 2], [1, 0, 1, 3, 3]])
    weight = torch.rand(5, dtype=torch.float64).add(0.5).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: conv(x, edge_index, w), (x, weight))
