r"""Failed allocations, as messages that name the tensor and what helps."""

import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from fognn.utils.errors import FognnError, TrainingError

__all__ = [
    "MemoryLimitError",
    "describe",
    "is_out_of_memory",
    "memory_errors",
    "source_too_large",
    "total_memory",
]


class MemoryLimitError(TrainingError):
    r"""An allocation failed.

    Args:
        cause (str): The tensor, see :func:`describe`.
        lower (str): What helps, with the options of the command.
        in_sweep (str, optional): What helps for a run of ``fognn reproduce``.
            (default: :obj:`lower`)
        in_comparison (str, optional): What helps for a run of ``fognn compare``.
            (default: :obj:`lower`)
    """

    def __init__(self, cause: str, lower: str, in_sweep: str = "", in_comparison: str = "") -> None:
        super().__init__(f"{cause}: {lower}")
        self.in_sweep = f"{cause}: {in_sweep or lower}"
        self.in_comparison = f"{cause}: {in_comparison or lower}"


def total_memory() -> int | None:
    r"""Returns the memory of this machine in bytes; :obj:`None` if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def is_out_of_memory(error: BaseException) -> bool:
    r"""Returns whether an exception is that of Python or torch for a failed allocation."""
    if isinstance(error, FognnError):  # a message of ours
        return False
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # On the CPU torch raises a plain RuntimeError.
    words = "can't allocate memory|not enough memory|out of memory|size calculation overflowed"
    return isinstance(error, RuntimeError) and bool(re.search(words, str(error)))


@contextmanager
def memory_errors(remedy: Callable[[str], MemoryLimitError]) -> Iterator[None]:
    r"""Replaces the exception of a failed allocation within the block by a message.

    Args:
        remedy (Callable): Returns the exception to raise for the text of :func:`describe`.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise remedy(describe(error)) from error


def source_too_large(source: object) -> Callable[[str], MemoryLimitError]:
    r"""Returns the remedy for data that do not fit into the memory.

    Args:
        source (Path): The file or folder.
    """
    text = f"{source} is too large for this machine, name a file with fewer or smaller graphs"
    return lambda cause: MemoryLimitError(cause, text)


def describe(error: BaseException) -> str:
    r"""Returns the size of the allocation that failed, the largest tensor of the functions in which
    it failed, and the batch."""
    return f"out of memory{_wanted(str(error))}{_largest(error)}{_batch(error)}"


def _wanted(text: str) -> str:
    found = re.search(r"allocate (\d+) bytes", text)
    if found:
        return f" for a tensor of {_size(int(found[1]))}"
    found = re.search(
        r"allocate ([\d.]+ [KMGTPE]?i?B)(?: for an array with shape (\(.*?\)))?", text
    )
    if found is None:
        return ""
    return f" for a tensor of {found[1]}" + (f" and shape {found[2]}" if found[2] else "")


def _largest(error: BaseException) -> str:
    found = [
        (value.numel() * value.element_size(), name, value)
        for name, value in _locals(error)
        if isinstance(value, Tensor) and value.layout == torch.strided
    ]
    if not found:
        return ""
    size, name, value = max(found, key=lambda one: one[0])
    shape = " x ".join(map(str, value.shape)) or "1"
    return f" (the largest one there: {name}, {shape}, {_size(size)})"


def _batch(error: BaseException) -> str:
    from torch_geometric.data import Data  # a command without graphs does not import it

    for _, value in _locals(error):
        if isinstance(value, Data) and value.edge_index is not None:
            return f", in a batch of {value.num_nodes:,} nodes and {value.num_edges:,} edges"
    return ""


def _locals(error: BaseException) -> list[tuple[str, Any]]:
    r"""Returns the local variables of all functions of a traceback, the innermost first."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [item for frame in reversed(frames) for item in frame.f_locals.items()]


def _size(count: int) -> str:
    power = max(0, min(3, (count.bit_length() - 1) // 10))
    value = count / 2 ** (10 * power)
    text = f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{text} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"
