r"""The user's own graphs: read from :obj:`.pt` and :obj:`.npz` files, written to :obj:`.npz`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.edge_index import CatMetadata, SortOrder

from fognn.data.graph_checks import NAMES, GraphList, array_key, cut_graphs, row_dim
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, check_regular, user_path, write_whole
from fognn.utils.npz_files import load_npz, npz_names
from fognn.utils.torch_files import RefusedNameError, check_sums, is_zip, load_torch

__all__ = ["SAFE_NAMES", "load_pt", "read_graphs", "write_graphs"]

_ENDINGS = (".pt", ".npz")
_WANTED = (
    "save a list of Data (of a dataset, list(dataset)) with torch.save, or write the graphs with "
    "fognn.data.write_graphs"
)


def read_graphs(path: str | Path, split: str | None = None) -> list[Data]:
    r"""Reads graphs from a file, or from all :obj:`.pt` and :obj:`.npz` files of a folder in the
    order of their names.

    * :obj:`.pt`, saved with :meth:`torch.save`: a :class:`~torch_geometric.data.Data`, a list or
      tuple of them, a :class:`~torch_geometric.data.Batch`, the data and slices of an
      :class:`~torch_geometric.data.InMemoryDataset`, or a dict of tensors with the names of the
      other format. A file that names anything else raises an error, and none of its code is run.
    * :obj:`.npz`, as :meth:`write_graphs` writes it: :obj:`n` and :obj:`e`, the numbers of nodes
      and edges of each graph; :obj:`edge_index` (``[2, sum(e)]``, numbered within each graph) and
      optionally :obj:`x`, :obj:`edge_attr` and :obj:`y`, of all graphs one after another. Where
      the rows of :obj:`y` can be split in two ways, :obj:`y_level` must be :obj:`"graph"`,
      :obj:`"node"` or :obj:`"edge"`.

    Each graph has :obj:`edge_index` in the order of the file, and :obj:`x` with a row a node,
    :obj:`edge_attr` and :obj:`y` if the file has them; other attributes are left out. Without
    :obj:`x` it has :obj:`num_nodes`, else the largest node of :obj:`edge_index` is the last one.
    Integers are :obj:`torch.int64` and other numbers :obj:`torch.float32`, as in all datasets here.
    NaN in :obj:`y` is a missing target.

    A file that cannot be read raises a :class:`~fognn.data.FileError`. A graph that is wrong,
    or not like the first one, raises a :class:`ValueError` that names the file and the number of
    the graph, counted from 0.

    Args:
        path (str or Path): The file or folder.
        split (str, optional): If given, reads :obj:`{split}_x` for :obj:`x`, and so on.
            (default: :obj:`None`)
    """
    graphs = GraphList()
    for file in _files(user_path(path)):
        check_regular(file)
        found = _read_npz(file, split) if file.suffix.lower() == ".npz" else load_pt(file)
        if isinstance(found, dict):
            found = cut_graphs(str(file), found, split)
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
    r"""Writes graphs to a :obj:`.npz` file, whole or not at all; :meth:`read_graphs` reads it.

    Each has :obj:`edge_index` and optionally :obj:`x`, :obj:`edge_attr` and :obj:`y` (a row a
    node, a row an edge, or one row), and is checked as in :meth:`read_graphs`. Integers are stored
    in the smallest type that holds them.

    Args:
        path (str or Path): The file.
        graphs (iterable): The graphs, all alike.
    """
    path = user_path(path)
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
        "n": np.array([graph.num_nodes for graph in checked.graphs]),
        "e": np.array([graph.edge_index.size(1) for graph in checked.graphs]),
    }
    for name in NAMES:
        if name not in checked.graphs[0]:
            continue
        parts = [graph[name] for graph in checked.graphs]
        arrays[name] = torch.cat(parts, row_dim(name)).numpy()
    arrays = {name: _narrowed(array) for name, array in arrays.items()}
    if "y" in arrays:
        arrays["y_level"] = np.array(checked.level)
    with write_whole(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        # A hidden file may be one that is being written.
        shown = (file for file in path.iterdir() if not file.name.startswith("."))
        files = sorted(file for file in shown if file.suffix.lower() in _ENDINGS)
        if not files:
            raise ValueError(f"read_graphs: path must have a .pt or .npz file in it, {path} has no")
        return files
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(
            f"read_graphs: path must be a folder, or end in .pt or .npz, got {str(path)!r}"
        )
    if not path.exists() and not path.is_symlink():
        raise FileError(f"{path} is not there: name a .pt or .npz file, or a folder of them")
    return [path]


def _read_npz(path: Path, split: str | None) -> dict[str, Any]:
    try:
        # Other splits may be large, and only their names are needed.
        wanted = {array_key(split, name) for name in ("n", "e", *NAMES, "y_level")}
        return dict.fromkeys(npz_names(path)) | load_npz(path, wanted)
    except DAMAGE as error:
        raise FileError(
            f"{path} is not a whole .npz file of numbers ({error}): write it again, with "
            "numpy.savez or fognn.data.write_graphs"
        ) from error


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind != "i" or not array.size:
        return array
    small = np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
    # A common type of int8 and uint64 would be a float.
    return array.astype(small) if small.kind in "iu" else array


def load_pt(path: Path, mmap: bool = False) -> list[Any] | dict[str, Any]:
    r"""Returns the graphs of a :obj:`.pt` file, unchecked, or a dict of flat tensors.

    Args:
        path (Path): The file.
        mmap (bool, optional): As in :meth:`fognn.utils.torch_files.load_torch`; the checksums are
            then not compared. (default: :obj:`False`)
    """
    path = Path(path)
    check_regular(path)
    # Not PyG's own reader, which falls back to running a file that names other things.
    try:
        # torch's format before version 1.6 has no checksums, and cannot be mapped.
        if is_zip(path) and not mmap:
            check_sums(path)
        return _graphs_in(load_torch(path, SAFE_NAMES, mmap=mmap and is_zip(path)))
    except _NoGraphsError as error:
        raise ValueError(f"{path} holds {error}: {_WANTED}") from error
    except RefusedNameError as error:
        raise FileError(
            f"{path} is not read, it names {error.name}, which no graph needs: {_WANTED}"
        ) from error
    except DAMAGE as error:
        what = f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else "cut off"
        raise FileError(f"{path} is not a whole .pt file of graphs ({what}): {_WANTED}") from error


class _NoGraphsError(Exception):
    r"""The file could be read, and has no graphs in it."""


def _graphs_in(content: Any) -> list[Any] | dict[str, Any]:
    if isinstance(content, dict):
        return content
    if isinstance(content, Batch):
        if not hasattr(content, "_slice_dict"):
            raise _NoGraphsError("a Batch that does not know where its graphs begin")
        content = content.to_data_list()
    elif isinstance(content, Data):
        content = [content]
    elif _is_collated(content):
        dataset = InMemoryDataset()
        first = content[0]
        dataset._data = Data.from_dict(first) if isinstance(first, dict) else first
        dataset.slices = content[1]
        content = [dataset.get(index) for index in range(dataset.len())]
    if not isinstance(content, list | tuple):
        raise _NoGraphsError(f"a {type(content).__name__}")
    # New objects: a file can set any attribute of an object of PyG.
    return [Data.from_dict(item.to_dict()) if type(item) is Data else item for item in content]


def _is_collated(content: Any) -> bool:
    return (
        isinstance(content, tuple)
        and len(content) in (2, 3)
        and isinstance(content[0], Data | dict)
        and isinstance(content[1], dict | None)
    )


def _new_batch(*_: type) -> Any:
    return Batch(_base_cls=Data)


class _BatchMaker:
    r"""Stands for PyG's object whose call makes a batch: torch calls only what is on the list."""

    def __new__(cls) -> Callable[..., Any]:  # type: ignore[misc]
        return _new_batch


SAFE_NAMES: list[Any] = [
    *(Data, DataEdgeAttr, DataTensorAttr, GlobalStorage),
    *(Batch, type(_new_batch()), _new_batch),
    (_BatchMaker, "torch_geometric.data.batch.DynamicInheritanceGetter"),
    *(EdgeIndex, SortOrder, CatMetadata),
]
