r"""Training of many runs: finished ones are skipped, interrupted ones are resumed."""

import time
from collections import deque
from pathlib import Path
from typing import Literal

from fognn.data.catalog import dataset_info, where
from fognn.experiments.keep import add_run
from fognn.experiments.ledger import LedgerEntry, ledger_of, relabelled
from fognn.experiments.local import LocalPool, log_of, remove_logs
from fognn.experiments.pace import fastest_workers
from fognn.experiments.pool import Job, Outcome, Pool, Summary
from fognn.experiments.progress import SweepProgress
from fognn.experiments.tables import TABLES, Planned, runs_of
from fognn.training import Config, Result, Stopped
from fognn.training.data import few_shot, open_split
from fognn.training.run_folder import check_folder
from fognn.training.signals import StopSignals
from fognn.utils.files import user_path

__all__ = ["collect", "reproduce", "unfinished"]


def reproduce(
    planned: list[Planned],
    runs: str | Path = "runs",
    results: str | Path = "results",
    workers: int | Literal["auto"] = 1,
    ray: str | None = None,
    quiet: bool = False,
    *,
    again: bool = False,
    shared: bool | None = None,
    command: str = "the same command",
    weights: str | Path | None = None,
) -> Summary:
    r"""Trains runs, several at a time, and adds each to the ledger of its table when it finishes.

    A run that is finished, or in the ledgers, is skipped; an unfinished one is resumed. A run that
    fails is tried once more, from its last checkpoint, after the others; if it fails again, the
    summary has the reason. On Ctrl-C every run saves its state, and
    :class:`~fognn.training.Stopped` is raised; the same call resumes the runs.

    Args:
        planned (list): The runs, from :func:`fognn.experiments.tables.plan`.
        runs (str, optional): The folder of the run folders. (default: :obj:`"runs"`)
        results (str, optional): The folder of the ledgers. (default: :obj:`"results"`)
        workers (int or str, optional): Number of runs at a time, with one thread each unless
            ``machine.threads`` is set; ``"auto"`` measures which number is fastest.
            (default: :obj:`1`)
        ray (str, optional): Trains on a Ray cluster instead: its address, or ``"local"`` for one
            on this machine with ``workers`` cores (all of them for ``"auto"``).
            (default: :obj:`None`)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        again (bool, optional): If set to :obj:`True`, trains finished runs again; their folders
            are renamed, and their lines in the ledger replaced. (default: :obj:`False`)
        shared (bool, optional): Ray: whether all machines share ``runs``, see
            :class:`~fognn.experiments.ray_cluster.RayPool`. (default: :obj:`None`)
        command (str, optional): The command that resumes the runs, for messages.
            (default: :obj:`"the same command"`)
        weights (str, optional): The folder in which the weights of each row's first seed are kept.
            (default: ``weights`` beside ``results``)

    Returns:
        The keys of the trained and of the skipped runs, and the failed ones.
    """
    begin = time.monotonic()
    runs, results = user_path(runs), user_path(results)
    todo, skipped = collect(planned, runs, results, again, weights)
    trained: list[str] = []
    failed: list[Outcome] = []
    if todo:
        view = SweepProgress(len(planned), len(skipped), quiet)
        try:
            pool = _pool([run.config for run in todo], workers, ray, shared, view)
            try:
                _train_all(pool, todo, runs, results, weights, view, trained, failed)
            except Stopped as stop:
                done = len(skipped) + len(trained)
                raise Stopped(
                    f"stopped: {done} of {len(planned)} runs are finished, the state of each of "
                    f"the others is saved in {runs}; to resume: {command}"
                ) from stop
            finally:
                pool.close()
        finally:
            view.close()
    return Summary(tuple(trained), tuple(skipped), tuple(failed), time.monotonic() - begin)


def unfinished(
    planned: list[Planned], runs: Path, results: Path, again: bool = False
) -> list[Planned]:
    r"""Returns the runs to train, those with a run folder first. Writes nothing.

    A run is finished if its folder has a result, or if it has no folder and the ledgers have it.

    Args:
        planned (list): The runs.
        runs (Path): The folder of the run folders.
        results (Path): The folder of the ledgers.
        again (bool, optional): If set to :obj:`True`, returns finished runs, too.
            (default: :obj:`False`)
    """
    return _unfinished(planned, runs, _measured(planned, results), again)


def _unfinished(
    planned: list[Planned], runs: Path, known: dict[str, LedgerEntry], again: bool
) -> list[Planned]:
    left = []
    for run in planned:
        folder = run.folder(runs)
        check_folder(folder, run.config)  # raises before any run is trained
        started = (folder / "config.yaml").exists()
        trained = (folder / "result.json").exists()
        if again or (started and not trained) or not (trained or run.key in known):
            left.append(run)
    return sorted(left, key=lambda run: not run.folder(runs).exists())


