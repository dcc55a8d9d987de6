r"""Argument checks. Each raises a :class:`ValueError` of the form
``owner: name must be ..., got value``, where ``owner`` is the class or function that was called."""

import difflib
from collections.abc import Iterable

import torch
from torch import Tensor


def positive_int(owner: str, name: str, value: object) -> int:
    """Returns ``value``; raises unless it is an int above zero."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{owner}: {name} must be a positive int, got {value!r}")
    return value


def int_in_range(owner: str, name: str, value: object, low: int, high: int = 1 << 64) -> None:
    """Raises unless ``value`` is an int with ``low <= value < high``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value < high:
        end = "" if high == 1 << 64 else f" and less than {high}"
        raise ValueError(f"{owner}: {name} must be an int of at least {low}{end}, got {value!r}")


def one_of(owner: str, name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raises unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        choices = ", ".join(repr(a) for a in allowed)
        raise ValueError(f"{owner}: {name} must be one of {choices}, got {value!r}")


def known(owner: str, name: str, value: object, names: Iterable[str]) -> None:
    """Raises unless ``value`` is one of ``names``; the error suggests the nearest ones."""
    names = list(names)
    if value not in names:
        folded = {known.lower(): known for known in names}
        hint = f"known: {', '.join(names)}"
        if near := difflib.get_close_matches(str(value).lower(), folded, n=3, cutoff=0.5):
            hint = f"did you mean {' or '.join(repr(folded[found]) for found in near)}?"
        raise ValueError(f"{owner}: unknown {name} {value!r}; {hint}")


def features(owner: str, name: str, x: Tensor, channels: int, dtype: torch.dtype | None) -> None:
    """Raises unless ``x`` is a ``[*, channels]`` matrix of the layer's dtype.

    ``channels=-1`` (a lazy layer before its first call) accepts any width, ``dtype=None`` any
    floating point dtype. Under autocast every floating point dtype is accepted, as in torch's
    layers.
    """
    if not isinstance(x, Tensor) or x.dim() != 2:
        shape = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"{owner}: {name} must be a [num_nodes, channels] tensor, got {shape}")
    if not x.is_floating_point():
        raise ValueError(f"{owner}: {name} must be floating point, got {x.dtype}")
    if dtype is not None and x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"{owner}: {name} must be {dtype} like the layer's weights, got {x.dtype}")
    if channels != -1 and x.size(1) != channels:
        raise ValueError(f"{owner}: {name} must have {channels} channels, got {x.size(1)}")


def per_edge(owner: str, name: str, value: Tensor, num_edges: int) -> None:
    """Raises unless the first dimension of ``value`` is the number of edges."""
    if value.dim() == 0 or value.size(0) != num_edges:
        wanted = f"one entry for each of {num_edges} edges"
        raise ValueError(f"{owner}: {name} must have {wanted}, got shape {list(value.shape)}")


def outside(index: Tensor, size: int) -> int | None:
    """Returns an entry of ``index`` that is not in ``0..size - 1``; :obj:`None` if there is none.

    While torch.compile traces, the values are not known, and the result is :obj:`None`.
    """
    if torch.compiler.is_compiling() or index.numel() == 0:
        return None
    low, high = (int(v) for v in torch.aminmax(index))
    if low < 0:
        return low
    return high if high >= size else None
