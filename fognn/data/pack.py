r"""A dataset packed into flat tensors, with both orders of its edges, and batches sliced from them.
Long sums use numpy, which starts no threads: on busy cores torch takes ten times as long."""

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.collate import collate
from torch_geometric.data.storage import N_KEYS
from torch_geometric.edge_index import CatMetadata, SortOrder

# Indices of so many nodes fit into 16 bits, which numpy sorts by radix, in linear time.
CHUNK_NODES = 1 << 16
SMALL_INTS = (torch.uint8, torch.int8, torch.int16, torch.int32)
_DIFFERENCES = (torch.int16, torch.int32)  # fingerprints of data depend on these types


class Column(NamedTuple):
    r"""One attribute of all graphs: its concatenated rows, and the number of each graph's."""

    values: Tensor
    sizes: Tensor


def read_columns(dataset: Any) -> tuple[Tensor, dict[str, Column]]:
    r"""Returns the number of nodes of each graph, and the flat columns of all attributes, with the
    edges as ``[E, 2]``. Those of a whole, plain :obj:`InMemoryDataset` are not copied."""
    if len(dataset) == 0:
        raise ValueError("PackedLoader: dataset must hold at least one graph, got none")
    nodes: Any = None
    whole = isinstance(dataset, InMemoryDataset) and dataset._indices is None
    as_stored = whole and dataset.transform is None and dataset.slices is not None
    if as_stored and type(dataset).get is InMemoryDataset.get:
        data, slices = dataset._data, dataset.slices
        known = [slices[key].diff() for key in slices if key in N_KEYS]
        nodes = getattr(data._store, "_num_nodes", known[0] if known else None)
    if nodes is None:
        items = [dataset[number] for number in range(len(dataset))]
        for number, item in enumerate(items):
            if not isinstance(item, Data) or {*item.keys()} != {*items[0].keys()}:
                raise ValueError(
                    f"PackedLoader: dataset[{number}] must be a Data with the same attributes as "
                    f"dataset[0], {items[0]}, got {item}"
                )
        data, slices, _ = collate(type(items[0]), items, increment=False, add_batch=False)
        nodes = [item.num_nodes or 0 for item in items]
    columns = {}
    for key, value in data.to_dict().items():
        texts = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        if key in ("num_nodes", "_num_nodes") or texts:
            continue
        if isinstance(value, EdgeIndex):
            value = value.as_tensor()
        dense = isinstance(value, Tensor) and value.layout == torch.strided
        counted = data.__cat_dim__(key, value) != 0 or data.__inc__(key, value) != 0
        if key == "edge_index" and dense:
            value = value.t()
        elif not dense or counted:
            raise ValueError(
                f"PackedLoader: dataset: {key!r} cannot be packed, because PyG does not just "
                "concatenate its rows: take torch_geometric.loader.DataLoader"
            )
        columns[key] = Column(value, slices[key].diff().long())
    if "edge_index" not in columns:
        raise ValueError("PackedLoader: dataset: the graphs must have an edge_index, got none")
    return torch.as_tensor(nodes, dtype=torch.int64), columns


