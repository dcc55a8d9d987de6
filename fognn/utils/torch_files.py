"""Safe loading of torch files: no code that a file names is run."""

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from threading import Lock
from typing import Any

import torch
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

# torch has one list of safe names for the whole process.
_lock = Lock()


class RefusedNameError(UnpicklingError):
    """A file names a class or function that is not allowed.

    Attributes:
        name (str): The class or function.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"the file names {name}")
        self.name = name


def load_torch(
    path: str | Path, names: Sequence[Any] = (), map_location: Any = "cpu", mmap: bool = False
) -> Any:
    r"""Reads a file of :meth:`torch.save` that contains only tensors, plain Python values and
    :obj:`names`.

    :meth:`torch.load` with ``weights_only=True`` is not enough once PyG is imported. PyG adds
    names of its own to torch's list of safe ones, among them a class that reads a second file and
    can fall back to unpickling it.

    Args:
        path (str): The file.
        names (list, optional): Classes and functions that the file may name, as
            :meth:`torch.serialization.add_safe_globals` takes them. (default: :obj:`()`)
        map_location (optional): As in :meth:`torch.load`. (default: :obj:`"cpu"`)
        mmap (bool, optional): If set to :obj:`True`, maps the tensors into memory instead of
            reading them. (default: :obj:`False`)

    Raises:
        RefusedNameError: If the file names anything else.
        Exception: The exception of :meth:`torch.load`, if the file is damaged.
    """
    if Path(path).exists() and not Path(path).is_file():
        raise OSError(f"{path} is not a regular file")
    try:
        with _only_safe(names):
            return torch.load(path, map_location=map_location, weights_only=True, mmap=mmap)
    except UnpicklingError as error:
        if (found := re.search(r"GLOBAL (\S+)", str(error))) is not None:
            raise RefusedNameError(found[1]) from error
        # torch's own text advises to read the file with weights_only=False, which runs its code.
        found = re.search(r"WeightsUnpickler error:\s+(.+)", str(error))
        raise UnpicklingError(found[1] if found else "no file of torch.save") from error
    except AssertionError as error:  # raised by torch for a damaged file in its legacy format
        raise UnpicklingError(str(error)) from error


def is_zip(path: str | Path) -> bool:
    r"""Returns whether torch takes a file for one in its format since version 1.6, a zip file.

    Not :meth:`zipfile.is_zipfile`, which looks at the end of a file and can raise.
    """
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def check_sums(path: str | Path) -> None:
    r"""Reads a file of :meth:`torch.save` and compares its checksums, which torch does not do.

    Raises:
        ValueError: If a checksum is wrong.
        zipfile.BadZipFile: If the file is damaged otherwise.
    """
    if not Path(path).is_file() and Path(path).exists():
        raise OSError(f"{path} is not a regular file")
    with zipfile.ZipFile(path) as parts:
        if (broken := parts.testzip()) is not None:
            raise ValueError(f"the checksum of {broken} is wrong")


@contextmanager
def _only_safe(names: Sequence[Any]) -> Iterator[None]:
    with _lock:
        before = get_safe_globals()
        clear_safe_globals()
        add_safe_globals(list(names))
        try:
            yield
        finally:
            clear_safe_globals()
            add_safe_globals(before)
