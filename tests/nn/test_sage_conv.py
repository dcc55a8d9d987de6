import pytest
import torch
import torch_geometric.nn as pyg
from graph_strategies import Graph, graphs
from hypothesis import given

from fognn.nn import SAGEConv


def twins(in_channels: int, out_channels: int, aggr: str):
    torch.manual_seed(0)
    ours = SAGEConv(in_channels, out_channels, aggr).double()
    theirs = pyg.SAGEConv(in_channels, out_channels, aggr=aggr, project=aggr == "max").double()
    left, right = ours.lin_U.weight.split(in_channels, dim=1)
    with torch.no_grad():
        theirs.lin_r.weight.copy_(left)
        theirs.lin_l.weight.copy_(right)
        theirs.lin_l.bias.copy_(ours.lin_U.bias)
        if aggr == "max":
            theirs.lin.load_state_dict(ours.lin_P.state_dict())
    return ours, theirs


@pytest.mark.parametrize("aggr", ["max", "mean"])
@given(graph=graphs())
def test_equals_pyg(aggr: str, graph: Graph) -> None:
    ours, theirs = twins(4, 3, aggr)
    results = []
    for conv in (ours, theirs):
        x = graph.randn(graph.num_sources, 4).requires_grad_()
        out = conv(x, graph.edge_index)
        results.append([out, *torch.autograd.grad(out.sin().sum(), x)])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("aggr", ["max", "mean"])
def test_bipartite(aggr: str) -> None:
    ours, theirs = twins(4, 3, aggr)
    x = (torch.randn(5, 4).double(), torch.randn(2, 4).double())
    edge_index = torch.tensor([[0, 1, 4], [0, 1, 1]])
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))


def test_the_benchmarks_layer() -> None:
    torch.manual_seed(0)
    conv, x = SAGEConv(4, 3, benchmark=True), torch.randn(5, 4)
    edge_index = torch.tensor([[0, 1, 4, 2], [0, 1, 1, 3]])
    pooled = torch.relu(conv.lin_P(x))
    best = torch.zeros(5, 4)
    for v in range(5):
        near = edge_index[0, edge_index[1] == v]
        if len(near):
            best[v] = pooled[near].max(dim=0).values
    q = conv.lin_U(torch.cat([pooled, best], dim=1))
    expected = torch.relu(q / q.norm(dim=1, keepdim=True))
    torch.testing.assert_close(conv(x, edge_index), expected)
    pair = (x, x.clone())
    torch.testing.assert_close(conv(pair, edge_index), expected)


def test_repr_and_bad_input() -> None:
    assert str(SAGEConv(4, 3)) == "SAGEConv(4, 3, aggr=max)"
    with pytest.raises(ValueError, match="aggr must be one of 'max', 'mean', got 'sum'"):
        SAGEConv(4, 3, "sum")
    with pytest.raises(ValueError, match="aggr must be 'max' with benchmark=True, got 'mean'"):
        SAGEConv(4, 3, "mean", benchmark=True)
    with pytest.raises(ValueError, match="SAGEConv: x must have 4 channels, got 2"):
        SAGEConv(4, 3)(torch.randn(5, 2), torch.tensor([[0], [1]]))
