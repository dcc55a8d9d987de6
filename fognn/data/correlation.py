r"""A generated graph whose labels are correlations of neighbours."""

import math

import torch
from torch_geometric.data import Data

from fognn.utils import checks

__all__ = ["generate_correlation"]


def generate_correlation(
    num_nodes: int, channels: int = 4, degree: int = 4, seed: int = 0, matrix_seed: int = 0
) -> Data:
    r"""Returns a graph whose nodes have the label

    .. math::
        y_v = \sum_{u \in \mathcal{N}(v)} \mathbf{x}_v^{\top} \mathbf{M} \mathbf{x}_u

    with independent normal features, and a matrix :math:`\mathbf{M}` that is to be learnt.

    The graph is undirected, and all nodes have the same number of neighbours, so that the label
    does not depend on the degree. The mean of the label is 0 given :math:`\mathbf{x}_v` alone, and
    0 given the sum over neighbours alone: only both together tell it. Its variance is about 1 (over
    all matrices, exactly 1), so that a squared error of 1 is that of a constant.

    Args:
        num_nodes (int): Number of nodes, more than :obj:`degree`.
        channels (int, optional): Size of the features. (default: :obj:`4`)
        degree (int, optional): Number of neighbours of each node, an even number.
            (default: :obj:`4`)
        seed (int, optional): Seed of the features and the edges. (default: :obj:`0`)
        matrix_seed (int, optional): Seed of the matrix: graphs with the same one have the same
            task. (default: :obj:`0`)
    """
    owner = "generate_correlation"
    checks.positive_int(owner, "channels", channels)
    checks.positive_int(owner, "degree", degree)
    if degree % 2:
        raise ValueError(f"{owner}: degree must be even, got {degree}")
    checks.int_in_range(owner, "num_nodes", num_nodes, degree + 1)
    checks.int_in_range(owner, "seed", seed, 0)
    checks.int_in_range(owner, "matrix_seed", matrix_seed, 0)
    matrix = torch.randn(channels, channels, generator=torch.Generator().manual_seed(matrix_seed))
    matrix /= channels * math.sqrt(degree)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_nodes, channels, generator=generator)
    # A ring in a random order, on which each node is joined to the nearest ones on both sides.
    ring = torch.randperm(num_nodes, generator=generator)
    steps = [step for step in range(-degree // 2, degree // 2 + 1) if step]
    edge_index = torch.cat([torch.stack([ring.roll(step), ring]) for step in steps], dim=1)
    total = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
    return Data(x=x, edge_index=edge_index, y=((x @ matrix) * total).sum(dim=1))
