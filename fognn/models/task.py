"""The inputs and outputs of a network, as data."""

from dataclasses import dataclass, fields
from typing import Any

from fognn.utils import checks


@dataclass(frozen=True)
class Task:
    r"""The inputs and outputs of a network.

    Args:
        level (str): The level of the outputs: ``"node"``, ``"edge"`` or ``"graph"``.
        out_channels (int): Size of each output: the number of classes or of values.
        node_tokens (int or tuple, optional): Number of node tokens, if nodes are tokens; one number
            for each column, if they have several. (default: :obj:`None`)
        node_channels (int, optional): Size of node features, if nodes have features.
            (default: :obj:`None`)
        edge_tokens (int or tuple, optional): The same for edges. (default: :obj:`None`)
        edge_channels (int, optional): Size of edge features, if edges have features.
            (default: :obj:`None`)
        readout (str, optional): Pooling of a graph's nodes, ``"mean"`` or ``"sum"``.
            (default: that of the network)
        node_input (str, optional): The node features: ``"x"``; or what takes their place in graphs
            without any, ``"degree"`` (the logarithm of 1 + in-degree) or ``"constant"`` (1).
            (default: :obj:`"x"`)
        mean (tuple, optional): Mean of each value over the training targets. The network predicts
            standardised values, and its last step returns them to the unit of the targets.
            (default: :obj:`None`)
        std (tuple, optional): Standard deviation of each value, given with ``mean``.
            (default: :obj:`None`)
        names (tuple, optional): Names of the values, or of the classes. (default: :obj:`()`)
        encodings (int, optional): Number of columns of the random-walk encodings of each node,
            which the network adds to the encoded nodes; 0 if there are none. (default: :obj:`0`)
    """

    level: str
    out_channels: int
    node_tokens: int | tuple[int, ...] | None = None
    node_channels: int | None = None
    edge_tokens: int | tuple[int, ...] | None = None
    edge_channels: int | None = None
    readout: str | None = None
    node_input: str = "x"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    names: tuple[str, ...] = ()
    encodings: int = 0

    def __post_init__(self) -> None:
        for name in ("node_tokens", "edge_tokens", "mean", "std", "names"):
            value = getattr(self, name)
            if isinstance(value, list):  # of a JSON file
                object.__setattr__(self, name, tuple(value))
        checks.one_of("Task", "level", self.level, ("node", "edge", "graph"))
        checks.one_of("Task", "node_input", self.node_input, ("x", "degree", "constant"))
        checks.int_in_range("Task", "encodings", self.encodings, 0)
        if self.readout is not None:
            checks.one_of("Task", "readout", self.readout, ("mean", "sum"))
        if (self.node_tokens is None) == (self.node_channels is None):
            raise ValueError(
                "Task: exactly one of node_tokens and node_channels must be given, got "
                f"{self.node_tokens} and {self.node_channels}"
            )
        if self.edge_tokens is not None and self.edge_channels is not None:
            raise ValueError("Task: at most one of edge_tokens and edge_channels must be given")
        scale = (self.mean, self.std)
        if scale != (None, None) and any(len(v or ()) != self.out_channels for v in scale):
            raise ValueError(
                f"Task: mean and std must be None, or have {self.out_channels} numbers each, got "
                f"{self.mean} and {self.std}"
            )

    def to_dict(self) -> dict[str, Any]:
        r"""Returns the fields that are not at their default; ``Task(**fields)`` is the task."""
        own = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in own.items() if value != default}


TASKS = {
    "pattern": Task("node", 2, node_tokens=3),
    "cluster": Task("node", 6, node_tokens=7),
    "zinc": Task("graph", 1, node_tokens=28, edge_tokens=4),
    "tsp": Task("edge", 2, node_channels=2, edge_channels=1),
    "imdb-multi": Task("graph", 3, node_channels=1, readout="sum"),
}
