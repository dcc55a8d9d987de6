"""A dataset as flat columns: one tensor an attribute, and the offset of each graph."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.storage import N_KEYS

from fognn.data.pieces import offsets, positions


@dataclass(frozen=True)
class Column:
    r"""One attribute of all graphs.

    Args:
        values (torch.Tensor or list): The values of all graphs, concatenated along the first
            dimension; a list holds one object a graph.
        sizes (torch.Tensor): The number of values of each graph.
        dim (int): The dimension in which :pyg:`PyG` concatenates this attribute.
        inc (torch.Tensor, optional): The increment that each graph adds to the values of the graphs
            after it: its number of nodes for an attribute that holds node indices.
    """

    values: Tensor | list[Any]
    sizes: Tensor
    dim: int = 0
    inc: Tensor | None = None

    @property
    def ptr(self) -> Tensor:
        return offsets(self.sizes)


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

    Args:
        dataset (InMemoryDataset or sequence of Data): The dataset.
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
    if any("batch" in key or not isinstance(slices.get(key), Tensor) for key in keys):
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
    return Columns(
        Data, nodes[chosen], {key: _choose(column, chosen) for key, column in columns.items()}
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.layout == torch.strided
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _choose(column: Column, chosen: Tensor) -> Column:
    sizes, inc = column.sizes[chosen], None if column.inc is None else column.inc[chosen]
    if isinstance(column.values, list):
        values: Tensor | list[Any] = [column.values[i] for i in chosen.tolist()]
    else:
        ptr = offsets(sizes)
        rows = positions(column.ptr[chosen], sizes, ptr, int(ptr[-1]))
        values = column.values.index_select(0, rows)
    return Column(values, sizes, column.dim, inc)


def _itemwise(items: list[Any]) -> Columns:
    for i, item in enumerate(items):
        if not isinstance(item, Data) or isinstance(item, Batch):
            raise ValueError(
                f"PackedLoader: dataset[{i}] must be a Data object with one graph, "
                f"got {type(item).__name__}"
            )
    first = items[0]
    keys = [key for key in list(first.keys()) if key != "num_nodes"]
    kinds = {key: _kind(first, key) for key in keys}
    for i, item in enumerate(items):
        found = {key: _kind(item, key) for key in list(item.keys()) if key != "num_nodes"}
        if found != kinds or type(item) is not type(first):
            raise ValueError(
                f"PackedLoader: dataset[{i}] must be like dataset[0], a {type(first).__name__} "
                f"with {kinds}, got a {type(item).__name__} with {found}"
            )
    nodes = torch.tensor([item.num_nodes or 0 for item in items], dtype=torch.int64)
    columns = {}
    for key in keys:
        values = [item[key] for item in items]
        incs = [item.__inc__(key, value) for item, value in zip(items, values, strict=True)]
        if any(isinstance(inc, Tensor) and inc.numel() != 1 for inc in incs):
            raise ValueError(
                f"PackedLoader: dataset: {key!r} has a tensor as __inc__, it must be a number"
            )
        inc = torch.tensor([int(inc) for inc in incs])
        columns[key] = _join(key, values, first.__cat_dim__(key, values[0]), inc)
    return Columns(type(first), nodes, columns)


def _join(key: str, values: list[Any], dim: int | None, inc: Tensor) -> Column:
    first, ones = values[0], torch.ones(len(values), dtype=torch.int64)
    moved = inc if bool(inc.any()) else None
    if isinstance(first, int | float):
        return _column(key, torch.tensor(values), ones, 0, moved)
    if not isinstance(first, Tensor):
        return _column(key, values, ones, 0, None)
    # As in PyG, a single value or an attribute without such a dimension gets a new one.
    if first.dim() == 0 or dim is None:
        return _column(key, torch.stack(values), ones, 0, moved)
    plain = [_plain(value) for value in values]
    sizes = torch.tensor([value.size(dim) for value in plain])
    return _column(key, torch.cat(plain, dim), sizes, dim, moved)


def _column(
    key: str, value: Tensor | list[Any], sizes: Tensor, dim: int, inc: Tensor | None
) -> Column:
    if key in {"batch", "ptr"}:
        raise ValueError(f"PackedLoader: dataset: the name {key!r} is reserved for the batch")
    if isinstance(value, Tensor):
        value = _plain(value)
        if value.device.type != "cpu":
            raise ValueError(
                f"PackedLoader: dataset: {key!r} must be on the CPU, got {value.device}; "
                "move each batch with batch.to(device)"
            )
        value = value.movedim(dim, 0)
    return Column(value, sizes.to(torch.int64), dim, inc)


def _plain(value: Tensor) -> Tensor:
    return value.as_tensor() if isinstance(value, EdgeIndex) else value


def _kind(item: Data, key: str) -> str:
    r"""Type and shape of an attribute, which must be the same for all graphs."""
    value = item[key]
    if isinstance(value, Tensor) and value.layout == torch.strided:
        shape: list[Any] = list(value.shape)
        dim = item.__cat_dim__(key, value)
        if shape and dim is not None:
            shape[dim] = "*"
        return f"{value.dtype} {shape}".replace("'", "")
    if isinstance(value, Tensor | Mapping | list | tuple):
        raise ValueError(
            f"PackedLoader: dataset: {key!r} must be a dense tensor, a number or a string, got "
            f"{type(value).__name__}"
        )
    return type(value).__name__
