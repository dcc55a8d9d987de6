r"""Reads pickles of numpy arrays in dicts and lists, and runs nothing that they name."""

import math
import os
import pickle
import pickletools
import re
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import numpy as np

from fognn.utils.errors import FileError
from fognn.utils.files import check_regular

__all__ = ["load_arrays"]

_UNFOLD, _FLOOR = 8, 64 * 2**20  # the content may be 8 times the file, and 64 MiB
_NUMBER = 40  # bytes of a number in a list
_left: ContextVar[list[int]] = ContextVar("left")  # bytes that a file may still use
# Raised by Python's unpickler and by the checks below for damaged and for crafted files.
_MALFORMED = (
    *(pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, ImportError),
    *(LookupError, MemoryError, RuntimeError, TypeError, ValueError),
)


def load_arrays(path: Path) -> Any:
    r"""Reads a pickle that holds dicts, lists, strings, numbers and numpy arrays of numbers.

    A pickle can name any function and have it called. This unpickler has a short list of names
    with an inert stand-in for each, and raises a :class:`~fognn.data.FileError` at any other
    name. It reads files of Python 2 and of all versions of numpy. (torch's safe loading reads
    files of :meth:`torch.save` only.)

    Args:
        path (Path): The file.
    """
    path = Path(path)
    if path.exists():
        check_regular(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_places(file, size)
            file.seek(0)
            left = _left.set([_FLOOR + _UNFOLD * size])
            try:
                # Python 2 wrote raw bytes as strings; latin1 gives each byte back.
                return _plain(_Unpickler(file, encoding="latin1").load())
            finally:
                _left.reset(left)
    except _RefusedError as error:
        raise FileError(
            f"{path} is not read, it names {error}, which no pickle of arrays needs: "
            "get the file from a place that you trust"
        ) from error
    except FileNotFoundError as error:
        raise FileError(f"{path} is not there: name an existing file") from error
    except _MALFORMED as error:
        raise FileError(
            f"{path} is not a whole pickle of arrays ({type(error).__name__}: {error}): "
            "get the file again"
        ) from error


def _check_places(file: IO[bytes], size: int) -> None:
    r"""Raises if a place of the memo is beyond the file: Python's unpickler would make a list of
    that length. pickletools only reads, and runs nothing."""
    for code, place, _ in pickletools.genops(file):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(str(place)) <= size:
            raise ValueError(f"the place {place} is beyond the file")


def _spend(size: int) -> None:
    r"""Counts the bytes that are made from a file: one array can be named many times."""
    left = _left.get()
    left[0] -= size
    if left[0] < 0:
        raise ValueError(f"its content is more than {_UNFOLD} times as large as the file")


class _RefusedError(Exception):
    r"""The file has a name that is not on the list."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _NAMES[f"{module}.{name}"]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


class _Call:
    r"""Stands for a function. A pickle can call it but cannot change it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise TypeError("a function has no state")


class _Dtype:
    r"""Stands for numpy's dtype; numbers only, so no object can hide in an array."""

    __slots__ = ("dtype",)

    def __init__(self, spec: str, align: int = 0, copy: int = 1) -> None:
        if not isinstance(spec, str) or not re.fullmatch(r"[|<>=]?(b1|[iu][1248]|f[248])", spec):
            raise _RefusedError(f"numpy.dtype({spec!r})")
        self.dtype = np.dtype(spec)

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise ValueError(f"byte order {state[1]!r}")
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    r"""Stands for an array, whose content comes with its state."""

    __slots__ = ("array",)
    array: Any

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.array = _array(raw, dtype, shape, "F" if fortran else "C")


def _array(raw: Any, dtype: _Dtype, shape: Any, order: str) -> Any:
    content = raw.encode("latin1") if isinstance(raw, str) else raw
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise TypeError("an array must be made of bytes")
    shape = tuple(shape) if isinstance(shape, tuple) else (shape,)
    if any(size < 0 for size in shape):
        raise ValueError(f"an array has the shape {shape}")
    if math.prod(shape) * dtype.dtype.itemsize != len(content):
        raise ValueError("an array is cut short")
    _spend(len(content))
    # A copy that can be written to, as torch wants it.
    return np.frombuffer(bytearray(content), dtype.dtype).reshape(shape, order=_letter(order))


def _letter(order: str) -> Any:
    if order not in ("C", "F"):
        raise ValueError(f"an array has the order {order!r}")
    return order


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise _RefusedError(f"_codecs.encode(..., {encoding!r})")
    _spend(len(text))
    return text.encode("latin1")


def _bytes(content: Any = b"") -> bytes:
    if not isinstance(content, bytes | bytearray):
        raise TypeError("bytes must be made of bytes")
    _spend(len(content))
    return bytes(content)


def _range(*args: int) -> list[int]:
    # More than a class of images can have would only fill the memory.
    numbers = range(*args)
    if len(numbers) > 1 << 24:
        raise ValueError(f"a range has {len(numbers)} numbers")
    _spend(_NUMBER * len(numbers))
    return list(numbers)


def _list(content: Any = ()) -> list[Any]:
    _spend(8 * len(content))
    return list(content)


def _scalar(dtype: _Dtype, raw: Any) -> Any:
    return _array(raw, dtype, (), "C").item()


def _dict(*args: Any) -> dict[Any, Any]:
    # OrderedDict() and OrderedDict([[key, value], ...]) of Python 2, defaultdict(list).
    pairs = args[0] if args and isinstance(args[0], list) else []
    _spend(_NUMBER * len(pairs))
    return dict(pairs)


_NAMES: dict[str, Any] = {
    **{
        f"{module}.{name}": _Call(function)
        for module in ("numpy.core", "numpy._core")
        for name, function in (
            ("multiarray._reconstruct", lambda *args: _Array()),
            ("multiarray.scalar", _scalar),
            ("numeric._frombuffer", _array),
        )
    },
    **{
        f"{module}.{name}": _Call(function)
        for module in ("builtins", "__builtin__")
        for name, function in (
            ("bytes", _bytes),
            ("bytearray", _bytes),
            ("range", _range),
            ("xrange", _range),
            ("list", _list),
        )
    },
    "_codecs.encode": _Call(_encode),
    "collections.OrderedDict": _Call(_dict),
    "collections.defaultdict": _Call(_dict),
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
}


def _plain(thing: Any, seen: dict[int, Any] | None = None) -> Any:
    r"""Returns the content with arrays in place of stand-ins. An object that the file refers to
    more than once is converted once: nested lists could otherwise grow without end."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return seen[id(thing)]
    if isinstance(thing, _Array):
        out = thing.array
    elif isinstance(thing, dict):
        out = {_plain(key, seen): _plain(value, seen) for key, value in thing.items()}
    elif isinstance(thing, list | tuple):
        out = [_plain(value, seen) for value in thing]
    elif isinstance(thing, str | bytes | int | float | np.ndarray | None):
        return thing
    else:
        raise TypeError(f"{type(thing).__name__} is neither an array nor a number")
    seen[id(thing)] = out
    return out