class Pack:
    r"""All graphs of a dataset in flat tensors, edges sorted by target and then by source within
    each graph. All sorting is done here, once; a batch needs only gathers and sums."""

    def __init__(self, dataset: Any) -> None:
        # PyG looks up the class of a batch each time it creates one; a copy has it already.
        self.empty_batch: Any = Batch(_base_cls=Data)
        self.num_nodes, columns = read_columns(dataset)
        edges = columns.pop("edge_index")
        if edges.values.dim() != 2 or edges.values.size(1) != 2 or edges.values.is_floating_point():
            raise ValueError(
                "PackedLoader: dataset: edge_index must be integers of shape [2, E], got "
                f"{edges.values.dtype} {list(edges.values.T.shape)}"
            )
        self.num_edges = edges.sizes
        self.node_ptr, edge_ptr = offsets(self.num_nodes), offsets(self.num_edges)
        self.edge_begin = edge_ptr[:-1].to(smallest_int(0, int(edge_ptr[-1]), (torch.int32,)))
        self.edges = sort_edges(edges.values.to(torch.int64), self.num_nodes, self.num_edges)
        self.levels = {key: self._level(key, column) for key, column in columns.items()}
        self.begin = {key: offsets(column.sizes)[:-1] for key, column in columns.items()}
        self.columns = columns
        for key, column in columns.items():
            if self.levels[key] == "edge" and self.edges.order is not None:
                columns[key] = column._replace(values=column.values[self.edges.order])

    def __len__(self) -> int:
        return self.num_nodes.numel()

    def _level(self, key: str, column: Column) -> str:
        r"""Whether there is a row for each node, edge or graph, or :obj:`"own"`. If every graph
        has as many edges as nodes the name decides, as in PyG."""
        of_nodes = torch.equal(column.sizes, self.num_nodes)
        if torch.equal(column.sizes, self.num_edges) and not (of_nodes and "edge" not in key):
            return "edge"
        if of_nodes:
            return "node"
        return "graph" if bool((column.sizes == 1).all()) else "own"

    def collate(self, graphs: Tensor) -> Any:
        r"""Returns the batch of the graphs with these indices."""
        num_nodes, num_edges = self.num_nodes[graphs], self.num_edges[graphs]
        ptr, edge_ptr = offsets(num_nodes), offsets(num_edges)
        N, E = int(ptr[-1]), int(edge_ptr[-1])
        nodes = positions(self.node_ptr[graphs], num_nodes, ptr, N)
        width = self.edge_begin.dtype
        edges = positions(self.edge_begin[graphs], num_edges.to(width), edge_ptr, E)

        batch = copy(self.empty_batch)
        batch.edge_index = self._edge_index(graphs, ptr, edge_ptr, nodes, edges)
        slices = {"edge_index": edge_ptr}
        shared = {"node": (nodes, ptr), "edge": (edges, edge_ptr)}
        shared["graph"] = (graphs, torch.arange(graphs.numel() + 1))
        for key, column in self.columns.items():
            if self.levels[key] in shared:
                rows, slices[key] = shared[self.levels[key]]
            else:
                sizes = column.sizes[graphs]
                own = slices[key] = offsets(sizes)
                rows = positions(self.begin[key][graphs], sizes, own, int(own[-1]))
            batch[key] = column.values.index_select(0, rows)

        if not any(key in N_KEYS for key in self.columns):
            batch._store._num_nodes = num_nodes.tolist()
            batch.num_nodes = N
        batch.batch = repeat(torch.arange(graphs.numel()), num_nodes)
        batch.ptr = ptr
        # For batch[i] and batch.to_data_list().
        batch._num_graphs, batch._slice_dict = graphs.numel(), slices
        batch._inc_dict = dict.fromkeys(self.columns) | {"edge_index": ptr[:-1]}
        return batch

    def _edge_index(
        self, graphs: Tensor, ptr: Tensor, edge_ptr: Tensor, nodes: Tensor, edges: Tensor
    ) -> EdgeIndex:
        N, E, num_edges = int(ptr[-1]), edges.numel(), edge_ptr.diff()
        in_degree = self.edges.in_degree.index_select(0, nodes)
        # Both rows start as targets; adding the differences makes the upper one sources.
        index = repeat(torch.arange(N).repeat(2), in_degree.repeat(2)).view(2, E)
        sources, perm = index[0].numpy(), np.arange(E)
        sources += self.edges.source.index_select(0, edges).numpy()
        perm += self.edges.transpose.index_select(0, edges).numpy()
        flags = self.edges.undirected[graphs]
        undirected = bool(flags.all())

        out = EdgeIndex(index, sparse_size=(N, N), sort_order="col", is_undirected=undirected)
        out._indptr = offsets(in_degree)
        out._T_perm = torch.from_numpy(perm)
        if undirected:
            # Sorted by source, an undirected graph is its own reverse.
            out._T_index, out._T_indptr = (index[1], index[0]), out._indptr
        else:
            out_degree = self.edges.out_degree.index_select(0, nodes)
            source = repeat(torch.arange(N), out_degree)
            out._T_index = (source, index[1].index_select(0, out._T_perm))
            out._T_indptr = offsets(out_degree)
        # As in PyG, the size of each graph includes the nodes of the graphs before it.
        ends = ptr[1:].tolist()
        out._cat_metadata = CatMetadata(
            nnz=num_edges.tolist(),
            sparse_size=list(zip(ends, ends, strict=True)),
            sort_order=[SortOrder.COL] * len(ends),
            is_undirected=flags.tolist(),
        )
        return out


