r"""Training of many runs: finished ones are skipped, interrupted ones are resumed."""

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fognn.experiments.ledger import add_to_ledger, ledger_of
from fognn.experiments.protocols import command_of
from fognn.experiments.search import Choice, Setting, search_rates, trials
from fognn.experiments.tables import Run
from fognn.experiments.workers import GRACE, Answer, Pool, open_pool, problem_of
from fognn.training import Result, Stopped
from fognn.training.loop import StopSignals, duration
from fognn.training.run_folder import check_folder
from fognn.utils.files import user_path


@dataclass
class Summary:
    r"""The result of many runs, by their keys; ``str(summary)`` is a report for users."""

    trained: list[str]
    skipped: list[str]  # had finished before
    failed: dict[str, str]  # twice, with the reason
    seconds: float = 0.0
    choices: list[Choice] = field(default_factory=list)  # of learning rates
    planned: Sequence[Run] = ()  # with the chosen rates

    @property
    def done(self) -> int:
        return len(self.trained) + len(self.skipped)

    def __str__(self) -> str:
        counts = f"{self.done} of {self.done + len(self.failed)} runs are finished"
        trained = f"{len(self.trained)} trained in {duration(self.seconds)}"
        lines = [f"{counts}: {len(self.skipped)} skipped, {trained}"]
        lines += [f"failed twice: {key}: {reason}" for key, reason in self.failed.items()]
        if self.failed:
            lines.append("the same command resumes the failed runs from their last checkpoints")
        return "\n".join(lines)


@dataclass
class Sweep:
    r"""Trains runs as :func:`reproduce` does, whose arguments it has. Its worker processes stay
    alive from one call of :meth:`train` to the next, and progress counts on."""

    total: int  # of all calls
    runs: Path
    results: Path
    where: dict[str, Any]  # workers, ray and shared
    given: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # Python objects, see Here
    command: str = "the same command"
    quiet: bool = False

    pool: Pool | None = field(default=None, init=False)
    done: set[str] = field(default_factory=set, init=False)  # the keys of the runs that ended

    def __enter__(self) -> "Sweep":
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.close()

    def train(self, planned: Sequence[Run]) -> Summary:
        r"""Trains the runs that are left. One that fails is tried once more, after the others."""
        begin = time.monotonic()
        todo = self.left(planned)
        finished = [run for run in planned if run not in todo]
        for run in finished:
            folder = run.folder(self.runs)
            if (folder / "result.json").exists():
                add_to_ledger(run, folder, self.results)
        summary = Summary([], [run.key for run in finished], {})
        self.done.update(summary.skipped)
        try:
            if todo:
                self.pool = self.pool or open_pool(**self.where, quiet=self.quiet, given=self.given)
                self._train(self.pool, deque(todo), summary)
        except Stopped as stop:
            raise Stopped(
                f"stopped: {summary.done} of {len(planned)} runs are finished, the state of each "
                f"of the others is saved in {self.runs}; to resume: {self.command}"
            ) from stop
        summary.seconds = time.monotonic() - begin
        return summary

    def _train(self, pool: Pool, queue: deque[Run], summary: Summary) -> None:
        running: dict[Future[Answer], Run] = {}
        tried: set[str] = set()
        with StopSignals() as signals:
            while queue or running:
                while queue and len(running) < pool.size and not signals.asked:
                    run = queue.popleft()
                    running[pool.start(run.config, run.folder(self.runs))] = run
                stopping = signals.asked
                if stopping:
                    self._note("stopping: each run finishes its step and saves its state")
                    pool.stop()
                seconds, until = (GRACE, ALL_COMPLETED) if stopping else (0.5, FIRST_COMPLETED)
                for future in wait(running, seconds, until).done:
                    run = running.pop(future)
                    folder = run.folder(self.runs)
                    reason = problem_of(future, folder)
                    if not reason:
                        add_to_ledger(run, folder, self.results)
                        summary.trained.append(run.key)
                        self._count(run, str(Result.read(folder)))
                    elif stopping or run.key not in tried:
                        tried.add(run.key)
                        queue.append(run)
                        if not stopping:
                            self._note(f"{run.key} failed, will be tried again: {reason}")
                    else:
                        summary.failed[run.key] = reason
                        self._count(run, f"failed twice: {reason}")
                if stopping and (queue or running):
                    raise Stopped("stopped")

    def left(self, planned: Sequence[Run]) -> list[Run]:
        r"""Returns the runs to train: those without a result in their folder, and without a folder
        and a line in the ledger. Writes nothing."""
        tables = {run.table for run in planned}
        known = {e.key for table in tables for e in ledger_of(table, self.results).entries()}
        left = []
        for run in planned:
            folder = run.folder(self.runs)
            check_folder(folder, run.config)  # raises before any run is trained
            started = (folder / "config.yaml").exists()
            trained = (folder / "result.json").exists()
            if not trained and (started or run.key not in known):
                left.append(run)
        return left

    def _count(self, run: Run, text: str) -> None:
        self.done.add(run.key)
        self._note(f"[{len(self.done)}/{self.total}] {run.key}: {text}")

    def _note(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)


def reproduce(
    planned: Sequence[Run],
    runs: str | Path = "runs",
    results: str | Path = "results",
    workers: int | Literal["auto"] = 1,
    ray: str | None = None,
    quiet: bool = False,
    *,
    settings: Sequence[Setting] | None = None,
    shared: bool = False,
    command: str = "the same command",
    given: Mapping[str, dict[str, Any]] | None = None,
) -> Summary:
    r"""Trains many runs, several at a time, and adds each to its ledger when it finishes.

    A run that is finished, or in the ledger, is skipped; an unfinished one is resumed, and a
    finished run folder that is not in the ledger is added to it. On Ctrl-C every run saves its
    state, and :class:`~fognn.training.Stopped` is raised with the :obj:`command` that resumes them.
    :obj:`settings` are learning rates and weight decays to search first. :obj:`ray` is the address
    of a cluster, ``"auto"`` for that of this machine, or ``"local"`` for a new one; with
    :obj:`shared` all its machines share the folder :obj:`runs`. :obj:`given` has Python objects,
    see :class:`~fognn.experiments.workers.Here`.
    """
    runs, results = user_path(runs), user_path(results)
    where = {"workers": workers, "ray": ray, "shared": shared}
    total = len(planned)
    if settings is not None:  # a trial of each row is one of its runs
        total += len(trials(planned, settings)) - len({(run.row, run.variant) for run in planned})
    choices, failed = list[Choice](), dict[str, str]()
    with Sweep(total, runs, results, where, given or {}, command, quiet) as sweep:
        if settings is not None:
            planned, choices, failed = search_rates(planned, results, sweep.train, settings)
        summary = sweep.train(planned)
    return replace(summary, planned=planned, choices=choices, failed=summary.failed | failed)


def dry_run(
    planned: Sequence[Run],
    runs: str | Path,
    results: str | Path,
    settings: Sequence[Setting] | None = None,
) -> str:
    r"""Returns the commands of the runs, or of the trials, that are left. Writes nothing."""
    planned = planned if settings is None else trials(planned, settings)
    left = Sweep(len(planned), user_path(runs), user_path(results), {}).left(planned)
    lines = []
    for run in left:
        place = "" if Path(runs) == Path("runs") else f" -o {run.folder(Path(runs))}"
        lines.append(command_of(run.config) + place)
    return "\n".join([*lines, f"# {len(planned)} runs, {len(left)} of them to train"])
