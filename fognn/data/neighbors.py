"""Sampled neighbourhoods, in plain tensor operations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from fognn.data.pieces import offsets, positions, repeat


@dataclass(frozen=True)
class Neighborhood:
    r"""The sampled neighbourhood of some nodes.

    Args:
        nodes (torch.Tensor): The numbers of its nodes in the graph, the seeds first.
        edge_index (torch.Tensor): Its edges, numbered by their places in :obj:`nodes`.
        edges (torch.Tensor): The numbers of its edges in the graph.
    """

    nodes: Tensor
    edge_index: Tensor
    edges: Tensor


class NeighborSampler:
    r"""Samples neighbourhoods, as PyG's :class:`~torch_geometric.loader.NeighborLoader` does, but
    without :obj:`pyg-lib` or :obj:`torch-sparse`.

    In hop :math:`i`, at most :math:`k_i` of the edges that end at each node of the last hop are
    sampled, uniformly and without replacement. Each node is expanded once. With
    :math:`k_i = -1`, or not below the largest degree, and a hop for each layer, the outputs for
    the seeds equal those on the whole graph. An exception is a layer that divides by the degree of
    the source (:class:`~fognn.nn.GCNConv` with ``norm="sym"``): the nodes of the last hop have no
    sampled edges, and so another degree.

    Args:
        edge_index (EdgeIndex): The edges of the graph, sorted by target, with its size.
        neighbors (sequence of int): The numbers :math:`k_i`, positive or -1.
    """

    def __init__(self, edge_index: EdgeIndex, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(neighbors)
        wrong = [k for k in self.neighbors if type(k) is not int or (k < 1 and k != -1)]
        if wrong or not self.neighbors:
            found = repr(wrong[0]) if wrong else "none"
            raise ValueError(
                "NeighborSampler: neighbors must be positive ints, or -1 for all neighbours, one "
                f"for each hop, got {found}"
            )
        (self._ptr, self._source), _ = edge_index.get_csc()
        # The place of each node in the neighbourhood; -1 again between two samples.
        self._place = torch.full((self._ptr.numel() - 1,), -1)

    def sample(self, seeds: Tensor, key: tuple[int, int, int, int]) -> Neighborhood:
        r"""Samples the neighbourhood of some nodes.

        Args:
            seeds (torch.Tensor): The nodes, all different.
            key (tuple): Seed, epoch, number of the batch and rank; they define the sample.
        """
        seed, epoch, batch, rank = key
        # epoch_order has the counters from 0 of the same key. The highest word is not 0 here.
        random = np.random.Philox(
            key=np.array([seed, epoch], dtype=np.uint64),
            counter=np.array([0, 0, rank, batch + 1], dtype=np.uint64),
        )
        place = self._place
        place[seeds] = torch.arange(seeds.numel())
        hops, edges, targets = [seeds], [], []
        for k in self.neighbors:
            begin = self._ptr[hops[-1]]
            degree = self._ptr[hops[-1] + 1] - begin
            taken, sizes = _chosen(begin, degree, k, random)
            edges.append(taken)
            targets.append(repeat(hops[-1], sizes))
            found = self._source[taken]
            new = found[place[found] < 0].unique()
            place[new] = torch.arange(new.numel()) + sum(hop.numel() for hop in hops)
            hops.append(new)
        nodes, edge = torch.cat(hops), torch.cat(edges)
        index = torch.stack([place[self._source[edge]], place[torch.cat(targets)]])
        place[nodes] = -1
        return Neighborhood(nodes, index, edge)


def _chosen(
    begin: Tensor, degree: Tensor, k: int, random: np.random.Philox
) -> tuple[Tensor, Tensor]:
    r"""Returns at most :obj:`k` edges of each node, and their number."""
    many = degree > k if k >= 0 else torch.zeros_like(degree, dtype=torch.bool)
    sizes = torch.where(many, k, degree)
    ptr = offsets(sizes)
    edges = positions(begin, sizes, ptr, int(ptr[-1]))
    if many.any():
        drawn = _without_replacement(degree[many].numpy(), k, random) + begin[many].numpy()[:, None]
        edges.numpy()[repeat(many, sizes).numpy()] = drawn.ravel()
    return edges, sizes


def _without_replacement(sizes: np.ndarray, k: int, random: np.random.Philox) -> np.ndarray:
    r"""Draws :obj:`k` different numbers below each of :obj:`sizes`, all above :obj:`k`.

    This is Floyd's algorithm for all rows at once. In step :math:`j = n - k, \ldots, n - 1` it
    takes a random number in :math:`0, \ldots, j`, or :math:`j` if that one was taken before. Time
    and memory do not depend on the degrees.
    """
    out = np.empty((len(sizes), k), dtype=np.int64)
    # 53 bits are all that a float64 holds.
    uniform = (random.random_raw(out.size) >> 11).reshape(out.shape) * 2.0**-53
    for step in range(k):
        last = sizes - k + step
        draw = (uniform[:, step] * (last + 1)).astype(np.int64)
        taken = (out[:, :step] == draw[:, None]).any(1)
        out[:, step] = np.where(taken, last, draw)
    return out
