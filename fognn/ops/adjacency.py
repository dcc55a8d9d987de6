"""The form of a graph that all sums over edges take: CSR by target, and its transpose."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.index import ptr2index

from fognn.utils.checks import outside


class Adjacency(NamedTuple):
    r"""A graph in compressed form, sorted by target node, with its transpose for the backward.

    Edge values (weights, gates) are in this order, *not* in the user's order of edges; :meth:`sort`
    and :meth:`unsort` convert between the two. It is a tuple of tensors, so :func:`torch.compile`
    and :func:`torch.export` accept it.

    Args:
        ptr (torch.Tensor): Index of the first in-edge of each target, ``[num_targets + 1]``.
        source (torch.Tensor): The source of each edge, ``[num_edges]``.
        perm (torch.Tensor, optional): The position of each edge in the user's order,
            ``[num_edges]``; :obj:`None` if the orders are equal.
        t_ptr (torch.Tensor, optional): Index of the first out-edge of each source,
            ``[num_sources + 1]``.
        t_target (torch.Tensor, optional): The target of each edge in the transposed order.
        t_perm (torch.Tensor, optional): The position in ``source`` of each edge of the transposed
            order.
        weight (torch.Tensor, optional): The values of a sparse adjacency matrix, in this order.
    """

    ptr: Tensor
    source: Tensor
    perm: Tensor | None = None
    t_ptr: Tensor | None = None
    t_target: Tensor | None = None
    t_perm: Tensor | None = None
    weight: Tensor | None = None

    @property
    def num_targets(self) -> int:
        return self.ptr.size(0) - 1

    @property
    def num_edges(self) -> int:
        return self.source.size(0)

    @property
    def target(self) -> Tensor:
        """The target of each edge, in this order."""
        return ptr2index(self.ptr, self.num_edges)

    def sort(self, value: Tensor) -> Tensor:
        """Converts edge values from the user's order to this one."""
        return value if self.perm is None else value.index_select(0, self.perm)

    def unsort(self, value: Tensor) -> Tensor:
        """Converts edge values from this order to the user's."""
        if self.perm is None:
            return value
        return torch.empty_like(value).index_copy(0, self.perm, value)


