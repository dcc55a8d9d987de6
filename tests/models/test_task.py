import pytest

from fognn.models import TASKS, Task


def test_the_papers_tasks() -> None:
    assert set(TASKS) == {"pattern", "cluster", "zinc", "tsp", "imdb-multi"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "path", "out_channels": 1, "node_tokens": 3}, "level must be one of"),
        ({"level": "node", "out_channels": 1}, "exactly one of node_tokens and node_channels"),
        (
            {"level": "node", "out_channels": 1, "node_tokens": 3, "node_channels": 3},
            "exactly one of node_tokens and node_channels",
        ),
        (
            {"level": "node", "out_channels": 1, "node_tokens": 3, "readout": "max"},
            "readout must be one of 'mean', 'sum', got 'max'",
        ),
        (
            {"level": "node", "out_channels": 1, "node_tokens": 3, "edge_tokens": 2,
             "edge_channels": 2},
            "at most one of edge_tokens and edge_channels",
        ),
    ],
)  # fmt: skip
def test_bad_tasks(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Task(**settings)
