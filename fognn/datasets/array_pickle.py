r"""Reads pickles of numpy arrays in dicts and lists, and runs nothing that they name."""

import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np

from fognn.datasets.files import SourceError

__all__ = ["load_arrays"]


def load_arrays(path: Path) -> Any:
    r"""Reads a pickle that holds dicts, lists, strings, numbers and numpy arrays of numbers.

    A pickle can name any function and have it called. So this unpickler knows a short list of
    names, hands out an inert stand-in for each, and refuses a file at the first other name. Files
    of Python 2 and of all versions of numpy are read.

    Args:
        path (Path): The file.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            # Python 2 wrote raw bytes as strings, and latin1 gives each byte back.
            return _plain(_Unpickler(file, encoding="latin1").load())
    except _RefusedError as error:
        raise SourceError(
            f"{path} is refused, it names {error}, which arrays do not need: "
            "get the file from where you trust it"
        ) from error
    except FileNotFoundError as error:
        raise SourceError(f"{path} is not there: name an existing file") from error
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise SourceError(
            f"{path} is not a whole pickle of arrays ({type(error).__name__}: {error}): "
            "get the file again"
        ) from error


class _RefusedError(Exception):
    r"""A name that is not on the list."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = _NAMES.get(f"{module}.{name}")
        if known is None:
            raise _RefusedError(f"{module}.{name}")
        return known


class _Dtype:
    r"""Stands for a dtype; numbers only, so no object can hide in an array."""

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
    r"""Stands for an array. What it holds comes with its state."""

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
    # A copy that can be written to, as torch wants it.
    return np.frombuffer(bytearray(content), dtype.dtype).reshape(shape, order=_letter(order))


def _letter(order: str) -> Any:
    if order not in ("C", "F"):
        raise ValueError(f"an array has the order {order!r}")
    return order


class _Function:
    r"""Stands for a function. A pickle may call it but cannot alter it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any) -> Any:
        return _CALLS[self._name](*args)

    def __setstate__(self, state: Any) -> None:
        raise TypeError("a function has no state")


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise _RefusedError(f"_codecs.encode(..., {encoding!r})")
    return text.encode("latin1")


def _bytes(content: Any = b"") -> bytes:
    if not isinstance(content, bytes | bytearray):
        raise TypeError("bytes must be made of bytes")
    return bytes(content)


def _range(*args: int) -> list[int]:
    # As many numbers as a class of images can have, and not as many as fill the memory.
    numbers = range(*args)
    if len(numbers) > 1 << 24:
        raise ValueError(f"a range has {len(numbers)} numbers")
    return list(numbers)


def _scalar(dtype: _Dtype, raw: Any) -> Any:
    return _array(raw, dtype, (), "C").item()


def _dict(*args: Any) -> dict[Any, Any]:
    # OrderedDict() and OrderedDict([[key, value], ...]) of Python 2, defaultdict(list).
    return dict(args[0]) if args and isinstance(args[0], list) else {}


_CALLS: dict[str, Any] = {
    "reconstruct": lambda *args: _Array(),
    "frombuffer": _array,
    "scalar": _scalar,
    "encode": _encode,
    "bytes": _bytes,
    "range": _range,
    "dict": _dict,
    "list": lambda *args: list(*args),
}
_NAMES: dict[str, Any] = {
    **{
        f"{module}.{name}": _Function(call)
        for module in ("numpy.core", "numpy._core")
        for name, call in (
            ("multiarray._reconstruct", "reconstruct"),
            ("multiarray.scalar", "scalar"),
            ("numeric._frombuffer", "frombuffer"),
        )
    },
    **{
        f"{module}.{name}": _Function(call)
        for module in ("builtins", "__builtin__")
        for name, call in (
            ("bytes", "bytes"),
            ("bytearray", "bytes"),
            ("range", "range"),
            ("xrange", "range"),
            ("list", "list"),
        )
    },
    "_codecs.encode": _Function("encode"),
    "collections.OrderedDict": _Function("dict"),
    "collections.defaultdict": _Function("dict"),
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
}


def _plain(thing: Any, seen: dict[int, Any] | None = None) -> Any:
    r"""The content with real arrays in place of stand-ins. What a file holds once and names often
    is turned once: lists of lists of lists could otherwise grow without end."""
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