def compress(key: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Sorts ``key`` stably; returns the pointers of ``size`` rows, and the permutation."""
    # A radix sort of 32-bit keys takes half the time of 64-bit ones. (While torch.compile or
    # torch.export traces, the comparison would fix the number of nodes.)
    small = not torch.compiler.is_compiling() and size <= torch.iinfo(torch.int32).max
    ordered, perm = torch.sort(key.to(torch.int32) if small else key, stable=True)
    bounds = torch.arange(size + 1, dtype=ordered.dtype, device=key.device)
    return torch.searchsorted(ordered, bounds).to(key.dtype), perm


def transpose(ptr: Tensor, index: Tensor, num_sources: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``t_ptr, t_index, t_perm`` of a graph in compressed form."""
    t_ptr, t_perm = compress(index, num_sources)
    return t_ptr, ptr2index(ptr, index.size(0)).index_select(0, t_perm), t_perm


def _inverse(perm: Tensor) -> Tensor:
    place = torch.arange(perm.size(0), dtype=perm.dtype, device=perm.device)
    return torch.empty_like(perm).index_copy(0, perm, place)


def adjacency(
    edge_index: Tensor | Adjacency, num_sources: int, num_targets: int | None = None
) -> Adjacency:
    r"""Converts a graph to an :class:`Adjacency`. Raises a :class:`ValueError` if an edge names a
    node that does not exist. The transpose is computed only if gradients are enabled.

    Args:
        edge_index (torch.Tensor or Adjacency): A ``[2, num_edges]`` tensor (row 0 source, row 1
            target), which is sorted here; a :class:`torch_geometric.EdgeIndex`, whose order and
            caches are used; a sparse CSR or CSC matrix of shape ``[num_targets, num_sources]``
            (PyG's ``adj_t``), whose values are edge weights; or an :class:`Adjacency`.
        num_sources (int): The number of source nodes.
        num_targets (int, optional): The number of target nodes. (default: ``num_sources``)
    """
    num_targets = num_sources if num_targets is None else num_targets
    if isinstance(edge_index, Adjacency):
        if edge_index.num_targets != num_targets:
            raise ValueError(
                f"edge_index: the Adjacency has {edge_index.num_targets} target nodes, "
                f"but x has {num_targets}"
            )
        return edge_index
    if not isinstance(edge_index, Tensor):
        raise ValueError(
            "edge_index must be a [2, num_edges] tensor, an EdgeIndex, a sparse CSR or CSC tensor "
            f"or an Adjacency, got {type(edge_index).__name__}"
        )
    if edge_index.layout in (torch.sparse_csr, torch.sparse_csc):
        return _from_sparse(edge_index, num_sources, num_targets)
    if edge_index.layout != torch.strided:
        raise ValueError(f"edge_index must be strided, CSR or CSC, got {edge_index.layout}")
    if isinstance(edge_index, EdgeIndex):
        return _from_edge_index(edge_index, num_sources, num_targets)
    return _from_tensor(edge_index, num_sources, num_targets)


def _check_range(name: str, index: Tensor, size: int) -> None:
    wrong = outside(index, size)
    if wrong is not None:
        raise ValueError(
            f"edge_index: {name} must lie in 0..{size - 1} (there are {size} such nodes), "
            f"got {wrong}"
        )


def _check_ptr(ptr: Tensor, num_rows: int, num_edges: int) -> None:
    if ptr.size(0) != num_rows + 1:
        raise ValueError(f"edge_index: must have {num_rows} rows, got {ptr.size(0) - 1}")
    if torch.compiler.is_compiling():
        return
    if int(ptr[0]) != 0 or int(ptr[-1]) != num_edges or bool((ptr.diff() < 0).any()):
        raise ValueError(
            f"edge_index: its row pointers must grow from 0 to the number of edges ({num_edges})"
        )


def _from_tensor(edge_index: Tensor, num_sources: int, num_targets: int) -> Adjacency:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        shape = list(edge_index.shape)
        raise ValueError(f"edge_index must have shape [2, num_edges], got {shape}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"edge_index must be int64 or int32, got {edge_index.dtype}")
    source, target = edge_index[0], edge_index[1]
    _check_range("sources (row 0)", source, num_sources)
    _check_range("targets (row 1)", target, num_targets)
    ptr, perm = compress(target, num_targets)
    index = source.index_select(0, perm)
    transposed = transpose(ptr, index, num_sources) if torch.is_grad_enabled() else ()
    return Adjacency(ptr, index, perm, *transposed)


def _from_edge_index(edge_index: EdgeIndex, num_sources: int, num_targets: int) -> Adjacency:
    """Reads a sorted EdgeIndex without sorting."""
    rows, cols = edge_index.sparse_size()
    if (rows is not None and rows != num_sources) or (cols is not None and cols != num_targets):
        raise ValueError(
            f"edge_index: its sparse_size must be ({num_sources}, {num_targets}), "
            f"the numbers of source and target nodes, got ({rows}, {cols})"
        )
    compiling, data = torch.compiler.is_compiling(), edge_index.as_tensor()
    if compiling or not edge_index.is_sorted:
        cached = _from_cache(edge_index) if edge_index.is_sorted else None
        return _from_tensor(data, num_sources, num_targets) if cached is None else cached
    sized = rows is not None and cols is not None
    # Checking every edge takes as long as summing eight channels, so an EdgeIndex with a size is
    # checked once, until its size or (by its version counter) its data change.
    state = (data._version, rows, cols)
    if not sized or getattr(edge_index, "_fognn_checked", None) != state:
        _check_range("sources (row 0)", data[0], num_sources)
        _check_range("targets (row 1)", data[1], num_targets)
        key = data[1 if edge_index.is_sorted_by_col else 0]
        if bool((key[1:] < key[:-1]).any()):
            raise ValueError(
                f"edge_index must be sorted by {edge_index.sort_order}, as its sort_order says"
            )
        edge_index._fognn_checked = state
    if not sized:
        # A copy: the user's object must not cache a size that it did not state.
        size = (num_sources, num_targets)
        edge_index = EdgeIndex(data, sparse_size=size, sort_order=edge_index.sort_order)
    (ptr, index), perm = edge_index.get_csc()
    _check_ptr(ptr, num_targets, data.size(1))
    if perm is None and not torch.is_grad_enabled():
        return Adjacency(ptr, index)
    (t_ptr, t_index), t_perm = edge_index.get_csr()
    if perm is not None:  # sorted by source: the user's order is the transposed one
        t_perm = _inverse(perm)
    return Adjacency(ptr, index, perm, t_ptr, t_index, t_perm)


def _from_cache(edge_index: EdgeIndex) -> Adjacency | None:
    # Dynamo cannot trace EdgeIndex's methods, but it reads its attributes.
    ptr, t_ptr = edge_index._indptr, edge_index._T_indptr
    if edge_index.is_undirected:  # either serves for both
        ptr, t_ptr = (t_ptr if ptr is None else ptr), (ptr if t_ptr is None else t_ptr)
    t_target, t_perm = edge_index._T_index[1], edge_index._T_perm
    if not edge_index.is_sorted_by_col or any(t is None for t in (ptr, t_ptr, t_target, t_perm)):
        return None
    return Adjacency(ptr, edge_index._data[0], None, t_ptr, t_target, t_perm)


def _from_sparse(matrix: Tensor, num_sources: int, num_targets: int) -> Adjacency:
    if tuple(matrix.shape) != (num_targets, num_sources):
        raise ValueError(
            "edge_index: a sparse adjacency must have shape [num_targets, num_sources] = "
            f"[{num_targets}, {num_sources}], got {list(matrix.shape)}"
        )
    value = matrix.values()
    weight = value if value.dim() == 1 else None
    if matrix.layout == torch.sparse_csr:
        ptr, index = matrix.crow_indices(), matrix.col_indices()
        _check_ptr(ptr, num_targets, index.size(0))
        _check_range("sources (columns)", index, num_sources)
        if not torch.is_grad_enabled():
            return Adjacency(ptr, index, weight=weight)
        return Adjacency(ptr, index, None, *transpose(ptr, index, num_sources), weight)
    t_ptr, t_index = matrix.ccol_indices(), matrix.row_indices()
    _check_ptr(t_ptr, num_sources, t_index.size(0))
    _check_range("targets (rows)", t_index, num_targets)
    ptr, index, perm = transpose(t_ptr, t_index, num_targets)
    t_perm = _inverse(perm)
    weight = None if weight is None else weight.index_select(0, perm)
    return Adjacency(ptr, index, None, t_ptr, t_index, t_perm, weight)
