r"""Graphs of a user's own, read from files and written to one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fognn.datasets.graph_checks import LEVELS, NAMES, GraphList, tensor_of
from fognn.datasets.graph_pt import load_pt
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, write_whole

__all__ = ["read_graphs", "write_graphs"]

_ENDINGS = (".pt", ".npz")
_NEEDED = ("n", "e", "x", "edge_index")


def read_graphs(path: str | Path, split: str | None = None) -> list[Data]:
    r"""Reads graphs from a file, or from all :obj:`.pt` and :obj:`.npz` files of a folder in the
    order of their names.

    * :obj:`.pt`, saved with :meth:`torch.save`: a :class:`~torch_geometric.data.Data`, a list or
      tuple of them, a :class:`~torch_geometric.data.Batch`, the data and slices of an
      :class:`~torch_geometric.data.InMemoryDataset`, or a dict of tensors as in the other form.
      A file that names anything else is refused, and no code of it is run.
    * :obj:`.npz`, as :meth:`write_graphs` writes it: :obj:`n` and :obj:`e`, how many nodes and
      edges each graph has; :obj:`x`, :obj:`edge_index` (``[2, sum(e)]``, numbered within each
      graph) and perhaps :obj:`edge_attr` and :obj:`y`, of all graphs one after another. Where the
      rows of :obj:`y` can be cut in two ways, :obj:`y_level` says :obj:`"graph"`, :obj:`"node"` or
      :obj:`"edge"`.

    Each graph has :obj:`x` with a row a node, :obj:`edge_index` in the order of the file, and
    :obj:`edge_attr` and :obj:`y` if the file has them; other attributes are left out. Integers
    are :obj:`torch.int64` and other numbers :obj:`torch.float32`, as in all datasets here.

    A file that cannot be read is a :class:`~fognn.datasets.FileError`. A graph that is wrong, or
    not like the first one, is a :class:`ValueError` with the file and the number of the graph in
    it, from 0.

    Args:
        path (str or Path): The file or folder.
        split (str, optional): If given, takes :obj:`{split}_x` for :obj:`x`, and so on.
    """
    graphs = GraphList()
    for file in _files(Path(path).expanduser()):
        found = _read_npz(file, split) if file.suffix.lower() == ".npz" else load_pt(file)
        if isinstance(found, dict):
            found = _cut(file, found, split)
        elif split is not None:
            raise ValueError(
                f"read_graphs: split must be None for {file}, which has no splits, got {split!r}"
            )
        if not found:
            raise ValueError(f"{file} must hold at least one graph, it holds none")
        for number, graph in enumerate(found):
            graphs.add(f"{file}, graph {number}", graph)
    return graphs.graphs


def write_graphs(path: str | Path, graphs: Iterable[Data]) -> None:
    r"""Writes graphs to a :obj:`.npz` file, whole or not at all; :meth:`read_graphs` gives them
    back.

    Each has :obj:`x`, :obj:`edge_index` and perhaps :obj:`edge_attr` and :obj:`y` (a row a node,
    a row an edge, or one row), and is checked as in :meth:`read_graphs`. Integers lie on disk in
    the smallest type that holds them.

    Args:
        path (str or Path): The file.
        graphs (iterable): The graphs, all alike.
    """
    path = Path(path).expanduser()
    if path.suffix.lower() != ".npz":
        raise ValueError(f"write_graphs: path must end in .npz, got {str(path)!r}")
    if isinstance(graphs, Data):
        raise ValueError("write_graphs: graphs must be a list of Data, got a single one")
    checked = GraphList()
    for number, graph in enumerate(graphs):
        where = f"write_graphs: graphs[{number}]"
        checked.add(where, graph)
        lost = sorted(set(graph.keys()) - {*NAMES, "num_nodes"})
        if lost:
            raise ValueError(f"{where} must have nothing but {', '.join(NAMES)}, got {lost} too")
    if not checked.graphs:
        raise ValueError("write_graphs: graphs must hold at least one graph, got none")
    arrays: dict[str, Any] = {
        "n": np.array([graph.x.size(0) for graph in checked.graphs]),
        "e": np.array([graph.edge_index.size(1) for graph in checked.graphs]),
    }
    for name in checked.graphs[0].to_dict():
        parts = [graph[name] for graph in checked.graphs]
        arrays[name] = torch.cat(parts, _dim(name)).numpy()
    arrays = {name: _narrowed(array) for name, array in arrays.items()}
    if "y" in arrays:
        arrays["y_level"] = np.array(checked.level)
    with write_whole(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        # A hidden file is half of one that somebody writes just now.
        shown = (file for file in path.iterdir() if not file.name.startswith("."))
        files = sorted(file for file in shown if file.suffix.lower() in _ENDINGS)
        if not files:
            raise ValueError(f"read_graphs: path must have a .pt or .npz file in it, {path} has no")
        return files
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(
            f"read_graphs: path must be a folder, or end in .pt or .npz, got {str(path)!r}"
        )
    if not path.exists():
        raise FileError(f"{path} is not there: name a .pt or .npz file, or a folder of them")
    return [path]


def _read_npz(path: Path, split: str | None) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            # Other splits may be large: of them the names are enough.
            wanted = {_prefixed(split, name) for name in (*_NEEDED, *NAMES, "y_level")}
            return {key: file[key] if key in wanted else None for key in file.files}
    except DAMAGE as error:
        raise FileError(
            f"{path} is not a whole .npz file of numbers ({error}): write it again, with "
            "numpy.savez or fognn.datasets.write_graphs"
        ) from error


def _prefixed(split: str | None, name: str) -> str:
    return name if split is None else f"{split}_{name}"


def _dim(name: str) -> int:
    return 1 if name == "edge_index" else 0


def _cut(path: Path, arrays: dict[str, Any], split: str | None) -> list[Data]:
    missing = [key for name in _NEEDED if (key := _prefixed(split, name)) not in arrays]
    if missing:
        found = sorted(str(key) for key in arrays)
        splits = [key.removesuffix("_edge_index") for key in found if key.endswith("_edge_index")]
        if splits:
            raise ValueError(
                f"read_graphs: split must be one of {splits}, which {path} has, got {split!r}"
            )
        has = ", ".join(found[:10]) + (", ..." if len(found) > 10 else "")
        raise ValueError(f"{path} must have {', '.join(missing)}, it has {has or 'nothing'}")
    flat = {
        name: tensor_of(str(path), name, arrays[key])
        for name in dict.fromkeys((*_NEEDED, *NAMES))
        if (key := _prefixed(split, name)) in arrays
    }
    n, e = flat.pop("n"), flat.pop("e")
    if n.dim() != 1 or n.shape != e.shape or (n < 0).any() or (e < 0).any():
        raise ValueError(
            f"{path}: n and e must be counts, one of each a graph, got shapes {list(n.shape)} and "
            f"{list(e.shape)}{', some below 0' if n.shape == e.shape else ''}"
        )
    counts = {"x": n, "edge_index": e, "edge_attr": e}
    if "y" in flat:
        counts["y"] = _counts_of_y(path, flat["y"], n, e, arrays.get(_prefixed(split, "y_level")))
    pieces = {}
    for name, value in flat.items():
        total = int(counts[name].sum())
        if value.dim() <= _dim(name) or value.size(_dim(name)) != total:
            raise ValueError(
                f"{path}: {name} must have {total} {'columns' if _dim(name) else 'rows'}, "
                f"the sum of its counts, got shape {list(value.shape)}"
            )
        pieces[name] = value.split(counts[name].tolist(), _dim(name))
    return [Data(**{name: pieces[name][graph] for name in flat}) for graph in range(len(n))]


def _counts_of_y(path: Path, y: Tensor, n: Tensor, e: Tensor, level: Any) -> Tensor:
    counts = dict(zip(LEVELS, (torch.ones_like(n), n, e), strict=True))
    if level is not None:
        if str(level) not in counts:
            raise ValueError(f"{path}: y_level must be one of {list(LEVELS)}, got {str(level)!r}")
        return counts[str(level)]
    rows = y.size(0) if y.dim() else 0
    fits = [name for name, count in counts.items() if int(count.sum()) == rows]
    if not fits:
        totals = " or ".join(f"{int(count.sum())} ({name}s)" for name, count in counts.items())
        raise ValueError(f"{path}: y must have {totals} rows, got {rows}")
    if any(not torch.equal(counts[name], counts[fits[0]]) for name in fits):
        raise ValueError(
            f"{path}: y has a row for each {' or for each '.join(fits)}, which its {rows} rows do "
            "not tell: y_level must say which"
        )
    return counts[fits[0]]


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "i" or not array.size:
        return array
    small = np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
    # A common type of int8 and uint64 would be a float.
    return array.astype(small) if small.kind in "iu" else array
