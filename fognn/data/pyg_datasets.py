r"""Datasets of PyG by name: ``pyg:TUDataset/PROTEINS``."""

import inspect
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from torch_geometric import Index, datasets
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.index import CatMetadata as IndexMetadata
from torch_geometric.io import fs

from fognn.data.graph_files import SAFE_NAMES
from fognn.data.single_graph import MASKS
from fognn.data.sources import cache_dir, data_dir
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, check_regular, disk_error
from fognn.utils.torch_files import load_torch

__all__ = ["PREFIX", "is_pyg_name", "open_pyg", "pyg_root"]

PREFIX = "pyg:"
_KEPT = ("x", "edge_index", "edge_attr", "y", "smiles", *MASKS)
_SPLITS = ("train", "val", "test")


def is_pyg_name(name: str) -> bool:
    r"""Returns whether a name is one for :meth:`open_pyg`."""
    return name.startswith(PREFIX)


def open_pyg(name: str, data: str | Path | None = None) -> dict[str, list[Data]]:
    r"""Opens a dataset of :mod:`torch_geometric.datasets`; PyG downloads it if necessary.

    The name is ``pyg:CLASS/NAME``, *e.g.*, ``pyg:Planetoid/Cora``, or ``pyg:CLASS`` for a class
    that has no names, *e.g.*, ``pyg:QM9``. The parts after the class are its required arguments,
    in their order: ``pyg:UPFD/politifact/bert``. Other arguments have their defaults. The root is
    that of :meth:`pyg_root`.

    Returns the graphs by split: :obj:`"train"`, :obj:`"val"` and :obj:`"test"` for a class that
    has these splits; :obj:`"train"` and :obj:`"test"` for one with the argument
    :obj:`train=True`; and :obj:`"all"` for all others. A graph has :obj:`x`, :obj:`edge_index`,
    :obj:`edge_attr`, :obj:`y`, :obj:`smiles` and the masks of its splits as far as the dataset has
    them, and its :obj:`num_nodes`. The graphs are not checked further.

    The files in the root are read by PyG itself. Processed files are read without running any code
    that they name, but the raw files of some datasets are pickles, which PyG runs: a root of
    unknown origin is not safe, as in PyG. Files that are given as data by their path are never
    read in this way.

    Args:
        name (str): The name.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)

    Raises:
        ValueError: If there is no such class, if it needs other arguments, or if its items are not
            graphs with one type of nodes and edges.
        FileError: If the dataset cannot be downloaded or read.
    """
    kind, arguments = _parsed(name)
    root = pyg_root(name, data)
    parameters = inspect.signature(kind.__init__).parameters
    # The split of Planetoid and others has another meaning, and another default.
    choices: dict[str, dict[str, Any]] = {"all": {}}
    if "split" not in arguments and "split" in parameters:
        if parameters["split"].default in ("train", None):
            choices = {split: {"split": split} for split in _SPLITS}
    elif "train" in parameters and parameters["train"].default is True:
        choices = {"train": {"train": True}, "test": {"train": False}}
    with _opening(name, root), _safe_loading(name, root):
        opened = {
            split: kind(root=str(root), **arguments, **options)
            for split, options in choices.items()
        }
        items = {
            split: [dataset[i] for i in range(len(dataset))] for split, dataset in opened.items()
        }
    return {split: _graphs(name, found) for split, found in items.items()}


