r"""The runs of a table: those that are finished are skipped, the others trained or gone on with."""

import time
from collections import deque
from pathlib import Path
from typing import Literal

from fognn.paper.ledger import Ledger, ledger_entry
from fognn.paper.tables import Planned
from fognn.sweep.local import LocalPool
from fognn.sweep.pool import Job, Outcome, Pool
from fognn.sweep.split import fastest_split
from fognn.sweep.summary import Summary
from fognn.sweep.view import View
from fognn.training import Config, Result, Stopped
from fognn.training.run_folder import check_folder
from fognn.training.signals import StopSignals

__all__ = ["collect", "ledger_of", "reproduce"]


def reproduce(
    planned: list[Planned],
    runs: str | Path = "runs",
    results: str | Path = "results",
    workers: int | Literal["auto"] = 1,
    ray: str | None = None,
    quiet: bool = False,
    *,
    shared: bool | None = None,
    command: str = "the same command",
) -> Summary:
    r"""Trains runs, many at a time, and writes each into the ledger of its table when it finishes.

    A run whose folder is finished is skipped, one that is half done goes on. A run that fails is
    tried once more, from its last checkpoint, after the others; if it fails again, the summary
    says why. Ctrl-C lets every run save its place and ends with
    :class:`~fognn.training.Stopped`; the same call goes on.

    Args:
        planned: The runs, as of :func:`fognn.paper.tables.plan`.
        runs: The folder of the run folders.
        results: The folder of the ledgers.
        workers: How many runs at a time; ``"auto"`` finds what is fastest.
        ray: Trains on a Ray cluster instead: its address, or ``"local"`` for one on this machine
            with ``workers`` cores (all of them for ``"auto"``).
        quiet: Show no progress.
        shared: Of Ray: whether all its machines see ``runs``; see
            :class:`~fognn.sweep.ray_cluster.RayPool`.
        command: How to go on after Ctrl-C, for the message.
    """
    begin = time.monotonic()
    runs, results = Path(runs).expanduser(), Path(results).expanduser()
    todo, skipped = collect(planned, runs, results)
    trained: list[str] = []
    failed: list[Outcome] = []
    if todo:
        view = View(len(planned), len(skipped), quiet)
        try:
            pool = _pool([run.config for run in todo], workers, ray, shared, view)
            try:
                _train_all(pool, todo, runs, results, view, trained, failed)
            except Stopped as stop:
                done = len(skipped) + len(trained)
                raise Stopped(
                    f"stopped: {done} of {len(planned)} runs are finished, the place of each of "
                    f"the others is saved in {runs}; to go on: {command}"
                ) from stop
            finally:
                pool.close()
        finally:
            view.close()
    return Summary(tuple(trained), tuple(skipped), tuple(failed), time.monotonic() - begin)


def collect(planned: list[Planned], runs: Path, results: Path) -> tuple[list[Planned], list[str]]:
    r"""Writes the finished runs that the ledgers do not know into them, and trains nothing.

    Args:
        planned: The runs.
        runs: The folder of the run folders.
        results: The folder of the ledgers.

    Returns:
        The runs that are not finished, those half done first, and the keys of those that are.
    """
    keys = [run.key for run in planned]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"reproduce: planned must name each run once, got {twice} more than once")
    todo, done = [], []
    known = {
        entry.key: entry.result
        for table in dict.fromkeys(run.table for run in planned)
        for entry in ledger_of(table, results).entries()
    }
    for run in planned:
        folder = run.folder(runs)
        check_folder(folder, run.config)  # that of another run is found before anything is trained
        if not (folder / "result.json").exists():
            todo.append(run)
            continue
        entry = ledger_entry(run, folder)
        if known.get(run.key) != entry.result:
            ledger_of(run.table, results).add(entry)
        done.append(run.key)
    return sorted(todo, key=lambda run: not run.folder(runs).exists()), done


def ledger_of(table: str, results: Path) -> Ledger:
    r"""The ledger of a table."""
    return Ledger(results / f"{table}.jsonl")


def _pool(
    configs: list[Config], workers: int | str, ray: str | None, shared: bool | None, view: View
) -> Pool:
    if workers != "auto" and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise ValueError(f"reproduce: workers must be a positive int or 'auto', got {workers!r}")
    if ray is not None:
        from fognn.sweep.ray_cluster import RayPool

        return RayPool(ray, None if isinstance(workers, str) else workers, shared)
    if isinstance(workers, int):
        return LocalPool(workers)
    view.note("workers: measuring how the cores are shared best")
    best, *others = fastest_split(configs[0], len(configs))
    view.note("workers: " + "; ".join([f"{best} (taken)", *map(str, others)]))
    return LocalPool(best.workers, best.threads)


def _train_all(
    pool: Pool,
    todo: list[Planned],
    runs: Path,
    results: Path,
    view: View,
    trained: list[str],
    failed: list[Outcome],
) -> None:
    planned = {run.key: run for run in todo}
    queue = deque(Job(run.key, run.config, run.folder(runs)) for run in todo)
    tried: set[str] = set()

    def take(outcomes: list[Outcome]) -> list[Outcome]:
        r"""Writes what is finished into the ledger; what is not is given back."""
        for outcome in outcomes:
            if not outcome.reason:
                job = outcome.job
                entry = ledger_entry(planned[job.key], job.folder)
                ledger_of(planned[job.key].table, results).add(entry)
                trained.append(job.key)
                view.finished(job, str(Result.read(job.folder)))
        return [outcome for outcome in outcomes if outcome.reason]

    with StopSignals() as signals:
        while queue or pool.running():
            while queue and pool.free:
                view.begins(queue[0])
                pool.start(queue.popleft())
            for outcome in take(pool.wait(0.5)):
                key = outcome.job.key
                again = key not in tried
                view.note(f"{key} failed{', to be tried again' * again}: {outcome.reason}")
                if again:
                    tried.add(key)
                    queue.append(outcome.job)
                else:
                    failed.append(outcome)
            view.look(pool.running())
            if signals.asked:
                view.note("stopping: each run finishes its step and saves its place")
                for outcome in take(pool.stop()):
                    if outcome.log is not None:  # it failed at nothing
                        outcome.log.unlink(missing_ok=True)
                raise Stopped("stopped")
