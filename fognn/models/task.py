"""The inputs and outputs of a network, as data."""

from dataclasses import dataclass

from fognn.utils import checks


@dataclass(frozen=True)
class Task:
    r"""The inputs and outputs of a network.

    Args:
        level (str): The level of the outputs: ``"node"``, ``"edge"`` or ``"graph"``.
        out_channels (int): Size of each output: the number of classes or of values.
        node_tokens (int, optional): Number of node tokens, if nodes are tokens.
            (default: :obj:`None`)
        node_channels (int, optional): Size of node features, if nodes have features.
            (default: :obj:`None`)
        edge_tokens (int, optional): Number of edge tokens, if edges are tokens.
            (default: :obj:`None`)
        edge_channels (int, optional): Size of edge features, if edges have features.
            (default: :obj:`None`)
        readout (str, optional): Pooling of a graph's nodes, ``"mean"`` or ``"sum"``.
            (default: :obj:`"mean"`)
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