class SortedEdges(NamedTuple):
    r"""The edges of all graphs, sorted by target and then by source within each graph. Differences
    do not depend on the position of a graph in a batch, and fit into 16 bits."""

    order: Tensor | None  # the former position of each edge; None if they were sorted
    source: Tensor  # the source of each edge, minus its target
    in_degree: Tensor  # the edges that end at each node, which gives the targets
    out_degree: Tensor  # the edges that begin at each node
    transpose: Tensor  # the edge at each position if they are sorted by source, minus the position
    undirected: Tensor  # whether each graph has every edge as often as its reverse


def sort_edges(edge_index: Tensor, num_nodes: Tensor, num_edges: Tensor) -> SortedEdges:
    r"""Sorts the edges of all graphs, :obj:`[E, 2]`, counted within each, in both orders."""
    node_ptr, edge_ptr = offsets(num_nodes), offsets(num_edges)
    total = int(edge_ptr[-1])
    N, E = int(num_nodes.max()), int(num_edges.max())
    source = torch.empty(total, dtype=smallest_int(1 - N, N - 1, _DIFFERENCES))
    transpose = torch.empty(total, dtype=smallest_int(1 - E, E - 1, _DIFFERENCES))
    in_degree = torch.empty(int(node_ptr[-1]), dtype=torch.int64)
    out_degree = torch.empty_like(in_degree)
    undirected = torch.empty(num_nodes.numel(), dtype=torch.bool)
    order: Tensor | None = None

    step = max(CHUNK_NODES // max(N, 1), 1)
    for first in range(0, num_nodes.numel(), step):
        last = min(first + step, num_nodes.numel())
        nodes = slice(int(node_ptr[first]), int(node_ptr[last]))
        edges = slice(int(edge_ptr[first]), int(edge_ptr[last]))
        graph = torch.repeat_interleave(num_edges[first:last])
        _check_ends(edge_index[edges], graph, num_nodes[first:last], first)
        shift = (node_ptr[first:last] - nodes.start)[graph]
        src, dst = edge_index[edges, 0] + shift, edge_index[edges, 1] + shift
        step_down = (dst.diff() < 0) | ((dst.diff() == 0) & (src.diff() < 0))
        if step_down.any():
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


def _argsort(index: Tensor, nodes: slice) -> Tensor:
    keys = index.numpy()
    if nodes.stop - nodes.start <= CHUNK_NODES:
        keys = keys.astype(np.uint16)
    return torch.from_numpy(np.argsort(keys, kind="stable"))


def smallest_int(low: int, high: int, types: Sequence[torch.dtype] = SMALL_INTS) -> torch.dtype:
    r"""Returns the first of some types of integers that holds both."""
    fits = (t for t in types if torch.iinfo(t).min <= low and high <= torch.iinfo(t).max)
    return next(fits, torch.int64)


def offsets(sizes: Tensor) -> Tensor:
    r"""The first index of each piece, and the end of the last one."""
    out = sizes.new_zeros(sizes.numel() + 1)
    torch.cumsum(sizes, 0, out=out[1:])
    return out


def positions(begin: Tensor, sizes: Tensor, ptr: Tensor, total: int) -> Tensor:
    r"""The positions :obj:`begin[i], ..., begin[i] + sizes[i] - 1` of all pieces, one piece after
    another. :obj:`ptr` are the offsets of :obj:`sizes`, and :obj:`total` is their sum. With 32 bits
    in :obj:`begin` and :obj:`sizes` the positions have 32 bits too, at half the cost."""
    shift = begin - ptr[:-1].to(begin.dtype)
    out = np.repeat(shift.numpy(), sizes.numpy())
    out += np.arange(total, dtype=out.dtype)
    return torch.from_numpy(out)


def repeat(values: Tensor, sizes: Tensor) -> Tensor:
    r"""Repeats each value :obj:`sizes` times."""
    return torch.from_numpy(np.repeat(values.numpy(), sizes.numpy()))


def random_order(size: int, seed: int, number: int = 0) -> Tensor:
    r"""Returns the numbers below :obj:`size`, sorted by one random word each of Philox with the key
    :obj:`(seed, number)`: the same on any machine and with any version of the libraries."""
    words = np.random.Philox(key=np.array([seed, number], dtype=np.uint64)).random_raw(size)
    return torch.from_numpy(np.argsort(words, kind="stable"))
