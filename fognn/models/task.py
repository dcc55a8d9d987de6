"""What a network reads and answers, as data."""

from dataclasses import dataclass

from fognn.utils import checks


@dataclass(frozen=True)
class Task:
    r"""What a network reads and answers.

    Args:
        level: Where the answers are: ``"node"``, ``"edge"`` or ``"graph"``.
        out_channels: Size of each answer: classes, or values.
        node_tokens: Number of node tokens, if a node is a token.
        node_channels: Size of a node's features, if it has features.
        edge_tokens: Number of edge tokens, if an edge is a token.
        edge_channels: Size of an edge's features, if it has features.
        readout: How a graph's nodes are pooled, ``"mean"`` or ``"sum"``.
    """

    level: str
    out_channels: int
    node_tokens: int | None = None
    node_channels: int | None = None
    edge_tokens: int | None = None
    edge_channels: int | None = None
    readout: str = "mean"

    def __post_init__(self) -> None:
        checks.one_of("Task", "level", self.level, ("node", "edge", "graph"))
        checks.one_of("Task", "readout", self.readout, ("mean", "sum"))
        if (self.node_tokens is None) == (self.node_channels is None):
            raise ValueError(
                "Task: exactly one of node_tokens and node_channels must be given, got "
                f"{self.node_tokens} and {self.node_channels}"
            )
        if self.edge_tokens is not None and self.edge_channels is not None:
            raise ValueError("Task: at most one of edge_tokens and edge_channels must be given")


TASKS = {
    "pattern": Task("node", 2, node_tokens=3),
    "cluster": Task("node", 6, node_tokens=7),
    "zinc": Task("graph", 1, node_tokens=28, edge_tokens=4),
    "tsp": Task("edge", 2, node_channels=2, edge_channels=1),
    "imdb-multi": Task("graph", 3, node_channels=1, readout="sum"),
}
