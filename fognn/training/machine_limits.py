r"""Two limits of the machine, as messages that name the setting to change: its memory, and cores
that other programs use."""

import re
import time

import torch

from fognn.training.config import Config
from fognn.utils.errors import FognnError, TrainingError

__all__ = ["BusyCores", "data_too_large", "is_out_of_memory", "out_of_memory"]

_ENOUGH = 10.0  # seconds after which the use of the cores is known
_RATIO = 4.0


def is_out_of_memory(error: BaseException) -> bool:
    r"""Returns whether an exception is that of Python or torch for a failed allocation."""
    if isinstance(error, FognnError):  # a message of ours
        return False
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # On the CPU torch raises a plain RuntimeError.
    words = "can't allocate memory|not enough memory|out of memory|size calculation overflowed"
    return isinstance(error, RuntimeError) and bool(re.search(words, str(error)))


def out_of_memory(error: BaseException, config: Config, folder: object) -> TrainingError:
    r"""Returns the error of a run whose training does not fit into the memory.

    Args:
        error (BaseException): The cause.
        config (Config): The run.
        folder (Path): The run folder.
    """
    size, ranks = config.training.batch_size, config.machine.ranks
    half = size // 2 // ranks * ranks
    lower = "a smaller network (--set model.channels=...)"
    if half:
        lower = (
            f"a smaller batch (--batch-size {half}, it was {size}), in another folder than {folder}"
        )
    return TrainingError(f"out of memory{_largest(error)}: train with {lower}")


def data_too_large(error: BaseException) -> TrainingError:
    r"""Returns the error of a run whose network and data do not fit into the memory."""
    return TrainingError(
        f"out of memory{_largest(error)}, before the training: the network or the data are too "
        "large for this machine, train with fewer channels (--set model.channels=...) or a part of "
        "the data (--set data.fraction=...)"
    )


def _largest(error: BaseException) -> str:
    found = re.search(r"allocate (\d+) bytes", str(error))
    if found:
        return f" for a tensor of {int(found[1]) / 2**30:.3g} GiB"
    found = re.search(r"allocate ([\d.]+ [KMGT]iB)", str(error))
    return f" for a tensor of {found[1]}" if found else ""


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
