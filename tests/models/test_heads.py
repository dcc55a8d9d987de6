import pytest
import torch

from fognn.models.heads import JumpingHead, MLPHead
from fognn.ops import adjacency

X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
EDGE_INDEX = torch.tensor([[0, 1, 2, 5], [0, 0, 3, 4]])  # sorted by target
ADJ = adjacency(EDGE_INDEX, 6)
BATCH = torch.tensor([0, 0, 1, 1, 1, 2])


def where(level: str, readout: str, x: torch.Tensor) -> torch.Tensor:
    if level == "node":
        return x
    if level == "edge":
        return torch.cat([x[EDGE_INDEX[0]], x[EDGE_INDEX[1]]], dim=1)
    parts = [x[graph == BATCH] for graph in range(3)]
    return torch.stack([part.mean(0) if readout == "mean" else part.sum(0) for part in parts])


@pytest.mark.parametrize(
    ("level", "readout"), [("node", "mean"), ("edge", "mean"), ("graph", "mean"), ("graph", "sum")]
)
def test_heads(level: str, readout: str) -> None:
    states = [X, X + 1, X * 2]
    mlp = MLPHead(8, 3, level, readout)
    torch.testing.assert_close(mlp(states, ADJ, BATCH), mlp.mlp(where(level, readout, states[-1])))
    jumping = JumpingHead(8, 3, level, 3, readout)
    expected = sum(
        head(where(level, readout, x)) for head, x in zip(jumping.heads, states, strict=True)
    )
    torch.testing.assert_close(jumping(states, ADJ, BATCH, 3), expected)


def test_widths() -> None:
    def widths(head):
        return [(m.in_channels, m.out_channels) for m in head.mlp if hasattr(m, "in_channels")]

    assert widths(MLPHead(9, 2, "node")) == [(9, 4), (4, 2), (2, 2)]
    assert widths(MLPHead(9, 2, "edge")) == [(18, 9), (9, 4), (4, 2)]
