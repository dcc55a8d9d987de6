r"""A message for a run that waits for cores which other programs use."""

import time
import warnings
from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch

__all__ = ["BusyCores"]

_ENOUGH = 10.0  # seconds after which the use of the cores is known
_RATIO = 4.0
Item = TypeVar("Item")


class BusyCores:
    r"""Notices that a run waits for cores that other programs use. Its threads wait for each other
    at each operation, so with several threads it takes many times its processor time.

    Args:
        threads (int): Number of threads of the run.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.begin = time.perf_counter(), time.process_time()

    def message(self) -> str:
        r"""Returns the message, at most once; an empty string while, or if, there is none."""
        if self.threads < 2:
            return ""
        seconds = time.perf_counter() - self.begin[0]
        if seconds < _ENOUGH:
            return ""
        used, threads, self.threads = time.process_time() - self.begin[1], self.threads, 1
        if seconds <= _RATIO * used:
            return ""
        return (
            f"the first {seconds:.0f} seconds used {used:.1f} seconds of processor time with "
            f"{threads} threads: other programs use the cores, and --threads 1 may be faster"
        )

    @classmethod
    def watch(cls, items: Iterable[Item], device: str) -> Iterator[Item]:
        r"""Yields the items, and warns as soon as there is a message.

        Args:
            items (iterable): The items, such as the batches of a loader.
            device (str): The device of the work; the cores are those of ``"cpu"``.
        """
        busy = cls(torch.get_num_threads() if device == "cpu" else 1)
        for item in items:
            yield item
            if slow := busy.message():
                warnings.warn(slow, stacklevel=2)
