r"""Datasets of PyG by name: ``pyg:TUDataset/PROTEINS``."""

import inspect
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch_geometric import datasets
from torch_geometric.data import Data, extract_zip

from fognn.data.graph_files import PYG_CLASSES
from fognn.data.sources import SPLITS, cache_dir, data_dir, retrieve
from fognn.utils import checks
from fognn.utils.errors import FileError

PREFIX = "pyg:"


def open_pyg(name: str, data: str | Path | None = None) -> dict[str, list[Data]]:
    r"""Opens a dataset of :mod:`torch_geometric.datasets`; PyG downloads it if necessary.

    The name is ``pyg:CLASS/NAME``, *e.g.*, ``pyg:Planetoid/Cora``, or ``pyg:CLASS`` for a class
    that has no names, *e.g.*, ``pyg:QM9``. The parts after the class are its required arguments,
    in their order: ``pyg:UPFD/politifact/bert``. Other arguments have their defaults. The root is
    :obj:`pyg/CLASS` in the data folder if that is there, else a folder in the cache.

    Returns the graphs by split: :obj:`"train"`, :obj:`"val"` and :obj:`"test"`; :obj:`"train"` and
    :obj:`"test"` for a class with the argument :obj:`train=True`; or :obj:`"all"`.

    PyG reads the files itself, some of which are pickles: a root of unknown origin is not safe.

    Args:
        name (str): The name.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    kind, parameters, arguments = _parsed(name)
    # The split of Planetoid and others has another meaning, and another default.
    choices: dict[str, dict[str, Any]] = {"all": {}}
    if "split" not in arguments and "split" in parameters:
        if parameters["split"].default in ("train", None):
            choices = {split: {"split": split} for split in SPLITS}
    elif "train" in parameters and parameters["train"].default is True:
        choices = {"train": {"train": True}, "test": {"train": False}}

    def opened(root: str) -> dict[str, Any]:
        return {key: kind(root=root, **arguments, **rest) for key, rest in choices.items()}

    folder = "-".join((kind.__name__, *arguments.values()))
    hint = f"put its raw files into pyg/{kind.__name__}, as PyG expects them there,"
    found = _open_root(name, folder, opened, data, hint)
    return {split: [part[i] for i in range(len(part))] for split, part in found.items()}


def _open_root(
    name: str, folder: str, opened: Callable[[str], Any], data: str | Path | None, hint: str
) -> Any:
    r"""Opens a dataset of PyG with a function of the root: ``pyg/CLASS`` in the data folder, else
    ``CLASS-ARGUMENTS``, :obj:`folder`, in the cache, where it is downloaded whole or not at all."""
    given = data_dir(data)
    root = given / "pyg" / folder.partition("-")[0] if given is not None else None
    try:
        with torch.serialization.safe_globals(PYG_CLASSES):
            if root is None or not root.is_dir():
                root = _downloaded(folder, opened)
            return opened(str(root))
    except ImportError:
        raise
    except Exception as error:  # PyG raises whatever its network libraries do
        reason = f"{type(error).__name__}: {error}".partition("\n")[0].removeprefix("FileError: ")
        raise FileError(
            f"{name} cannot be opened: {reason}; check the name and the network, or {hint} in "
            f"{given or 'a folder that FOGNN_DATA names'}"
        ) from error


def _downloaded(folder: str, opened: Callable[[str], Any]) -> Path:
    target = cache_dir() / "pyg" / folder
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.exists():
            print(f"{folder}: downloading to {target}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix=".tmp-", dir=target.parent) as temporary:
                place = Path(temporary) / folder
                place.mkdir()
                opened(str(place))
                place.rename(target)
    return target


def _parsed(name: str) -> tuple[type[Any], Mapping[str, inspect.Parameter], dict[str, str]]:
    r"""Returns the class, its parameters, and its arguments without the root."""
    class_name, *parts = name.removeprefix(PREFIX).split("/")
    classes = [key for key in datasets.__all__ if inspect.isclass(getattr(datasets, key))]
    checks.known("data", "the class of torch_geometric.datasets", class_name, classes)
    kind = getattr(datasets, class_name)
    parameters = inspect.signature(kind.__init__).parameters
    required = inspect.getfullargspec(kind.__init__)
    needed = required.args[: len(required.args) - len(required.defaults or ())]
    needed = [key for key in needed if key not in ("self", "root")]
    if "root" not in parameters or any(parameters[key].annotation is not str for key in needed):
        raise ValueError(
            f"data must be a dataset that a name defines, got {name!r}, which needs other "
            "arguments: save list(dataset) with torch.save and name that file"
        )
    if not needed and len(parts) == 1 and "name" in parameters:
        needed = ["name"]
    if len(parts) != len(needed) or any(part in ("", ".", "..") or "\\" in part for part in parts):
        form = "/".join([f"{PREFIX}{class_name}", *(key.upper() for key in needed)])
        raise ValueError(f"data must have the form {form}, got {name!r}")
    return kind, parameters, dict(zip(needed, parts, strict=True))


def _unpack(url: str, folder: str) -> None:
    # Certificates are checked, which PyG does not do.
    archive = retrieve(url, Path(folder) / "archive.zip")
    extract_zip(str(archive), folder)
    archive.unlink()


class _Benchmark(datasets.GNNBenchmarkDataset):
    def download(self) -> None:
        _unpack(self.urls[self.name], self.raw_dir)


class _Zinc(datasets.ZINC):
    def download(self) -> None:
        raw = Path(self.raw_dir)
        _unpack(self.url, self.root)
        raw.rmdir()
        (Path(self.root) / "molecules").rename(raw)
        for split in SPLITS:
            retrieve(self.split_url.format(split), raw / f"{split}.index")


def open_benchmark(name: str, split: str, data: str | Path | None) -> Any:
    r"""Returns the published graphs of PATTERN, CLUSTER or TSP, which PyG has."""
    folder = f"GNNBenchmarkDataset-{name}"
    hint = f"unpack {_Benchmark.urls[name]} into pyg/GNNBenchmarkDataset/{name}/raw"
    return _open_root(name, folder, lambda root: _Benchmark(root, name, split), data, hint)


def open_zinc(split: str, data: str | Path | None) -> Any:
    r"""Returns the molecules of ZINC from PyG."""
    index = _Zinc.split_url.format("{train,val,test}")
    hint = f"put zinc/zinc12k.npz, or the unpacked {_Zinc.url} and {index} in pyg/ZINC/raw,"
    return _open_root("ZINC", "ZINC", lambda root: _Zinc(root, True, split), data, hint)
