r"""Where runs are trained: in this process, in worker processes of this machine, or on Ray.

Each is a pool of the same form: ``size`` is the number of runs at a time, ``start`` trains a run
and returns a :class:`~concurrent.futures.Future` of an :obj:`Answer`, ``stop`` asks runs to save
their state, and ``close`` ends all that still run.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from fognn.experiments.protocols import command_of
from fognn.training import Config, Stopped, fit
from fognn.training.environment import cores
from fognn.utils.files import user_path, write_whole
from fognn.utils.own_code import asked, import_asked, import_file

GRACE = 60.0  # seconds for interrupted runs to finish a step and to write a checkpoint

# Why a run failed (empty if it did not), and the files of its folder if another machine has them.
Answer = tuple[str, dict[str, bytes]]


class Here:
    r"""Trains one run at a time in this process, which can be given Python objects, by the names of
    the networks: further arguments of :func:`fognn.training.fit`."""

    size = 1

    def __init__(self, quiet: bool, given: Mapping[str, dict[str, Any]]) -> None:
        self.given = given
        self.quiet = quiet or not sys.stderr.isatty()  # else the epochs of each run are shown

    def start(self, config: Config, folder: Path) -> Future[Answer]:
        future: Future[Answer] = Future()
        try:
            given = self.given.get(config.model.name, {})
            future.set_result(train_run(config, folder, self.quiet, **given))
        except Exception as error:
            future.set_exception(error)
        return future

    def stop(self) -> None:
        r"""Nothing: Ctrl-C stops the run itself."""

    close = stop


class Workers:
    r"""Worker processes of this machine, which stay alive over runs. Each has an executor of its
    own, so that one that is killed does not affect the others."""

    def __init__(self, count: int) -> None:
        self.size = count
        self.pids: dict[ProcessPoolExecutor, Future[int]] = {}
        self.runs: dict[ProcessPoolExecutor, Future[Answer]] = {}

    def start(self, config: Config, folder: Path) -> Future[Answer]:
        executor = self._idle()
        self.runs[executor] = executor.submit(train_run, config, folder)
        return self.runs[executor]

    def _idle(self) -> ProcessPoolExecutor:
        for executor, run in list(self.runs.items()):
            if run.done() and isinstance(run.exception(), BrokenProcessPool):
                del self.runs[executor], self.pids[executor]
            elif run.done():
                return executor
        executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)
        self.pids[executor] = executor.submit(os.getpid)
        return executor

    def stop(self) -> None:
        self._signal(signal.SIGTERM)

    def close(self) -> None:
        self._signal(signal.SIGKILL)
        for executor in self.runs:
            executor.shutdown()

    def _signal(self, number: int) -> None:
        for executor, run in self.runs.items():
            with suppress(BrokenProcessPool, ProcessLookupError):  # it has ended
                if not run.done():
                    os.kill(self.pids[executor].result(GRACE), number)


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
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE / 6)
    os._exit(1)


class RayPool:
    r"""Tasks on a Ray cluster, one with one core and one thread for each run, which Ray restarts
    on another machine if theirs is lost: from the last checkpoint, if the machines share the folder
    of the runs. Otherwise, its files are sent back when it ends, and a restart begins with those
    that it was started with. fognn must be installed on every machine, with its ``FOGNN_DATA``.
    """

    size = sys.maxsize  # Ray queues tasks, and an autoscaling cluster depends on that queue

    def __init__(self, address: str, cores: int = 1, shared: bool = False) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("ray is not installed: pip install 'fognn[cluster]'") from error
        self.ray, self.shared = ray, shared or address == "local"
        self.refs: dict[Future[Answer], Any] = {}
        self.started = not ray.is_initialized()
        if self.started:
            new = {"num_cpus": cores, "include_dashboard": False}
            place = new if address == "local" else {"address": address}
            ray.init(**place, log_to_driver=False, logging_level="ERROR")
        options = {"num_cpus": 1, "max_retries": 10, "scheduling_strategy": "SPREAD"}
        self.remote = ray.remote(**options, max_calls=1)(train_on_ray)

    def start(self, config: Config, folder: Path) -> Future[Answer]:
        if config.data.folder is not None:
            place = str(user_path(config.data.folder).resolve())
            config = config.with_values({"data.folder": place})
        files = None if self.shared else files_of(folder)
        ref = self.remote.remote(config, folder.resolve(), files, asked())
        future: Future[Answer] = ref.future()
        self.refs[future] = ref
        return future

    def stop(self) -> None:
        self._cancel(force=False)  # raises KeyboardInterrupt in the tasks

    def close(self) -> None:
        self._cancel(force=True)
        if self.started:
            self.ray.shutdown()

    def _cancel(self, force: bool) -> None:
        for future, ref in self.refs.items():
            if not future.done():
                self.ray.cancel(ref, force=force)


Pool = Here | Workers | RayPool


def open_pool(
    workers: int | Literal["auto"],
    ray: str | None,
    shared: bool,
    quiet: bool,
    given: Mapping[str, dict[str, Any]],
) -> Pool:
    r"""Returns the pool for the arguments of :func:`fognn.experiments.reproduce.reproduce`."""
    if workers != "auto" and (not isinstance(workers, int) or workers < 1):
        raise ValueError(f"reproduce: workers must be a positive int or 'auto', got {workers!r}")
    count = cores() if workers == "auto" else workers
    if ray is not None:
        return RayPool(ray, count, shared)
    return Here(quiet, given) if count == 1 else Workers(count)


def train_run(config: Config, folder: Path, quiet: bool = True, **given: Any) -> Answer:
    r"""Trains or resumes a run with one thread: on small graphs, several runs with one thread each
    do more steps than one run with several."""
    if config.machine.threads is None:
        config = config.with_values({"machine.threads": 1})
    fit(config, folder, command=command_of(config), quiet=quiet, **given)
    return "", {}


def train_on_ray(
    config: Config, folder: Path, files: dict[str, bytes] | None, imported: str | None
) -> Answer:
    r"""Trains or resumes a run in its folder, or in a temporary one with its files."""
    with tempfile.TemporaryDirectory(prefix="fognn-") as temporary:
        place = folder if files is None else Path(temporary)
        try:
            put_files(files or {}, place)
            if imported:
                import_file(imported)
            reason, _ = train_run(config, place)
        except (Exception, Stopped) as error:
            reason = reason_of(error)
        return reason, {} if files is None else files_of(place)


def files_of(folder: Path) -> dict[str, bytes]:
    r"""Returns the contents of the files of a run folder, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith((".lock", ".tmp-"))
    }


def put_files(files: dict[str, bytes], folder: Path) -> None:
    r"""Writes the files of a run folder, ``result.json`` last, because it marks a finished run."""
    for name in sorted(files, key=lambda name: (name == "result.json", name)):
        with write_whole(folder / name) as temporary:
            temporary.write_bytes(files[name])


def problem_of(future: Future[Answer], folder: Path) -> str:
    r"""Writes the files that another machine sent, and returns why a run has failed, if it has."""
    if error := future.exception():
        return reason_of(error)
    reason, files = future.result()
    put_files(files, folder)
    if not reason and not (folder / "result.json").exists():
        return f"the machine of the run does not share {folder}"
    return reason


def reason_of(error: BaseException) -> str:
    r"""Returns one line that says why a run failed."""
    if isinstance(error, BrokenProcessPool):
        return "its worker process was killed, by a user or because the machine has no memory left"
    if isinstance(error, Stopped):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
