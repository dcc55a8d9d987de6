r"""Reads pickles of numpy arrays in dicts and lists, and runs nothing that they name."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from fognn.datasets.safe_pickle import Call, Dtype, RefusedError, SafeUnpickler, one_sentence

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
    # Python 2 wrote raw bytes as strings, and latin1 gives each byte back.
    with one_sentence(path, "pickle of arrays"), open(path, "rb") as file:
        return _plain(SafeUnpickler(file, _NAMES, encoding="latin1").load())


class _Array:
    r"""Stands for an array. What it holds comes with its state."""

    __slots__ = ("array",)
    array: Any

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.array = _array(raw, dtype, shape, "F" if fortran else "C")


def _array(raw: Any, dtype: Dtype, shape: Any, order: str) -> Any:
    content = raw.encode("latin1") if isinstance(raw, str) else raw
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, Dtype):
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


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise RefusedError(f"_codecs.encode(..., {encoding!r})")
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


def _scalar(dtype: Dtype, raw: Any) -> Any:
    return _array(raw, dtype, (), "C").item()


def _dict(*args: Any) -> dict[Any, Any]:
    # OrderedDict() and OrderedDict([[key, value], ...]) of Python 2, defaultdict(list).
    return dict(args[0]) if args and isinstance(args[0], list) else {}


_NAMES: dict[str, Any] = {
    **{
        f"{module}.{name}": Call(function)
        for module in ("numpy.core", "numpy._core")
        for name, function in (
            ("multiarray._reconstruct", lambda *args: _Array()),
            ("multiarray.scalar", _scalar),
            ("numeric._frombuffer", _array),
        )
    },
    **{
        f"{module}.{name}": Call(function)
        for module in ("builtins", "__builtin__")
        for name, function in (
            ("bytes", _bytes),
            ("bytearray", _bytes),
            ("range", _range),
            ("xrange", _range),
            ("list", lambda *args: list(*args)),
        )
    },
    "_codecs.encode": Call(_encode),
    "collections.OrderedDict": Call(_dict),
    "collections.defaultdict": Call(_dict),
    "numpy.ndarray": _Array,
    "numpy.dtype": Dtype,
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
