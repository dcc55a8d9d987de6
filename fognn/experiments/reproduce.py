r"""Training of many runs: finished ones are skipped, interrupted ones are resumed."""

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from fognn.data.catalog import dataset_info, where
from fognn.experiments.keep import add_to_ledger
from fognn.experiments.ledger import LedgerEntry, ledger_of, relabelled
from fognn.experiments.pool import Job, LocalPool, Outcome, Pool, PoolHere, Progress, Summary
from fognn.experiments.protocols import command_of
from fognn.experiments.rows import TABLES
from fognn.experiments.tables import Run, runs_of
from fognn.training import Config, Result, Stopped
from fognn.training.data import few_shot, open_split
from fognn.training.environment import cores
from fognn.training.progress import duration
from fognn.training.run_folder import check_folder
from fognn.training.signals import StopSignals
from fognn.utils.files import user_path

__all__ = ["dry_run", "reproduce", "unfinished"]


def reproduce(
    planned: Sequence[Run],
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
    progress: Progress | None = None,
    given: dict[str, dict[str, Any]] | None = None,
) -> Summary:
    r"""Trains runs, several at a time, and adds each to the ledger of its table when it finishes.

    A run that is finished, or in the ledgers, is skipped; an unfinished one is resumed, and a
    finished run folder that is in no ledger is added to it. A run that fails, such as one whose
    process was killed, is tried once more, from its last checkpoint, after the others; if it fails
    again, the summary has the reason. On Ctrl-C every run saves its state, and
    :class:`~fognn.training.Stopped` is raised; the same call resumes the runs.

    Args:
        planned (list): The runs, from :func:`fognn.experiments.tables.plan`.
        runs (str, optional): The folder of the run folders. (default: :obj:`"runs"`)
        results (str, optional): The folder of the ledgers. (default: :obj:`"results"`)
        workers (int or str, optional): Number of runs at a time, with one thread each unless
            ``machine.threads`` is set; ``"auto"`` is the number of cores. With one, all runs are
            trained in this process. (default: :obj:`1`)
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
        progress (Progress, optional): The counter of a larger number of runs, of which these are a
            part. (default: one of these runs)
        given (dict, optional): Networks that are Python objects, by the name of the network, as
            further arguments of :func:`~fognn.training.fit`. (default: :obj:`None`)

    Returns:
        The keys of the trained and of the skipped runs, and the failed ones.
    """
    begin = time.monotonic()
    runs, results = user_path(runs), user_path(results)
    todo, skipped = _collect(planned, runs, results, again, weights)
    trained: list[str] = []
    failed: list[Outcome] = []
    view = progress or Progress(len(planned), quiet)
    view.count(skipped)
    try:
        if todo:
            pool = _pool([run.config for run in todo], workers, ray, shared, quiet)
            jobs = [
                Job(r.key, r.config, r.folder(runs), (given or {}).get(r.config.model.name))
                for r in todo
            ]
            by_key = {run.key: run for run in todo}

            def take(outcome: Outcome) -> None:
                folder = outcome.job.folder
                add_to_ledger(by_key[outcome.job.key], folder, results, weights)
                trained.append(outcome.job.key)
                view.finish(outcome.job.key, str(Result.read(folder)))

            _train_all(pool, jobs, take, view, failed)
    except Stopped as stop:
        raise Stopped(
            f"stopped: {len(skipped) + len(trained)} of {len(planned)} runs are finished, the "
            f"state of each of the others is saved in {runs}; to resume: {command}"
        ) from stop
    return Summary(tuple(trained), tuple(skipped), tuple(failed), time.monotonic() - begin)


def _train_all(
    pool: Pool, jobs: Sequence[Job], take: Any, view: Progress, failed: list[Outcome]
) -> None:
    queue, running, tried = deque(jobs), 0, set()
    try:
        with StopSignals() as signals:
            while queue or running:
                while queue and pool.free:
                    if not isinstance(pool, PoolHere):
                        view.note(f"{queue[0].key}: begins")
                    pool.start(queue.popleft())
                    running += 1
                for outcome in pool.wait(0.5):
                    running -= 1
                    key = outcome.job.key
                    if not outcome.reason:
                        take(outcome)
                    elif signals.asked:
                        continue
                    elif key in tried:
                        failed.append(outcome)
                        view.finish(key, f"failed: {outcome.reason}")
                    else:
                        tried.add(key)
                        queue.append(outcome.job)
                        view.note(f"{key} failed, will be tried again: {outcome.reason}")
                if signals.asked:
                    view.note("stopping: each run finishes its step and saves its state")
                    for outcome in pool.close(save=True):
                        if not outcome.reason:
                            take(outcome)
                    raise Stopped("stopped")
    finally:
        pool.close()


