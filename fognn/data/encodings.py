r"""Random-walk structural encodings of nodes."""

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

__all__ = ["RWSE", "random_walk_transform", "random_walks"]

RWSE = "rwse"
"""The attribute of a graph that holds the encodings."""


def random_walk_transform(steps: int) -> AddRandomWalkPE:
    r"""Returns PyG's transform that adds ``rwse`` to a graph: for each node, the probabilities that
    a random walk from it is back after 1, 2, ... steps. The time grows with the cube of the number
    of nodes of a graph.

    Args:
        steps (int): The number of steps, and of columns.
    """
    return AddRandomWalkPE(steps, attr_name=RWSE)


def random_walks(graph: Data, steps: int) -> Tensor:
    r"""Returns the encodings of a graph, ``[num_nodes, steps]``.

    Args:
        graph (Data): The graph; only its edges and its number of nodes are read.
        steps (int): The number of steps.
    """
    bare = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    encodings: Tensor = random_walk_transform(steps)(bare)[RWSE]
    return encodings
