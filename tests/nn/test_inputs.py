import pytest
import torch

from fognn.nn.inputs import edge_weights, node_pair
from fognn.ops import adjacency


def test_node_pair() -> None:
    x, y = torch.randn(3, 2), torch.randn(4, 2)
    source, target = node_pair("L", x, 2, torch.float32)
    assert source is x
    assert target is x
    assert node_pair("L", [x, y], -1, torch.float32) == (x, y)
    with pytest.raises(ValueError, match=r"L: x\[1\] \(targets\) must have 2 channels, got 5"):
        node_pair("L", (x, torch.randn(4, 5)), -1, torch.float32)
    with pytest.raises(ValueError, match="L: x must be a tensor or a pair"):
        node_pair("L", "x", 2, torch.float32)


def test_edge_weights_are_sorted_with_their_edges() -> None:
    adj = adjacency(torch.tensor([[0, 1, 2], [2, 1, 0]]), 3)
    weight = torch.tensor([1.0, 2.0, 3.0])
    assert edge_weights("L", adj, None) is None
    assert edge_weights("L", adj, weight).tolist() == [3.0, 2.0, 1.0]
    assert edge_weights("L", adj, weight.unsqueeze(1)).tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="edge_weight must have one entry for each of 3 edges"):
        edge_weights("L", adj, torch.ones(2))
