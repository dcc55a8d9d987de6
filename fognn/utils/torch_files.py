"""Files of torch, read without running anything that they name."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from threading import Lock
from typing import Any

import torch
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

# The list of names that torch takes for safe is one for the whole process.
_lock = Lock()


class RefusedNameError(UnpicklingError):
    """A file names something that it must not; ``name`` says what."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the file names {name}")
        self.name = name


def load_torch(
    path: str | Path, names: Sequence[Any] = (), map_location: Any = "cpu", mmap: bool = False
) -> Any:
    r"""Reads a file of :meth:`torch.save` that names nothing but tensors, plain Python and
    ``names``; another one is a :class:`RefusedNameError`, and a damaged one whatever torch makes
    of it.

    :meth:`torch.load` with ``weights_only=True`` alone is not enough where PyG is imported. PyG
    adds names of its own to torch's list, and among them is a class that reads a second file,
    with a function that falls back to running it.

    Args:
        path: The file.
        names: Classes and functions that it may name besides, as
            :meth:`torch.serialization.add_safe_globals` takes them.
        map_location: Where its tensors go.
        mmap: Whether its tensors are mapped into memory and not read.
    """
    try:
        with _only(names):
            return torch.load(path, map_location=map_location, weights_only=True, mmap=mmap)
    except UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        if found is None:
            raise
        raise RefusedNameError(found[1]) from error
    except AssertionError as error:  # so torch says that a file in its old form is damaged
        raise UnpicklingError(str(error)) from error


@contextmanager
def _only(names: Sequence[Any]) -> Iterator[None]:
    with _lock:
        before = get_safe_globals()
        clear_safe_globals()
        add_safe_globals(list(names))
        try:
            yield
        finally:
            clear_safe_globals()
            add_safe_globals(before)
