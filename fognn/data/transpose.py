"""The two orders of every graph's edges: by target, and by source."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fognn.data.pieces import offsets

# Indices of so many nodes fit into 16 bits, which numpy sorts by radix, in linear time.
CHUNK_NODES = 1 << 16


@dataclass(frozen=True)
class SortedEdges:
    r"""The edges of all graphs, sorted by target and then by source within each graph.

    Args:
        order (torch.Tensor, optional): The former position of each edge; :obj:`None` if they were
            sorted.
        source (torch.Tensor): The source of each edge, minus its target. Differences do not depend
            on the position of a graph in a batch, and fit into 16 bits.
        in_degree (torch.Tensor): The number of edges that end at each node, which gives the targets
            of the sorted edges.
        out_degree (torch.Tensor): The number of edges that begin at each node.
        transpose (torch.Tensor): The edge at each position if they are sorted by source and then by
            target, minus the position.
        undirected (torch.Tensor): Whether each graph has every edge as often as its reverse.
    """

    order: Tensor | None
    source: Tensor
    in_degree: Tensor
    out_degree: Tensor
    transpose: Tensor
    undirected: Tensor


def sort_edges(edge_index: Tensor, num_nodes: Tensor, num_edges: Tensor) -> SortedEdges:
    r"""Sorts the edges of all graphs in both orders.

    Args:
        edge_index (torch.Tensor): The edges of all graphs, :obj:`[E, 2]`, counted within each.
        num_nodes (torch.Tensor): The number of nodes of each graph.
        num_edges (torch.Tensor): The number of edges of each graph.
    """
    node_ptr, edge_ptr = offsets(num_nodes), offsets(num_edges)
    total = int(edge_ptr[-1])
    source = torch.empty(total, dtype=_smallest_int(int(num_nodes.max()) - 1))
    transpose = torch.empty(total, dtype=_smallest_int(int(num_edges.max()) - 1))
    in_degree = torch.empty(int(node_ptr[-1]), dtype=torch.int64)
    out_degree = torch.empty_like(in_degree)
    undirected = torch.empty(num_nodes.numel(), dtype=torch.bool)
    order: Tensor | None = None

    for first, last in _chunks(node_ptr):
        nodes = slice(int(node_ptr[first]), int(node_ptr[last]))
        edges = slice(int(edge_ptr[first]), int(edge_ptr[last]))
        graph = torch.repeat_interleave(num_edges[first:last])
        _check_ends(edge_index[edges], graph, num_nodes[first:last], first)
        shift = (node_ptr[first:last] - nodes.start)[graph]
        src, dst = edge_index[edges, 0] + shift, edge_index[edges, 1] + shift
        if not _is_sorted(src, dst):
            by_target = _argsort(src, nodes)
            by_target = by_target[_argsort(dst[by_target], nodes)]
            src, dst = src[by_target], dst[by_target]
            order = torch.arange(total) if order is None else order
            order[edges] = by_target + edges.start
        by_source = _argsort(src, nodes)

        size = nodes.stop - nodes.start
        in_degree[nodes] = torch.bincount(dst, minlength=size)
        out_degree[nodes] = torch.bincount(src, minlength=size)
        source[edges] = (src - dst).to(source.dtype)
        transpose[edges] = (by_source - torch.arange(by_source.numel())).to(transpose.dtype)
        # Reversed and sorted again, an undirected graph is itself.
        differs = (src[by_source] != dst) | (dst[by_source] != src)
        undirected[first:last] = torch.bincount(graph[differs], minlength=last - first) == 0

    return SortedEdges(order, source, in_degree, out_degree, transpose, undirected)


def _check_ends(edges: Tensor, graph: Tensor, num_nodes: Tensor, first: int) -> None:
    bad = ((edges < 0) | (edges >= num_nodes[graph][:, None])).any(1).nonzero()
    if bad.numel() > 0:
        edge = int(bad[0])
        source, target = edges[edge].tolist()
        raise ValueError(
            f"PackedLoader: dataset[{first + int(graph[edge])}]: edge {source} -> {target} names "
            f"a node that does not exist, its nodes must be in [0, {int(num_nodes[graph[edge]])})"
        )


def _is_sorted(source: Tensor, target: Tensor) -> bool:
    step = target.diff()
    return bool(((step > 0) | ((step == 0) & (source.diff() >= 0))).all())


def _chunks(node_ptr: Tensor) -> Iterator[tuple[int, int]]:
    first, count = 0, node_ptr.numel() - 1
    while first < count:
        end = int(torch.searchsorted(node_ptr, node_ptr[first] + CHUNK_NODES, right=True)) - 1
        last = max(first + 1, end)
        yield first, last
        first = last


def _argsort(index: Tensor, nodes: slice) -> Tensor:
    keys = index.numpy()
    if nodes.stop - nodes.start <= CHUNK_NODES:
        keys = keys.astype(np.uint16)
    return torch.from_numpy(np.argsort(keys, kind="stable"))


def _smallest_int(largest: int) -> torch.dtype:
    for dtype in (torch.int16, torch.int32):
        if largest <= torch.iinfo(dtype).max:
            return dtype
    return torch.int64