def unfinished(
    planned: Sequence[Run], runs: str | Path, results: str | Path, again: bool = False
) -> list[Run]:
    r"""Returns the runs to train, those with a run folder first. Writes nothing.

    A run is finished if its folder has a result, or if it has no folder and the ledgers have it.
    """
    return _unfinished(planned, user_path(runs), _measured(planned, user_path(results)), again)


def _unfinished(
    planned: Sequence[Run], runs: Path, known: dict[str, LedgerEntry], again: bool
) -> list[Run]:
    left = []
    for run in planned:
        folder = run.folder(runs)
        check_folder(folder, run.config)  # raises before any run is trained
        started = (folder / "config.yaml").exists()
        trained = (folder / "result.json").exists()
        if again or (started and not trained) or not (trained or run.key in known):
            left.append(run)
    return sorted(left, key=lambda run: not run.folder(runs).exists())


def _collect(
    planned: Sequence[Run], runs: Path, results: Path, again: bool, weights: str | Path | None
) -> tuple[list[Run], list[str]]:
    r"""Adds finished runs to the ledgers that do not have them, and keeps their weights. Returns
    the runs to train, and the keys of the finished ones."""
    known = _measured(planned, results)
    todo = _unfinished(planned, runs, known, again)
    left = {run.key for run in todo}
    for run in planned:
        folder = run.folder(runs)
        trained = (folder / "result.json").exists()
        if run.key in left:
            if trained:
                _rename(folder)
        elif trained:
            add_to_ledger(run, folder, results, weights)
        elif (entry := relabelled(known[run.key], run)) != known[run.key]:
            ledger_of(run.table, results).add(entry)
    return todo, [run.key for run in planned if run.key not in left]


def _measured(planned: Sequence[Run], results: Path) -> dict[str, LedgerEntry]:
    r"""Returns the ledger lines of runs, by key; the line of one table also counts for another
    table with the same run."""
    twins = {run.key: [run.key, *(twin.key for twin in runs_of(run.config))] for run in planned}
    tables = {run.table for run in planned}
    tables |= {key.rpartition("/")[0] for keys in twins.values() for key in keys}
    by_key = {
        entry.key: entry
        for table in sorted(tables, key=lambda table: [*TABLES, table].index(table))
        for entry in ledger_of(table, results).entries()
    }
    found = {key: [by_key[twin] for twin in keys if twin in by_key] for key, keys in twins.items()}
    return {key: entries[0] for key, entries in found.items() if entries}


def _rename(folder: Path) -> None:
    number = 1
    while (kept := folder.with_name(f"{folder.name}-before-{number}")).exists():
        number += 1
    folder.rename(kept)


def _pool(
    configs: Sequence[Config], workers: int | str, ray: str | None, shared: bool | None, quiet: bool
) -> Pool:
    if workers != "auto" and (not isinstance(workers, int) or workers < 1):
        raise ValueError(f"reproduce: workers must be a positive int or 'auto', got {workers!r}")
    if ray is not None:
        from fognn.experiments.ray_cluster import RayPool

        return RayPool(ray, None if isinstance(workers, str) else workers, shared)
    # Images that are not here and cannot be downloaded: one line, and not one for each run.
    for config in {(c.data.name, c.data.folder): c for c in configs if few_shot(c.data)}.values():
        if where(dataset_info(config.data.name), config.data.folder) == "no":
            open_split(config, "train")
    count = min(len(configs), cores() if isinstance(workers, str) else workers)
    return PoolHere(quiet) if count == 1 else LocalPool(count)


def dry_run(planned: Sequence[Run], runs: str | Path, results: str | Path, again: bool) -> str:
    r"""Returns the commands of the runs that are left, a line each, and their hours where the
    ledger has the same row. It writes nothing."""
    left = unfinished(planned, runs, results, again)
    lines, total, unknown = [], 0.0, 0
    entries = {table: ledger_of(table, results).entries() for table in {r.table for r in left}}
    for run in left:
        here = [e for e in entries[run.table] if (e.row, e.variant) == (run.row, run.variant)]
        text = "time unknown"
        if here:
            result, most = here[-1].result, run.config.training.epochs
            part = run.config.data.fraction / here[-1].run.data.fraction
            seconds = result["seconds_per_epoch"] * min(result["epochs"], most) * part
            total += seconds
            text = f"about {duration(seconds)}"
        unknown += not here
        command = command_of(run.config)
        if run.folder(Path(runs)) != run.folder(Path("runs")):
            command += f" -o {run.folder(Path(runs))}"
        lines.append(f"{command}  # {text}")
    done = f"{len(planned)} runs, {len(left)} of them to train: {total / 3600:.1f} hours"
    return "\n".join([*lines, f"# {done}" + f", and {unknown} of unknown time" * bool(unknown)])
