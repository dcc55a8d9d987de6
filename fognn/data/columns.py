r"""A dataset as flat columns: one tensor an attribute, and the offset of each graph.

Long sums here and in :mod:`fognn.data.pack` use numpy: on one core it is about as fast as torch,
and it starts no threads. :meth:`torch.repeat_interleave` uses all threads for any size, so on a
machine whose cores are busy a batch would take ten times as long.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.collate import collate
from torch_geometric.data.storage import N_KEYS


@dataclass(frozen=True)
class Column:
    r"""One attribute of all graphs."""

    values: Tensor | list[Any]  # concatenated in the first dimension; a list has one object a graph
    sizes: Tensor  # the number of values of each graph
    dim: int = 0  # the dimension in which PyG concatenates this attribute
    # What each graph adds to the values of those after it: its number of nodes, for node indices.
    inc: Tensor | None = None

    def choose(self, graphs: Tensor) -> "Column":
        r"""Returns the column of some graphs."""
        sizes, inc = self.sizes[graphs], None if self.inc is None else self.inc[graphs]
        if isinstance(self.values, list):
            return Column([self.values[i] for i in graphs.tolist()], sizes, self.dim, inc)
        ptr = offsets(sizes)
        rows = positions(offsets(self.sizes)[graphs], sizes, ptr, int(ptr[-1]))
        return Column(self.values.index_select(0, rows), sizes, self.dim, inc)


@dataclass(frozen=True)
class Columns:
    r"""All attributes of all graphs, :obj:`edge_index` among them (transposed, :obj:`[E, 2]`)."""

    graph_class: type[Data]
    num_nodes: Tensor
    columns: dict[str, Column]


def read_columns(dataset: Any) -> Columns:
    r"""Reads a dataset into flat columns.

    The collated tensors of an :class:`~torch_geometric.data.InMemoryDataset` are used without a
    copy. Other sequences of :class:`~torch_geometric.data.Data` objects are read item by item, and
    so is a dataset with a :obj:`transform`, with its own :meth:`get`, or with a graph class that
    may have its own rules for batching.
    """
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise ValueError(
            "PackedLoader: dataset must be an InMemoryDataset or a list of Data, "
            f"got {type(dataset).__name__}"
        )
    if len(dataset) == 0:
        raise ValueError("PackedLoader: dataset must hold at least one graph, got none")
    if getattr(dataset, "transform", None) is not None:
        warnings.warn(
            "PackedLoader runs the dataset's transform once for each graph, when it packs them, "
            "and not again in each epoch",
            stacklevel=4,
        )
    elif isinstance(dataset, InMemoryDataset):
        columns = _collated(dataset)
        if columns is not None:
            return columns
    return _itemwise([dataset[i] for i in range(len(dataset))])


def _collated(dataset: InMemoryDataset) -> Columns | None:
    r"""The columns of a collated dataset; :obj:`None` if each item must be read."""
    data, slices = dataset._data, dataset.slices
    if slices is None or type(data) is not Data or type(dataset).get is not InMemoryDataset.get:
        return None
    keys = [key for key in list(data.keys()) if key != "num_nodes"]
    if any("batch" in key or key == "ptr" for key in keys):
        return None
    if not all(isinstance(slices.get(key), Tensor) for key in keys):
        return None
    if not all(_is_plain(data[key]) for key in keys):
        return None
    sizes = {key: slices[key].diff() for key in keys}
    nodes = getattr(data._store, "_num_nodes", None)
    if nodes is None:
        known = [sizes[key] for key in keys if key in N_KEYS]
        if "num_nodes" in data or not known:
            return None
        nodes = known[0]
    nodes = torch.as_tensor(nodes, dtype=torch.int64)

    columns = {}
    for key in keys:
        value = data[key]
        inc = nodes if isinstance(value, Tensor) and data.__inc__(key, value) != 0 else None
        columns[key] = _column(key, value, sizes[key], data.__cat_dim__(key, value), inc)
    if dataset._indices is None:
        return Columns(Data, nodes, columns)
    chosen = torch.as_tensor(list(dataset.indices()), dtype=torch.int64)
    columns = {key: column.choose(chosen) for key, column in columns.items()}
    return Columns(Data, nodes[chosen], columns)


def _itemwise(items: list[Any]) -> Columns:
    first = items[0]
    keys = sorted(set(first.keys()) - {"num_nodes"}) if isinstance(first, Data) else []
    for i, item in enumerate(items):
        one = isinstance(item, Data) and not isinstance(item, Batch)
        if not one or type(item) is not type(first) or {*item.keys()} - {"num_nodes"} != {*keys}:
            raise ValueError(
                f"PackedLoader: dataset[{i}] must be one graph, a {type(first).__name__} with "
                f"{keys}, as dataset[0], got {item}"
            )
    for key in keys:
        if key in ("batch", "ptr"):
            raise ValueError(f"PackedLoader: dataset: the name {key!r} is reserved for the batch")
        value = first[key]
        if not _is_plain(value) and isinstance(value, Tensor | Mapping | list | tuple):
            raise ValueError(
                f"PackedLoader: dataset: {key!r} must be a dense tensor, a number or a string, got "
                f"{type(value).__name__}"
            )
    try:
        joined, slices, _ = collate(type(first), items, increment=False, add_batch=False)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"PackedLoader: dataset must hold graphs of one form: {error}") from error

    nodes = torch.tensor([item.num_nodes or 0 for item in items], dtype=torch.int64)
    columns = {}
    for key in keys:
        incs = [item.__inc__(key, item[key]) for item in items]
        if any(isinstance(inc, Tensor) and inc.numel() != 1 for inc in incs):
            raise ValueError(
                f"PackedLoader: dataset: {key!r} has a tensor as __inc__, it must be a number"
            )
        inc = torch.tensor([int(inc) for inc in incs])
        dim = first.__cat_dim__(key, first[key])
        sizes = slices[key].diff()
        columns[key] = _column(key, joined[key], sizes, dim or 0, inc if bool(inc.any()) else None)
    return Columns(type(first), nodes, columns)


def _column(
    key: str, value: Tensor | list[Any], sizes: Tensor, dim: int, inc: Tensor | None
) -> Column:
    if isinstance(value, Tensor):
        value = value.as_tensor() if isinstance(value, EdgeIndex) else value
        if value.device.type != "cpu":
            raise ValueError(
                f"PackedLoader: dataset: {key!r} must be on the CPU, got {value.device}; "
                "move each batch with batch.to(device)"
            )
        value = value.movedim(dim, 0)
    return Column(value, sizes.to(torch.int64), dim, inc)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.layout == torch.strided
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


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
