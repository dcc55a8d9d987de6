import pytest
import torch
import torch_geometric.nn as pyg
from graph_strategies import Graph, graphs
from hypothesis import given
from torch.nn import Linear, ReLU, Sequential

from fognn.nn import GINConv


def twins(in_channels: int, out_channels: int):
    torch.manual_seed(0)
    ours = GINConv(in_channels, out_channels).double()
    torch.nn.init.normal_(ours.eps)
    norm = pyg.BatchNorm(out_channels, allow_single_element=True)
    mlp = Sequential(
        Linear(in_channels, out_channels), norm, ReLU(), Linear(out_channels, out_channels)
    )
    theirs = pyg.GINConv(mlp, train_eps=True).double()
    with torch.no_grad():
        theirs.eps.copy_(ours.eps)
        mlp[0].load_state_dict(ours.lin_V.state_dict())
        mlp[3].load_state_dict(ours.lin_U.state_dict())
    return ours, theirs


@pytest.mark.parametrize("widths", [(4, 3), (3, 4), (3, 3)])
@given(graph=graphs())
def test_equals_pyg(widths: tuple[int, int], graph: Graph) -> None:
    ours, theirs = twins(*widths)
    results = []
    for conv in (ours, theirs):
        x = graph.randn(graph.num_sources, widths[0]).requires_grad_()
        out = conv(x, graph.edge_index)
        results.append([out, *torch.autograd.grad(out.sin().sum(), (x, conv.eps))])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("widths", [(4, 3), (3, 4)])
def test_bipartite_and_weights(widths: tuple[int, int]) -> None:
    ours, theirs = twins(*widths)
    x = (torch.randn(5, widths[0]).double(), torch.randn(2, widths[0]).double())
    edge_index = torch.tensor([[0, 1, 4], [0, 1, 1]])
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))
    doubled = torch.cat([edge_index, edge_index], dim=1)
    weight = torch.full((3,), 2.0).double()
    torch.testing.assert_close(ours(x, edge_index, weight), theirs(x, doubled))


def test_repr_lazy_and_bad_input() -> None:
    lazy = GINConv(-1, 3)
    lazy(torch.randn(5, 4), torch.tensor([[0], [1]]))
    assert str(lazy) == "GINConv(4, 3)"
    with pytest.raises(ValueError, match="GINConv: x must have 4 channels, got 2"):
        lazy(torch.randn(5, 2), torch.tensor([[0], [1]]))
    assert lazy.eps.item() == 0
