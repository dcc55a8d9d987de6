r"""Unpicklers that run nothing: what those of arrays and of official graphs have in common."""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from fognn.utils.errors import FileError

__all__ = ["Call", "Dtype", "RefusedError", "SafeUnpickler", "one_sentence"]

# What Python's unpickler and the checks of the stand-ins raise for broken and for crafted files.
_MALFORMED = (
    *(pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, ImportError),
    *(LookupError, MemoryError, RuntimeError, TypeError, ValueError),
)


class RefusedError(Exception):
    r"""A name that is not on the list."""


class SafeUnpickler(pickle.Unpickler):
    r"""An unpickler that knows a short list of names and refuses a file at the first other one.

    A pickle can name any function and have it called. Here each name that it may use has an
    inert stand-in, and nothing that a file names is ever imported.

    Args:
        file (file): The pickle.
        names (mapping): The stand-in of each name, :obj:`"module.name"`.
        encoding (str, optional): How strings of Python 2 are read.
    """

    def __init__(self, file: IO[bytes], names: Mapping[str, Any], encoding: str = "ASCII") -> None:
        super().__init__(file, encoding=encoding)
        self.names = names

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.names[f"{module}.{name}"]
        except KeyError:
            raise RefusedError(f"{module}.{name}") from None


class Call:
    r"""Stands for a function. A pickle may call it but cannot alter it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise TypeError("a function has no state")


class Dtype:
    r"""Stands for numpy's dtype; numbers only, so no object can hide in an array."""

    __slots__ = ("dtype",)

    def __init__(self, spec: str, align: int = 0, copy: int = 1) -> None:
        if not isinstance(spec, str) or not re.fullmatch(r"[|<>=]?(b1|[iu][1248]|f[248])", spec):
            raise RefusedError(f"numpy.dtype({spec!r})")
        self.dtype = np.dtype(spec)

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {state[1]!r}")
        self.dtype = self.dtype.newbyteorder(state[1])


@contextmanager
def one_sentence(path: Path, kind: str) -> Iterator[None]:
    r"""Turns whatever reading a pickle raises into a :class:`FileError` of one sentence.

    Args:
        path (Path): The file.
        kind (str): What the file should be, *e.g.*, :obj:`"pickle of arrays"`.
    """
    try:
        yield
    except RefusedError as error:
        raise FileError(
            f"{path} is refused, it names {error}, which no {kind} needs: "
            "get the file from where you trust it"
        ) from error
    except FileNotFoundError as error:
        raise FileError(f"{path} is not there: name an existing file") from error
    except _MALFORMED as error:
        raise FileError(
            f"{path} is not a whole {kind} ({type(error).__name__}: {error}): get the file again"
        ) from error
