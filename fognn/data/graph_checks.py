r"""Checks of the user's own graphs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from fognn.utils import checks

__all__ = [
    "LEVELS",
    "NAMES",
    "GraphList",
    "array_key",
    "count_values",
    "cut_graphs",
    "row_dim",
    "tensor_of",
]

NAMES = ("x", "edge_index", "edge_attr", "y")
_NEEDED = ("n", "e", "edge_index")
LEVELS = ("graph", "node", "edge")
MOST_CLASSES = 1_000_000
_PER_VALUE = 1000  # classes, or tokens, for each one that occurs
_NODES = 10_000_000  # of a graph without features; more if it has many edges
_EXPANDED = 10_000_000  # numbers of a tensor that repeats some of them


class GraphList:
    r"""Graphs that passed the checks and are all alike, in :obj:`graphs`."""

    def __init__(self) -> None:
        self.graphs: list[Data] = []
        self._kinds: dict[str, tuple[Any, ...]] = {}
        self._levels = list(LEVELS)

    @property
    def level(self) -> str:
        r"""Whether a row of :obj:`y` belongs to a graph, a node or an edge. Where several levels
        fit all graphs, they split :obj:`y` in the same way, and the first is returned."""
        return self._levels[0]

    def add(self, where: str, item: Any) -> None:
        r"""Checks a graph and adds it as int64 and float32, with nothing but :obj:`NAMES`, and
        :obj:`num_nodes` if it has no :obj:`x`.

        Args:
            where (str): The beginning of the error message for a wrong graph.
            item (Data): The graph.
        """
        graph = _checked(where, item)
        kinds = {
            name: (graph[name].dtype, *graph[name].shape[1:]) for name in NAMES if name in graph
        }
        kinds["edge_index"] = (torch.int64,)
        self._kinds = self._kinds or kinds
        if kinds != self._kinds:
            raise ValueError(
                f"{where} has {_in_words(kinds)}, it must be like the first graph, which has "
                f"{_in_words(self._kinds)}"
            )
        if "y" in kinds:
            fits = _levels(graph)
            self._levels = [level for level in self._levels if level in fits]
            if not self._levels:
                raise ValueError(
                    f"{where}: y must have one row, or a row for each of {graph.num_nodes} nodes, "
                    f"or one for each of {graph.edge_index.size(1)} edges, in all graphs the same, "
                    f"got shape {list(graph.y.shape)}"
                )
        self.graphs.append(graph)


def tensor_of(where: str, name: str, value: Any) -> Tensor:
    r"""Returns an int64 or float32 tensor from a tensor, an array or a number.

    Args:
        where (str): The beginning of the error message for a wrong value.
        name (str): One of :obj:`NAMES`, or the name of a count.
        value (Any): The value.
    """
    if isinstance(value, bool | int | float):
        value = torch.tensor(value)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.itemsize <= 8:
        value = torch.from_numpy(value.astype(value.dtype.newbyteorder("=")))
    elif isinstance(value, EdgeIndex):
        value = value.as_tensor()
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_complex():
        kind = getattr(value, "layout", None) or getattr(value, "dtype", type(value).__name__)
        raise ValueError(f"{where}: {name} must be a dense tensor of numbers, got {kind}")
    value = value.resolve_conj().resolve_neg()
    special = [kind for kind in ("meta", "quantized", "nested") if getattr(value, f"is_{kind}")]
    if special:
        raise ValueError(
            f"{where}: {name} must be a dense tensor of numbers, got a {special[0]} one"
        )
    stored = value.untyped_storage().nbytes() // value.element_size()
    if value.numel() > max(stored, _EXPANDED):
        raise ValueError(
            f"{where}: {name} must be stored in full, got {value.numel():,} numbers expanded from "
            f"{stored:,}"
        )
    if name not in ("x", "edge_attr", "y") and (
        value.is_floating_point() or value.dtype == torch.bool
    ):
        raise ValueError(f"{where}: {name} must hold integers, got {value.dtype}")
    return value.detach().to(torch.float32 if value.is_floating_point() else torch.int64)


def count_values(where: str, name: str, values: Sequence[Tensor]) -> int:
    r"""Returns the number of classes, or of tokens: the largest one that occurs, plus 1.

    A network has weights for each of them, so a number that is far above those that occur, such
    as an identifier or a hash, raises a :class:`ValueError`.

    Args:
        where (str): The beginning of the error message.
        name (str): One of :obj:`NAMES`.
        values (list): Integer tensors, one for each graph.
    """
    most = max((int(value.max()) for value in values if value.numel()), default=0) + 1
    if most > _PER_VALUE:
        different = torch.cat([value.reshape(-1) for value in values]).unique().numel()
        limit = min(MOST_CLASSES, _PER_VALUE * different)
        if most > limit:
            graph = next(n for n, v in enumerate(values) if v.numel() and int(v.max()) == most - 1)
            raise ValueError(
                f"{where}, graph {graph}: {name} of integers must be below {limit:,} (at most "
                f"{MOST_CLASSES:,}, and {_PER_VALUE:,} for each of the {different:,} that occur), "
                f"got {most - 1}: number the classes or tokens from 0, without large gaps"
            )
    return most


def _checked(where: str, item: Any) -> Data:
    if not isinstance(item, Data) or isinstance(item, Batch):
        raise ValueError(f"{where} must be a Data with one graph, got {type(item).__name__}")
    given = {key: value for key, value in item.to_dict().items() if value is not None}
    if "edge_index" not in given:
        raise ValueError(f"{where} must have edge_index, it has only {sorted(given)}")
    values = {name: tensor_of(where, name, given[name]) for name in NAMES if name in given}
    if "y" in values and values["y"].dim() == 0:
        values["y"] = values["y"].reshape(1)
    graph = Data(**values)
    _check_sizes(where, graph, given.get("num_nodes"))
    for name in ("x", "edge_attr", "y"):
        value = values.get(name)
        if value is not None and value.is_floating_point() and value.numel():
            # NaN in y is a missing target.
            known = value.masked_fill(value.isnan(), 0) if name == "y" else value
            checks.finite(where, name, known.reshape(len(value), -1))
    return graph


def _check_sizes(where: str, graph: Data, num_nodes: int | None) -> None:
    x, edge_index = graph.x, graph.edge_index
    if x is None:
        if num_nodes is None:  # as in PyG, without isolated nodes at the end
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        if not isinstance(num_nodes, int) or isinstance(num_nodes, bool) or num_nodes < 1:
            raise ValueError(
                f"{where} must have x with a row for each node, or num_nodes, the number of its "
                f"nodes, got num_nodes={num_nodes!r}"
            )
        most = max(_NODES, _PER_VALUE * edge_index.shape[-1]) if edge_index.dim() else _NODES
        if num_nodes > most:
            raise ValueError(
                f"{where}: num_nodes, or the largest number in edge_index, must be at most "
                f"{most:,} for a graph without x, got {num_nodes}: number the nodes from 0, "
                "without large gaps"
            )
        graph.num_nodes = num_nodes
    elif x.dim() == 0 or x.size(0) == 0 or num_nodes not in (None, x.size(0)):
        nodes = "its nodes, at least one" if num_nodes is None else f"its {num_nodes} nodes"
        raise ValueError(f"{where}: x must have a row for each of {nodes}, got {list(x.shape)}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(
            f"{where}: edge_index must have shape [2, edges], got {list(edge_index.shape)}"
        )
    wrong = checks.outside(edge_index, graph.num_nodes)
    if wrong is not None:
        raise ValueError(
            f"{where}: edge_index must lie in 0..{graph.num_nodes - 1}, the nodes of the graph, "
            f"got {wrong}"
        )
    if "edge_attr" in graph:
        checks.per_edge(where, "edge_attr", graph.edge_attr, edge_index.size(1))


def _levels(graph: Data) -> set[str]:
    rows = {"graph": 1, "node": graph.num_nodes, "edge": graph.edge_index.size(1)}
    return {level for level, count in rows.items() if graph.y.size(0) == count}


def _in_words(kinds: dict[str, tuple[Any, ...]]) -> str:
    return ", ".join(
        f"{name} {str(dtype).removeprefix('torch.')} {['*', *shape]}".replace("'", "")
        for name, (dtype, *shape) in kinds.items()
        if name != "edge_index"
    )


def array_key(split: str | None, name: str) -> str:
    r"""Returns the name under which a file has an array of a split."""
    return name if split is None else f"{split}_{name}"


def row_dim(name: str) -> int:
    r"""Returns the dimension along which graphs are joined."""
    return 1 if name == "edge_index" else 0


def cut_graphs(where: str, arrays: dict[str, Any], split: str | None) -> list[Data]:
    r"""Splits flat arrays into graphs; see :meth:`~fognn.data.read_graphs` for the arrays.

    Args:
        where (str): The beginning of the error message for wrong arrays.
        arrays (dict): The arrays by name.
        split (str, optional): The split to take.
    """
    missing = [key for name in _NEEDED if (key := array_key(split, name)) not in arrays]
    if missing:
        found = sorted(str(key) for key in arrays)
        splits = [key.removesuffix("_edge_index") for key in found if key.endswith("_edge_index")]
        if splits:
            raise ValueError(
                f"read_graphs: split must be one of {splits}, which {where} has, got {split!r}"
            )
        has = ", ".join(found[:10]) + (", ..." if len(found) > 10 else "")
        raise ValueError(f"{where} must have {', '.join(missing)}, it has {has or 'nothing'}")
    flat = {
        name: tensor_of(where, name, arrays[key])
        for name in dict.fromkeys((*_NEEDED, *NAMES))
        if (key := array_key(split, name)) in arrays
    }
    n, e = flat.pop("n"), flat.pop("e")
    if n.dim() != 1 or n.shape != e.shape or (n < 0).any() or (e < 0).any():
        raise ValueError(
            f"{where}: n and e must be counts, one of each a graph, got shapes {list(n.shape)} and "
            f"{list(e.shape)}{', some below 0' if n.shape == e.shape else ''}"
        )
    counts = {"x": n, "edge_index": e, "edge_attr": e}
    if "y" in flat:
        counts["y"] = _counts_of_y(where, flat["y"], n, e, arrays.get(array_key(split, "y_level")))
    pieces = {}
    for name, value in flat.items():
        total = sum(counts[name].tolist())  # of Python: a sum of torch can overflow
        if value.dim() <= row_dim(name) or value.size(row_dim(name)) != total:
            raise ValueError(
                f"{where}: {name} must have {total} {'columns' if row_dim(name) else 'rows'}, "
                f"the sum of its counts, got shape {list(value.shape)}"
            )
        pieces[name] = value.split(counts[name].tolist(), row_dim(name))
    graphs = [Data(**{name: pieces[name][graph] for name in flat}) for graph in range(len(n))]
    if "x" not in flat:
        for graph, nodes in zip(graphs, n.tolist(), strict=True):
            graph.num_nodes = nodes
    return graphs


def _counts_of_y(where: str, y: Tensor, n: Tensor, e: Tensor, level: Any) -> Tensor:
    counts = dict(zip(LEVELS, (torch.ones_like(n), n, e), strict=True))
    if level is not None:
        if str(level) not in counts:
            raise ValueError(f"{where}: y_level must be one of {list(LEVELS)}, got {str(level)!r}")
        return counts[str(level)]
    rows = y.size(0) if y.dim() else 0
    fits = [name for name, count in counts.items() if int(count.sum()) == rows]
    if not fits:
        totals = " or ".join(f"{int(count.sum())} ({name}s)" for name, count in counts.items())
        raise ValueError(f"{where}: y must have {totals} rows, got {rows}")
    if any(not torch.equal(counts[name], counts[fits[0]]) for name in fits):
        raise ValueError(
            f"{where}: y has a row for each {' or for each '.join(fits)}, which its {rows} rows do "
            "not tell: y_level must say which"
        )
    return counts[fits[0]]