def collect(
    planned: list[Planned],
    runs: Path,
    results: Path,
    again: bool = False,
    weights: str | Path | None = None,
) -> tuple[list[Planned], list[str]]:
    r"""Adds finished runs to the ledgers that do not have them, and keeps their weights. Trains
    nothing.

    Args:
        planned (list): The runs.
        runs (Path): The folder of the run folders.
        results (Path): The folder of the ledgers.
        again (bool, optional): As in :func:`reproduce`; folders of finished runs are renamed.
            (default: :obj:`False`)
        weights (str, optional): As in :func:`reproduce`. (default: :obj:`None`)

    Returns:
        The runs to train, and the keys of the finished ones.
    """
    keys = [run.key for run in planned]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"reproduce: planned must have each run once, got {twice} twice or more")
    known = _measured(planned, results)
    todo = _unfinished(planned, runs, known, again)
    left = {run.key for run in todo}
    for place in {run.folder(runs).parent for run in planned}:
        remove_logs(place)
    for run in planned:
        folder = run.folder(runs)
        trained = (folder / "result.json").exists()
        if run.key in left:
            if trained:
                _rename(folder)
            continue
        log_of(folder).unlink(missing_ok=True)  # left by a sweep that was killed
        if trained:
            add_run(run, folder, results, weights)
            continue
        entry = relabelled(known[run.key], run)
        if known[run.key].to_dict() != entry.to_dict():
            ledger_of(run.table, results).add(entry)
    return todo, [run.key for run in planned if run.key not in left]


def _measured(planned: list[Planned], results: Path) -> dict[str, LedgerEntry]:
    r"""Returns the ledger lines of runs, by key; the line of one table also counts for another
    table with the same run."""
    tables = {twin.table for run in planned for twin in (run, *runs_of(run.config))}
    by_key = {
        entry.key: entry
        for table in sorted(tables, key=lambda table: [*TABLES, table].index(table))
        for entry in ledger_of(table, results).entries()
    }
    found: dict[str, LedgerEntry] = {}
    for run in planned:
        # Under its own key, or under that of another table that has the same run.
        for key in (run.key, *(twin.key for twin in runs_of(run.config))):
            if key in by_key:
                found.setdefault(run.key, by_key[key])
    return found


def _rename(folder: Path) -> None:
    number = 1
    while (kept := folder.with_name(f"{folder.name}-before-{number}")).exists():
        number += 1
    folder.rename(kept)


def _pool(
    configs: list[Config],
    workers: int | str,
    ray: str | None,
    shared: bool | None,
    view: SweepProgress,
) -> Pool:
    if workers != "auto" and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise ValueError(f"reproduce: workers must be a positive int or 'auto', got {workers!r}")
    if ray is not None:
        from fognn.experiments.ray_cluster import RayPool

        return RayPool(ray, None if isinstance(workers, str) else workers, shared)
    _check_images(configs)
    if isinstance(workers, int):
        return LocalPool(workers)
    view.note("workers: measuring which number of runs at a time is fastest")
    best, *others = fastest_workers(configs[0], len(configs))
    view.note("workers: " + "; ".join([f"{best} (taken)", *map(str, others)]))
    return LocalPool(best.workers)


def _check_images(configs: list[Config]) -> None:
    r"""Raises if images are not here and cannot be downloaded: one line, where otherwise each run
    would fail twice."""
    places = {(c.data.name, c.data.folder): c for c in configs if few_shot(c.data)}
    for (name, folder), config in places.items():
        if where(dataset_info(name), folder) == "no":
            open_split(config, "train")


def _train_all(
    pool: Pool,
    todo: list[Planned],
    runs: Path,
    results: Path,
    weights: str | Path | None,
    view: SweepProgress,
    trained: list[str],
    failed: list[Outcome],
) -> None:
    planned = {run.key: run for run in todo}
    queue = deque(Job(run.key, run.config, run.folder(runs)) for run in todo)
    tried: set[str] = set()

    def take(outcomes: list[Outcome]) -> list[Outcome]:
        r"""Adds finished runs to the ledger and returns the failed ones."""
        for outcome in outcomes:
            if not outcome.reason:
                job = outcome.job
                add_run(planned[job.key], job.folder, results, weights)
                trained.append(job.key)
                view.finish(job, str(Result.read(job.folder)))
        return [outcome for outcome in outcomes if outcome.reason]

    with StopSignals() as signals:
        while queue or pool.running():
            while queue and pool.free:
                view.begin(queue[0])
                pool.start(queue.popleft())
            for outcome in take(pool.wait(0.5)):
                key = outcome.job.key
                again = key not in tried
                view.note(f"{key} failed{', will be tried again' * again}: {outcome.reason}")
                if again:
                    tried.add(key)
                    queue.append(outcome.job)
                else:
                    failed.append(outcome)
            view.look(pool.running())
            if signals.asked:
                view.note("stopping: each run finishes its step and saves its state")
                for outcome in take(pool.stop()):
                    if outcome.log is not None:  # it was interrupted and did not fail
                        outcome.log.unlink(missing_ok=True)
                raise Stopped("stopped")
