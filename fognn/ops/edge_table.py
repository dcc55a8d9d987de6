r"""Features of edges of which many are equal, and the sums over edges that take them."""

from collections.abc import Callable
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from fognn.ops import kernels
from fognn.ops.adjacency import Adjacency, rows_of
from fognn.ops.spmm import segment_sum

# With more different rows, a sum over each edge is faster than one over each pair of node and row.
_MOST_ROWS = 64


class EdgeTable(NamedTuple):
    r"""Edge features as a table of their different rows, such as the vectors of four types of
    bonds: nothing of edges x channels is stored or computed.

    Args:
        values (torch.Tensor): The rows, ``[num_rows, channels]``.
        row (torch.Tensor): The row of each edge, ``[num_edges]``.
        counts (torch.Tensor, optional): How often each row occurs among the in-edges of each node,
            ``[num_targets, num_rows]``, if it is known. (default: :obj:`None`)
    """

    values: Tensor
    row: Tensor
    counts: Tensor | None = None

    @property
    def features(self) -> Tensor:
        """The features of each edge, ``[num_edges, channels]``."""
        return self.values.index_select(0, self.row)

    def counted(self, adj: Adjacency) -> "EdgeTable":
        """Returns the table with its counts, for rows in the order of ``adj``. Layers that
        share a table then do not count again."""
        if self.values.size(0) > _MOST_ROWS:
            return self
        return self._replace(counts=_counts(adj, self, None))


Edges = Tensor | EdgeTable
# PyG inspects the signatures of layers, and does not read types that are written with "|".
OptEdges = Optional[Edges]  # noqa: UP045


def map_edges(edges: Edges, function: Callable[[Tensor], Tensor]) -> Edges:
    r"""Applies a function of rows to edge features.

    Args:
        edges (torch.Tensor or EdgeTable): The edge features.
        function (Callable): The function.
    """
    if isinstance(edges, EdgeTable):
        return edges._replace(values=function(edges.values))
    return function(edges)


def rows_of_edges(edges: Edges) -> Tensor:
    """Returns edge features as one row for each edge."""
    return edges.features if isinstance(edges, EdgeTable) else edges


def edge_sum(adj: Adjacency, edges: Edges, weight: Tensor | None = None) -> Tensor:
    r"""Sums edge features over the in-edges of each node, ``[num_targets, channels]``.

    Args:
        adj (Adjacency): The graph.
        edges (torch.Tensor or EdgeTable): The edge features, in the order of ``adj``.
        weight (torch.Tensor, optional): Edge weights, ``[num_edges]``. (default: :obj:`None`)
    """
    if isinstance(edges, EdgeTable) and edges.values.size(0) <= _MOST_ROWS:
        counts = edges.counts
        if counts is None or weight is not None:
            counts = _counts(adj, edges, weight)
        return counts.to(edges.values.dtype) @ edges.values
    value = rows_of_edges(edges)
    if weight is not None:
        value = value * weight.to(value.dtype).unsqueeze(1)
    return segment_sum(adj.ptr, value)


def _counts(adj: Adjacency, edges: EdgeTable, weight: Tensor | None) -> Tensor:
    rows = edges.values.size(0)
    if weight is None:
        weight = edges.values.new_ones(adj.num_edges)
    place = adj.target * rows + edges.row.to(adj.ptr.dtype)
    flat = weight.new_zeros(adj.num_targets * rows).index_add(0, place, weight)
    return flat.view(adj.num_targets, rows)


def relu_sum(adj: Adjacency, x: Tensor, edges: Edges, weight: Tensor | None = None) -> Tensor:
    r"""Sums :math:`w_{vu} \, \textrm{ReLU}(\mathbf{x}_u + \mathbf{e}_{vu})` over the in-edges of
    each node, ``[num_targets, channels]``, the sum of GINE.

    Args:
        adj (Adjacency): The graph.
        x (torch.Tensor): Features of the sources, ``[num_sources, channels]``.
        edges (torch.Tensor or EdgeTable): The edge features, in the order of ``adj``.
        weight (torch.Tensor, optional): Edge weights, ``[num_edges]``. (default: :obj:`None`)
    """
    values = edges.values if isinstance(edges, EdgeTable) else edges
    if weight is None and kernels.has_loops(x, values):
        index = edges.row if isinstance(edges, EdgeTable) else None
        return _relu_sum(x.contiguous(), values.contiguous(), index, adj.ptr, adj.source)
    return _relu_sum_plain(x, rows_of_edges(edges), adj.ptr, adj.source, weight)


def _relu_sum_plain(
    x: Tensor, e: Tensor, ptr: Tensor, source: Tensor, weight: Tensor | None
) -> Tensor:
    message = (x.index_select(0, source) + e).relu()
    if weight is not None:
        message = message * weight.to(message.dtype).unsqueeze(1)
    return segment_sum(ptr, message)


def _index(index: Tensor | None, values: Tensor, num_edges: int) -> Tensor:
    if index is None:
        return torch.arange(num_edges)
    kernels.check_sources(index, values.size(0))
    return index


@torch.library.custom_op("fognn::relu_sum", mutates_args=())
def _relu_sum(
    x: Tensor, values: Tensor, index: Tensor | None, ptr: Tensor, source: Tensor
) -> Tensor:
    kernels.check_sources(source, x.size(0))
    out = x.new_zeros(ptr.size(0) - 1, x.size(1))
    rows = _index(index, values, source.size(0))
    kernels.loop("relu_sum", kernels.parts_of(ptr), x, values, rows, ptr, source, out)
    return out


@_relu_sum.register_fake
def _(x, values, index, ptr, source):  # type: ignore[no-untyped-def]
    return x.new_empty(ptr.size(0) - 1, x.size(1))


@torch.library.custom_op("fognn::relu_sum_backward", mutates_args=())
def _relu_sum_backward(
    grad: Tensor, x: Tensor, values: Tensor, index: Tensor | None, ptr: Tensor, source: Tensor
) -> tuple[Tensor, Tensor]:
    grad_x, grad_values = torch.zeros_like(x), torch.zeros_like(values)
    rows = _index(index, values, source.size(0))
    bands = kernels.bands_of(x.size(1))
    kernels.loop(
        "relu_sum_backward", bands, grad, x, values, rows, ptr, source, grad_x, grad_values
    )
    return grad_x, grad_values


@_relu_sum_backward.register_fake
def _(grad, x, values, index, ptr, source):  # type: ignore[no-untyped-def]
    return torch.empty_like(x), torch.empty_like(values)


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    x, values, index, ptr, source = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # A second derivative is needed: the same in differentiable operations.
        e = values if index is None else values.index_select(0, index)
        message = grad.index_select(0, rows_of(ptr, source.size(0)))
        message = message * (x.index_select(0, source) + e > 0)
        grad_x = torch.zeros_like(x).index_add(0, source, message)
        if index is not None:
            message = torch.zeros_like(values).index_add(0, index, message)
        return grad_x, message, None, None, None
    grad_x, grad_values = _relu_sum_backward(grad.contiguous(), x, values, index, ptr, source)
    return grad_x, grad_values, None, None, None


_relu_sum.register_autograd(_backward, setup_context=_setup)
