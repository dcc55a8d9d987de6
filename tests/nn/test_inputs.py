import pytest
import torch

from fognn.nn.graph_layer import GraphLayer
from fognn.ops import adjacency


def test_node_features() -> None:
    layer, edge_index = GraphLayer(), torch.tensor([[0], [1]])
    x, y = torch.randn(3, 2), torch.randn(4, 2)
    source, target, _ = layer.inputs(x, edge_index, 2, torch.float32)
    assert source is x
    assert target is x
    assert layer.inputs([x, y], edge_index, -1, torch.float32)[:2] == (x, y)
    with pytest.raises(
        ValueError, match=r"GraphLayer: x\[1\] \(targets\) must .* 2 channels, got 5"
    ):
        layer.inputs((x, torch.randn(4, 5)), edge_index, -1, torch.float32)
    with pytest.raises(ValueError, match="GraphLayer: x must be a tensor or a pair"):
        layer.inputs("x", edge_index, 2, torch.float32)


def test_edge_weights_are_sorted_with_their_edges() -> None:
    layer = GraphLayer()
    adj = adjacency(torch.tensor([[0, 1, 2], [2, 1, 0]]), 3)
    weight = torch.tensor([1.0, 2.0, 3.0])
    assert layer.edge_weights(adj, None) is None
    assert layer.edge_weights(adj, weight).tolist() == [3.0, 2.0, 1.0]
    assert layer.edge_weights(adj, weight.unsqueeze(1)).tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="edge_weight must have one entry for each of 3 edges"):
        layer.edge_weights(adj, torch.ones(2))
