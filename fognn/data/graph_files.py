r"""The user's own graphs: read from :obj:`.pt` and :obj:`.npz` files, checked, and written."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.separate import separate
from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage
from torch_geometric.edge_index import CatMetadata, SortOrder

from fognn.data.sources import DAMAGED, SPLITS
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

NAMES = ("x", "edge_index", "edge_attr", "y")
MASKS = tuple(f"{split}_mask" for split in SPLITS)
# What the files of PyG's graphs name, beside tensors.
PYG_CLASSES: list[Any] = [
    *(Data, DataEdgeAttr, DataTensorAttr, EdgeIndex, CatMetadata, SortOrder),
    *(BaseStorage, EdgeStorage, GlobalStorage, NodeStorage),
]
# PyG's names for those of the "heterophilous graphs" files.
_OTHER_NAMES = {"node_features": "x", "node_labels": "y", **{f"{mask}s": mask for mask in MASKS}}


def read_graphs(path: str | Path) -> list[Data]:
    r"""Reads graphs from a file, or from all :obj:`.pt` and :obj:`.npz` files of a folder in the
    order of their names.

    * :obj:`.pt`, saved with :meth:`torch.save`: a :class:`~torch_geometric.data.Data`, a list of
      them, or the file that :meth:`InMemoryDataset.save` writes. It is loaded with
      ``weights_only=True``.
    * :obj:`.npz` of several graphs, as :meth:`write_graphs` writes it: :obj:`n` and :obj:`e`, the
      numbers of nodes and edges of each graph; :obj:`edge_index` (``[2, sum(e)]``, numbered within
      each graph) and optionally :obj:`x`, :obj:`edge_attr` and :obj:`y`, of all graphs one after
      another. Where the rows of :obj:`y` can be split in two ways, :obj:`y_level` must be
      :obj:`"graph"`, :obj:`"node"` or :obj:`"edge"`.
    * :obj:`.npz` of one graph: :obj:`edge_index`, optionally :obj:`x`, :obj:`edge_attr`, :obj:`y`,
      and :obj:`train_mask`, :obj:`val_mask` and :obj:`test_mask` (``[nodes]`` or
      ``[nodes, splits]``); or the names of the "heterophilous graphs" files:
      :obj:`node_features`, :obj:`node_labels`, :obj:`edges` (``[edges, 2]``, undirected), and
      :obj:`train_masks`, :obj:`val_masks` and :obj:`test_masks` (``[splits, nodes]``).

    The graphs are checked: edges within their nodes, finite features, all graphs alike; NaN in
    :obj:`y` is a missing target. A file that cannot be read raises a :class:`FileError`.

    Args:
        path (str or Path): The file or folder.
    """
    path = user_path(path)
    files = [path]
    if path.is_dir():
        files = sorted(f for f in path.glob("[!.]*") if f.suffix.lower() in (".pt", ".npz"))
    elif not path.is_file() or path.suffix.lower() not in (".pt", ".npz"):
        raise FileError(f"{path} is not there: name a .pt or .npz file, or a folder of them")
    return check_graphs(str(path), [graph for file in files for graph in _graphs_in(file)])


def write_graphs(path: str | Path, graphs: Iterable[Data]) -> None:
    r"""Writes graphs to a :obj:`.npz` file, whole or not at all; :meth:`read_graphs` reads it.

    Args:
        path (str or Path): The file.
        graphs (iterable): The graphs, all alike, with :obj:`edge_index` and optionally :obj:`x`,
            :obj:`edge_attr` and :obj:`y`.
    """
    path = user_path(path)
    if path.suffix.lower() != ".npz" or isinstance(graphs, Data):
        raise ValueError(
            f"write_graphs: path must end in .npz, and graphs must be a list, got {str(path)!r} "
            f"and {type(graphs).__name__}"
        )
    graphs = check_graphs("write_graphs", list(graphs))
    arrays: dict[str, Any] = {
        "n": np.array([graph.num_nodes for graph in graphs]),
        "e": np.array([graph.num_edges for graph in graphs]),
    }
    for name in NAMES:
        if name in graphs[0]:
            arrays[name] = torch.cat([graph[name] for graph in graphs], _dim(name)).numpy()
    if "y" in arrays:
        arrays["y_level"] = np.array(level_of("write_graphs", graphs))
    with write_whole(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def check_graphs(where: str, items: Sequence[Any]) -> list[Data]:
    r"""Returns checked copies of graphs, with nothing but :obj:`NAMES`, :obj:`MASKS` and the number
    of nodes, as int64 and float32. Error messages begin with :obj:`where`."""
    if not len(items):
        raise ValueError(f"{where} must hold at least one graph, it holds none")
    graphs = [_checked(f"{where}, graph {number}", item) for number, item in enumerate(items)]
    for name in NAMES:
        forms = [_form(graph, name) for graph in graphs]
        i = next((i for i, form in enumerate(forms) if form != forms[0]), 0)
        if i:
            raise ValueError(
                f"{where}, graph {i}: {name} must be {forms[0]} as in graph 0, got {forms[i]}"
            )
    return graphs


def level_of(where: str, graphs: Sequence[Data]) -> str:
    r"""Returns whether a row of :obj:`y` belongs to a ``"graph"``, ``"node"`` or ``"edge"``."""
    rows = [graph.y.size(0) for graph in graphs]
    if rows == [1] * len(graphs):
        return "graph"
    if rows == [graph.num_nodes for graph in graphs]:
        return "node"
    if rows == [graph.num_edges for graph in graphs]:
        return "edge"
    raise ValueError(
        f"{where}: y must have one row for each graph, node or edge, got {rows[0]} in {graphs[0]}"
    )


def _checked(where: str, item: Any) -> Data:
    if not isinstance(item, Data) or isinstance(item, Batch) or item.edge_index is None:
        found = item if type(item) is Data else type(item).__name__
        raise ValueError(
            f"{where} must be a Data with edge_index, and one type of nodes and edges, got {found}"
        )
    graph = Data()
    for name in (*NAMES, *MASKS):
        if item.get(name) is not None:
            graph[name] = _tensor(where, name, item[name])
    if "x" not in graph:
        graph.num_nodes = item.num_nodes
    if graph.edge_index.is_floating_point() or not graph.num_nodes:
        raise ValueError(f"{where} must have nodes, and edge_index of integers")
    try:
        graph.validate()
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if "edge_attr" in graph and len(graph.edge_attr) != graph.num_edges:
        rows = len(graph.edge_attr)
        raise ValueError(f"{where}: edge_attr must have {graph.num_edges} rows, got {rows}")
    for name in ("x", "edge_attr", "y"):
        value = graph.get(name)
        if value is not None and bool((value.isinf() if name == "y" else ~value.isfinite()).any()):
            raise ValueError(f"{where}: {name} must be finite, only y may be NaN (missing)")
    return graph


def _tensor(where: str, name: str, value: Any) -> Tensor:
    if isinstance(value, EdgeIndex):
        value = value.as_tensor()
    elif isinstance(value, int | float):
        value = torch.tensor([value])
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_complex():
        raise ValueError(f"{where}: {name} must be a dense tensor, got {type(value).__name__}")
    if name in MASKS:
        return value.bool()
    value = value.detach().cpu().to(torch.float32 if value.is_floating_point() else torch.int64)
    return value.reshape(1) if value.dim() == 0 else value


def _form(graph: Data, name: str) -> str:
    r"""Returns what an attribute must have in common in all graphs."""
    if name == "edge_index" or name not in graph:
        return "absent"
    return f"{graph[name].dtype} {['*', *graph[name].shape[1:]]}"


def _graphs_in(path: Path) -> list[Any]:
    content = _read(path)
    if isinstance(content, Data):
        return [content]
    if isinstance(content, tuple) and len(content) > 1 and not isinstance(content[1], Data):
        # The data and slices of an InMemoryDataset; a single graph has no slices.
        whole = content[0] if isinstance(content[0], Data) else Data.from_dict(content[0])
        if content[1] is None:
            return [whole]
        count = len(content[1]["edge_index"]) - 1
        return [separate(Data, whole, i, content[1], decrement=False) for i in range(count)]
    if isinstance(content, Mapping):
        return separated(str(path), content) if "n" in content else [_one_graph(content)]
    if isinstance(content, list | tuple):
        return list(content)
    raise ValueError(f"{path} must hold Data or a list of Data, got {type(content).__name__}")


def _read(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".pt":
            with torch.serialization.safe_globals(PYG_CLASSES):
                return torch.load(path, map_location="cpu", weights_only=True)
        with np.load(path, allow_pickle=False) as file:
            return {name: _of_array(file[name]) for name in file.files}
    except DAMAGED as error:
        other = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it names {other[1]}" if other else str(error).partition("\n")[0]
        raise FileError(
            f"{path} cannot be read ({reason}): it is truncated or corrupt, or not a {path.suffix} "
            "file of graphs; save a list of Data with torch.save or fognn.data.write_graphs"
        ) from error


def _of_array(array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        return str(array)
    return torch.from_numpy(array.astype(np.int64) if array.dtype.kind == "u" else array)


def _one_graph(values: Mapping[str, Any]) -> Data:
    found = {_OTHER_NAMES.get(name, name): value for name, value in values.items()}
    for mask in MASKS:
        if f"{mask}s" in values:
            found[mask] = found[mask].t()
    if "edges" in found:
        # Undirected, each given once: both directions, without repetition.
        once = found["edges"].t()
        found["edge_index"] = torch.cat([once, once.flip(0)], dim=1).unique(dim=1)
    nodes = next((len(found[name]) for name in ("x", "train_mask", "y") if name in found), None)
    known = {name: found[name] for name in (*NAMES, *MASKS) if name in found}
    return Data(**known, num_nodes=nodes)


def separated(where: str, flat: Mapping[str, Any]) -> list[Data]:
    r"""Returns the graphs of a :obj:`.npz` file of several, see :func:`read_graphs`."""
    missing = [name for name in ("e", "edge_index") if name not in flat]
    if missing:
        raise ValueError(f"{where} must have {missing[0]}, it has {', '.join(flat)}")
    n, e = flat["n"].long(), flat["e"].long()
    counts = {"x": n, "edge_index": e, "edge_attr": e}
    if "y" in flat:
        counts["y"] = _rows_of_y(where, flat, n, e)
    parts = {}
    for name, sizes in counts.items():
        if name in flat:
            value, rows = flat[name], int(sizes.sum())
            if n.shape != e.shape or value.size(_dim(name)) != rows:
                raise ValueError(f"{where}: {name} must have {rows} rows, got {list(value.shape)}")
            parts[name] = value.split(sizes.tolist(), _dim(name))
    return [
        Data(**{name: values[graph] for name, values in parts.items()}, num_nodes=nodes)
        for graph, nodes in enumerate(n.tolist())
    ]


def _rows_of_y(where: str, flat: Mapping[str, Any], n: Tensor, e: Tensor) -> Tensor:
    counts = {"graph": torch.ones_like(n), "node": n, "edge": e}
    if flat.get("y_level") in counts:
        return counts[flat["y_level"]]
    fits = [count for count in counts.values() if int(count.sum()) == flat["y"].size(0)]
    if not fits or any(not torch.equal(count, fits[0]) for count in fits):
        raise ValueError(
            f"{where}: y must have a row for each graph, node or edge, got {flat['y'].size(0)}; if "
            "that says two of them, y_level must say which"
        )
    return fits[0]


def _dim(name: str) -> int:
    return 1 if name == "edge_index" else 0
