import pytest
import torch
import torch_geometric.nn as pyg
from graph_strategies import Graph, graphs
from hypothesis import given

from fognn.nn import GATConv


def twins(in_channels: int, out_channels: int, heads: int):
    torch.manual_seed(0)
    ours = GATConv(in_channels, out_channels, heads).double()
    theirs = pyg.GATConv(
        in_channels, out_channels, heads=heads, add_self_loops=False, bias=False
    ).double()
    theirs.load_state_dict(
        {
            "lin.weight": ours.lin.weight,
            "att_src": ours.att_src.unsqueeze(0),
            "att_dst": ours.att_dst.unsqueeze(0),
        }
    )
    return ours, theirs


@pytest.mark.parametrize("heads", [1, 2])
@given(graph=graphs())
def test_equals_pyg(heads: int, graph: Graph) -> None:
    ours, theirs = twins(4, 3, heads)
    results = []
    for conv in (ours, theirs):
        x = graph.randn(graph.num_sources, 4).requires_grad_()
        out = conv(x, graph.edge_index)
        parameters = (conv.lin.weight, conv.att_src, conv.att_dst)
        grads = torch.autograd.grad(out.sin().sum(), (x, *parameters), materialize_grads=True)
        results.append([out, *(g.flatten() for g in grads)])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


def test_bipartite() -> None:
    ours, theirs = twins(4, 3, 2)
    x = (torch.randn(5, 4).double(), torch.randn(2, 4).double())
    edge_index = torch.tensor([[0, 1, 4], [0, 1, 1]])
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))


def test_isolated_nodes_get_zeros() -> None:
    out = GATConv(4, 3, 2)(torch.randn(3, 4), torch.empty(2, 0, dtype=torch.long))
    assert torch.equal(out, torch.zeros(3, 6))


def test_repr_and_bad_input() -> None:
    assert str(GATConv(4, 3, 2)) == "GATConv(4, 3, heads=2)"
    with pytest.raises(ValueError, match="GATConv: heads must be a positive int, got 0"):
        GATConv(4, 6, 0)