def pyg_root(name: str, data: str | Path | None = None) -> Path:
    r"""Returns the root folder of a dataset: :obj:`pyg/CLASS` in the data folder, if that has the
    dataset, else in the cache.

    Args:
        name (str): The name, as in :meth:`open_pyg`.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    kind, arguments = _parsed(name)
    folder = data_dir(data)
    if folder is not None and (folder / "pyg" / kind.__name__).is_dir():
        root = folder / "pyg" / kind.__name__
        # Each class has its own spelling of its subfolders.
        names = {_plain(path.name) for path in root.iterdir() if path.is_dir()}
        first = next(iter(arguments.values()), None)
        if first is None or _plain(first) in names:
            return root
    return cache_dir() / "pyg" / kind.__name__


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _parsed(name: str) -> tuple[type[Any], dict[str, str]]:
    r"""Returns the class and its arguments without the root."""
    class_name, *parts = name.removeprefix(PREFIX).split("/")
    found = {key: getattr(datasets, key) for key in datasets.__all__}
    classes = {key: value for key, value in found.items() if inspect.isclass(value)}
    checks.known("data", "the class of torch_geometric.datasets", class_name, classes)
    kind = classes[class_name]
    parameters = inspect.signature(kind.__init__).parameters
    if "root" not in parameters:
        raise ValueError(
            f"data must be a dataset with a root folder, got {name!r}, which PyG generates: save "
            "list(dataset) with torch.save and name that file"
        )
    needed = [
        key
        for key, parameter in parameters.items()
        if key not in ("self", "root")
        and parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    other = [key for key in needed if parameters[key].annotation is not str]
    if other:
        raise ValueError(
            f"data must be a dataset that a name defines, got {name!r}, which needs "
            f"{', '.join(other)}: save list(dataset) with torch.save and name that file"
        )
    if not needed and len(parts) == 1 and "name" in parameters:
        needed = ["name"]
    if len(parts) != len(needed) or any(part in ("", ".", "..") or "\\" in part for part in parts):
        form = "/".join([f"{PREFIX}{class_name}", *(key.upper() for key in needed)])
        raise ValueError(f"data must have the form {form}, got {name!r}")
    names = getattr(kind, "names", None)
    if "name" in needed and isinstance(names, dict | list):
        value = parts[needed.index("name")]
        if _plain(value) not in map(_plain, names):
            checks.known("data", f"the name after {PREFIX}{class_name}/", value, names)
    return kind, dict(zip(needed, parts, strict=True))


@contextmanager
def _opening(name: str, root: Path) -> Iterator[None]:
    r"""Guards the opening by PyG, which knows no lock and takes half a download for a whole one."""
    lock = FileLock(cache_dir() / "pyg" / f"{root.name}.lock")
    try:
        root_existed = root.exists()
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise disk_error(root, error) from error
    before = set(root.rglob("*"))
    try:
        yield
    except BaseException as error:
        # Not the files that were there before: they may be the user's.
        for path in sorted(set(root.rglob("*")) - before):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if not root_existed:
            shutil.rmtree(root, ignore_errors=True)
        if not isinstance(error, Exception) or isinstance(error, FileError):
            raise
        # PyG raises whatever its libraries do. torch advises to read a file unsafely.
        text = "" if "weights_only" in str(error) else str(error).partition(chr(10))[0]
        reason = f"{type(error).__name__}: {text}".removesuffix(": ")
        raise FileError(
            f"PyG could not open {name} with the root {root} ({reason}): check the name and the "
            "network, or put its raw files there and remove its folder processed, if it has one"
        ) from error
    finally:
        lock.release()


@contextmanager
def _safe_loading(name: str, root: Path) -> Iterator[None]:
    r"""Lets PyG read processed files with :func:`~fognn.utils.torch_files.load_torch`. PyG's own
    function runs a file that cannot be read safely."""
    usual = fs.torch_load

    def load_processed(path: Path, *names: Any) -> Any:
        try:
            return load_torch(path, names)
        except DAMAGE as error:
            text = str(error).partition("\n")[0] or type(error).__name__
            raise FileError(
                f"{name}: {path} cannot be read ({text}): remove the folder {path.parent}, which "
                "PyG makes again from its raw files"
            ) from error

    def load(path: str, map_location: Any = None) -> Any:
        if "processed" in Path(path).parts:
            return load_processed(Path(path), *SAFE_NAMES, Index, IndexMetadata, HeteroData)
        return usual(path, map_location)

    # PyG compares these with the dataset's own, and reads them unsafely.
    for path in root.rglob("processed/pre_*.pt"):
        load_processed(path)
    for path in root.rglob("*"):
        if path.exists() and not path.is_dir():
            check_regular(path)
    fs.torch_load = load
    try:
        yield
    finally:
        fs.torch_load = usual


def _graphs(name: str, items: list[Any]) -> list[Data]:
    graphs = []
    for number, item in enumerate(items):
        if not isinstance(item, Data) or isinstance(item, Batch) or "edge_index" not in item:
            found = type(item).__name__
            found += " without edge_index" if isinstance(item, Data) else ""
            raise ValueError(
                f"{name} must be a dataset of Data with edge_index, got {found} as its item "
                f"{number}"
            )
        graph = Data(**{key: item[key] for key in _KEPT if key in item})
        graph.num_nodes = item.num_nodes
        if len(items) > 1:  # such masks are not of the splits of one graph
            for key in MASKS:
                graph.pop(key, None)
        graphs.append(graph)
    return graphs
