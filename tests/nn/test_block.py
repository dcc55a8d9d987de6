import copy

import pytest
import torch
import torch_geometric.nn as pyg

from fognn.nn import FOG, Block, GATConv, GatedGCNConv, GCNConv, WithFOG

X = torch.randn(10, 8, generator=torch.Generator().manual_seed(0))
EDGE_INDEX = torch.randint(0, 10, (2, 30), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("act", "function"),
    [("relu", torch.relu), ("elu", torch.nn.functional.elu), (None, lambda x: x)],
)
@pytest.mark.parametrize("residual", [True, False])
def test_equals_the_equation(act, function, residual: bool) -> None:
    block = Block(WithFOG(GCNConv(8, 5), FOG(8, 3, 3, 2)), 8, act, residual)
    q = block.conv(X, EDGE_INDEX)
    mean, var = q.mean(0), q.var(0, unbiased=False)
    expected = function((q - mean) / (var + 1e-5).sqrt())
    torch.testing.assert_close(block(X, EDGE_INDEX), X + expected if residual else expected)


def test_on_a_bipartite_graph_the_targets_are_added() -> None:
    """With all edges of the first four nodes, they get what they get on the whole graph."""
    torch.manual_seed(0)
    block = Block(WithFOG(GCNConv(8, 5, "mean"), FOG(8, 3, 3, 2)), 8).eval()
    edges = EDGE_INDEX[:, EDGE_INDEX[1] < 4]
    torch.testing.assert_close(block((X, X[:4]), edges), block(X, EDGE_INDEX)[:4])


def test_edge_features_follow() -> None:
    block = Block(GatedGCNConv(8), 8).eval()
    edge_attr = torch.randn(30, 8)
    h, e = block(X, EDGE_INDEX, edge_attr)
    torch.testing.assert_close(e, block.conv(X, EDGE_INDEX, edge_attr)[1])
    assert h.shape == X.shape


def test_attention_weights_follow_untouched() -> None:
    block = Block(pyg.GATConv(8, 8), 8, dropout=0.5)
    h, (edges, alpha) = block(X, EDGE_INDEX, return_attention_weights=True)
    assert h.shape == X.shape
    assert edges.size(1) == alpha.size(0)


def test_dropout_only_in_training() -> None:
    torch.manual_seed(0)
    block = Block(GatedGCNConv(8), 8, dropout=0.5)
    edge_attr = torch.randn(30, 8)
    h, e = block(X, EDGE_INDEX, edge_attr)
    assert 0.3 < (h == 0).float().mean() < 0.7
    assert 0.3 < (e == 0).float().mean() < 0.7
    h, e = block.eval()(X, EDGE_INDEX, edge_attr)
    assert not (h == 0).any()


@pytest.mark.parametrize("conv", [GCNConv(8, 8), GATConv(8, 4, 2), FOG(8, 8, 3, 2)])
def test_a_single_node_falls_back_to_the_running_statistics(conv) -> None:
    block = Block(conv, 8)
    for _ in range(3):
        block(X, EDGE_INDEX)
    before = copy.deepcopy(block.state_dict())
    single, none = torch.randn(1, 8), torch.empty(2, 0, dtype=torch.long)
    out = block.train()(single, none)
    out.sum().backward()
    torch.testing.assert_close(out, block.eval()(single, none))
    for key, value in block.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_no_node_at_all() -> None:
    out = Block(GCNConv(8, 8), 8)(torch.empty(0, 8), torch.empty(2, 0, dtype=torch.long))
    assert out.shape == (0, 8)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"dropout .* between 0 and 1, but got 1\.5"):
        Block(GCNConv(8, 8), 8, dropout=1.5)
    with pytest.raises(ValueError, match="Block: channels must be what the layer gives, got 9"):
        Block(GCNConv(8, 8), 9)(X, EDGE_INDEX)
    with pytest.raises(ValueError, match="Block: x must have 5 channels to be added"):
        Block(GCNConv(8, 5), 5)(X, EDGE_INDEX)
