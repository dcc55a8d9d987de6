r"""Training of runs in this process, or several at a time in worker processes of this machine."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from fognn.training import Config, Stopped, fit
from fognn.training.progress import duration
from fognn.utils.own_code import import_asked

__all__ = ["Job", "LocalPool", "Outcome", "Pool", "Progress", "Summary", "train_job"]

# Seconds for interrupted runs to finish a step, which can take seconds, and to write a checkpoint.
GRACE = 60.0
# Seconds to wait for the lock of a run whose earlier process still saves its state.
_LOCKED = 30.0


@dataclass(frozen=True)
class Job:
    r"""A run to train or to resume.

    Args:
        key (str): Its key in the ledger, also used in messages.
        config (Config): The run.
        folder (Path): The run folder.
        given (dict, optional): Data and network that are Python objects, as
            :func:`~fognn.training.fit` takes them. (default: :obj:`None`)
    """

    key: str
    config: Config
    folder: Path
    given: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    r"""The outcome of an attempt at a job, with the reason why it failed; empty if it finished."""

    job: Job
    reason: str = ""


@dataclass(frozen=True)
class Summary:
    r"""The result of many runs; ``str(summary)`` is a report for users.

    Args:
        trained (tuple): Keys of the runs that finished now.
        skipped (tuple): Keys of the runs that had finished before.
        failed (tuple): Outcomes of the runs that failed twice.
        seconds (float): The time.
    """

    trained: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[Outcome, ...]
    seconds: float

    def __str__(self) -> str:
        done = len(self.trained) + len(self.skipped)
        lines = [
            f"{done} of {done + len(self.failed)} runs are finished: {len(self.skipped)} skipped, "
            f"{len(self.trained)} trained in {duration(self.seconds)}"
        ]
        lines += [f"failed twice: {one.job.key}: {one.reason}" for one in self.failed]
        if self.failed:
            lines.append("the same command resumes the failed runs from their last checkpoints")
        return "\n".join(lines)


class Progress:
    r"""Counts finished runs on standard error, a line for each. It is shared by all calls that
    train parts of the same runs.

    Args:
        total (int): Number of runs.
        quiet (bool, optional): If set to :obj:`True`, shows nothing. (default: :obj:`False`)
    """

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.total, self.quiet = total, quiet
        self.done: set[str] = set()

    def note(self, text: str) -> None:
        r"""Prints a line."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def count(self, keys: Iterable[str]) -> None:
        r"""Counts runs that have ended."""
        self.done.update(keys)
        self.total = max(self.total, len(self.done))

    def finish(self, key: str, text: str) -> None:
        r"""Shows that a run has ended, with its result, or the reason why it failed."""
        self.count([key])
        self.note(f"[{len(self.done)}/{self.total}] {key}: {text}")


class Pool(Protocol):
    r"""What trains jobs: here, in worker processes, or on a cluster."""

    @property
    def free(self) -> bool:
        r"""Whether another job can be started now."""

    def start(self, job: Job) -> None:
        r"""Starts a job."""

    def wait(self, seconds: float) -> list[Outcome]:
        r"""Waits for at most ``seconds``; returns the outcomes of the jobs that ended."""

    def close(self, save: bool = False) -> list[Outcome]:
        r"""Ends all jobs; with ``save``, after they have saved their state. Returns the outcomes of
        those that finished."""


class PoolHere:
    r"""Trains one job at a time in this process, which takes no time to start.

    Args:
        quiet (bool, optional): If set to :obj:`False`, a terminal shows the epochs of each run.
            (default: :obj:`True`)
    """

    def __init__(self, quiet: bool = True) -> None:
        self.quiet = quiet or not sys.stderr.isatty()
        self.job: Job | None = None

    @property
    def free(self) -> bool:
        return self.job is None

    def start(self, job: Job) -> None:
        self.job = job

    def wait(self, seconds: float) -> list[Outcome]:
        assert self.job is not None
        job, self.job = self.job, None
        try:
            train_job(job, self.quiet)
        except Exception as error:
            return [Outcome(job, reason_of(error))]
        return [Outcome(job)]

    def close(self, save: bool = False) -> list[Outcome]:
        return []


class LocalPool:
    r"""Worker processes on this machine, each with an executor of its own, so that one that is
    killed does not affect the others. They stay alive over runs, and end when this process ends,
    in any way.

    Args:
        workers (int): Number of runs at a time.
    """

    def __init__(self, workers: int) -> None:
        self.idle = [_Worker() for _ in range(workers)]
        self.busy: dict[Future[None], tuple[_Worker, Job]] = {}

    @property
    def free(self) -> bool:
        return bool(self.idle)

    def start(self, job: Job) -> None:
        worker = self.idle.pop()
        self.busy[worker.executor.submit(train_job, job)] = (worker, job)

    def wait(self, seconds: float) -> list[Outcome]:
        done, _ = wait(self.busy, seconds, FIRST_COMPLETED)
        return [self._outcome(future) for future in done]

    def close(self, save: bool = False) -> list[Outcome]:
        outcomes = []
        deadline = time.monotonic() + GRACE
        for worker, _ in self.busy.values():
            if save:
                worker.signal(signal.SIGTERM)
        while save and self.busy and time.monotonic() < deadline:
            outcomes += self.wait(0.1)
        for worker in [*self.idle, *(worker for worker, _ in self.busy.values())]:
            worker.end()
        self.idle, self.busy = [], {}
        return outcomes

    def _outcome(self, future: Future[None]) -> Outcome:
        worker, job = self.busy.pop(future)
        error = future.exception()
        self.idle.append(_Worker() if isinstance(error, BrokenProcessPool) else worker)
        return Outcome(job, "" if error is None else reason_of(error))


class _Worker:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.executor = ProcessPoolExecutor(1, context, _begin)
        self.process: Future[int] = self.executor.submit(os.getpid)

    def signal(self, number: int) -> None:
        with suppress(BrokenProcessPool, ProcessLookupError):  # it has ended
            os.kill(self.process.result(GRACE), number)

    def end(self) -> None:
        if self.process.done():
            self.signal(signal.SIGKILL)
        self.executor.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    r"""Prepares a worker process."""
    os.setsid()  # Ctrl-C is for the parent, which asks the workers to save their state
    threading.Thread(target=_follow_parent, daemon=True).start()
    import_asked()


def _follow_parent() -> None:
    r"""Ends this process when its parent ends; a run saves its state first."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE / 6)
    os._exit(1)


def train_job(job: Job, quiet: bool = True, command: str | None = None) -> None:
    r"""Trains a run with one thread, resumes an interrupted one, or finds a finished one.

    On small graphs several runs with one thread do more steps than one run with several, and
    threads that wait for each other make a step ten times as slow on a busy machine.
    """
    if (job.folder / ".lock").exists():
        with suppress(Timeout):  # fit names the folder
            FileLock(job.folder / ".lock").acquire(timeout=_LOCKED).lock.release()
    config = job.config
    if config.machine.threads is None:
        config = config.with_values({"machine.threads": 1})
    fit(config, job.folder, command=command, quiet=quiet, **(job.given or {}))


def reason_of(error: BaseException) -> str:
    r"""Returns one line that says why a run failed."""
    if isinstance(error, BrokenProcessPool):
        return "its worker process was killed, by a user or because the machine has no memory left"
    if isinstance(error, Stopped):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())
