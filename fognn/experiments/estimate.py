r"""Estimated time of a sweep, from a few steps of each of its runs."""

import heapq
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.pace import Pace, fastest_workers, folds_of, paces
from fognn.experiments.processes import with_threads
from fognn.experiments.reproduce import unfinished
from fognn.experiments.tables import Planned
from fognn.training import Config, TrainingConfig
from fognn.training.progress import duration
from fognn.training.run_folder import read_metrics
from fognn.utils.files import user_path

__all__ = ["Estimate", "Guess", "estimate", "fewest_epochs"]

# The number of epochs of a plateau is not known in advance. Without a measured run, it is assumed
# to be this many times the minimum that the schedule allows.
PLATEAU = 3


@dataclass(frozen=True)
class Guess:
    r"""The estimated time of one run.

    Args:
        key (str): The key of the run.
        done (int, optional): Number of trained epochs. (default: :obj:`0`)
        epochs (int, optional): Estimated number of all epochs, over all folds; :obj:`None` for a
            finished run. (default: :obj:`None`)
        source (str, optional): The source of that number: ``"schedule"`` (it is fixed),
            ``"ledger"`` (the median of the same row, or of its table), or ``"assumed"``.
            (default: :obj:`""`)
        epoch (float, optional): Seconds per epoch; :obj:`None` if it could not be measured.
            (default: :obj:`None`)
        reason (str, optional): The reason why it could not be measured. (default: :obj:`""`)
    """

    key: str
    done: int = 0
    epochs: int | None = None
    source: str = ""
    epoch: float | None = None
    reason: str = ""

    @property
    def seconds(self) -> float:
        r"""The remaining time in seconds; 0 if it is not known."""
        return max(0, (self.epochs or 0) - self.done) * (self.epoch or 0.0)

    def __str__(self) -> str:
        if self.epochs is None:
            return f"{self.key}: finished"
        if self.epoch is None:
            return f"{self.key}: cannot be measured: {self.reason}"
        done = f", {self.done} of them done" if self.done else ""
        source = {"schedule": "", "ledger": "about ", "assumed": "perhaps "}[self.source]
        pace = f"{self.epoch:.1f}" if self.epoch >= 1 else f"{self.epoch:.2g}"
        text = f"{self.key}: {pace} s per epoch, {source}{self.epochs} epochs{done}"
        return f"{text}, {duration(self.seconds)}"


@dataclass(frozen=True)
class Estimate:
    r"""The estimated time of a sweep; ``str(estimate)`` is a report for users.

    Args:
        guesses (tuple): One :class:`Guess` for each run.
        workers (int): Number of runs at a time.
        threads (int): Number of threads of each run.
        seconds (float): The time of the whole sweep.
    """

    guesses: tuple[Guess, ...]
    workers: int
    threads: int
    seconds: float

    def __str__(self) -> str:
        left = [guess for guess in self.guesses if guess.epochs is not None]
        lines = [str(guess) for guess in self.guesses]
        lines.append(
            f"{len(self.guesses)} runs, {len(left)} of them to train, {self.workers} at a time "
            f"with {self.threads} thread{'s' * (self.threads > 1)} each: {duration(self.seconds)}"
        )
        sources = {guess.source for guess in left if guess.epoch is not None}
        if "ledger" in sources:
            lines.append(
                "'about': the learning rate schedule ends the training; the number of epochs is "
                "the median of the same row in the ledger, or of the table"
            )
        if "assumed" in sources:
            lines.append(
                "'perhaps': the learning rate schedule ends the training; the number of epochs is "
                f"assumed to be {PLATEAU} times the minimum that the schedule allows"
            )
        unknown = sum(guess.epoch is None for guess in left)
        if unknown:
            lines.append(f"without {unknown} runs that cannot be measured")
        return "\n".join(lines)


def estimate(
    planned: list[Planned],
    runs: str | Path = "runs",
    results: str | Path = "results",
    workers: int | Literal["auto"] = 1,
    *,
    again: bool = False,
    measured: Callable[[list[Config]], list[Pace | str]] = paces,
) -> Estimate:
    r"""Estimates the time of :func:`~fognn.experiments.reproduce` on this machine. It writes
    nothing.

    Runs are measured ``workers`` at a time, as they will be trained; runs that differ only in seed,
    learning rate, schedule, weight decay and number of epochs are measured once. The number of
    epochs of a plateau is not known in advance, see :class:`Guess`.

    Args:
        planned (list): As in :func:`~fognn.experiments.reproduce`.
        runs (str, optional): As in :func:`~fognn.experiments.reproduce`. (default: :obj:`"runs"`)
        results (str, optional): As in :func:`~fognn.experiments.reproduce`.
            (default: :obj:`"results"`)
        workers (int or str, optional): As in :func:`~fognn.experiments.reproduce`.
            (default: :obj:`1`)
        again (bool, optional): As in :func:`~fognn.experiments.reproduce`. (default: :obj:`False`)
        measured (Callable, optional): Measures runs that are trained at the same time.
            (default: :func:`~fognn.experiments.pace.paces`)
    """
    runs, results = user_path(runs), user_path(results)
    left = unfinished(planned, runs, results, again)
    if not left:
        workers = 1
    if workers == "auto":
        workers = fastest_workers(left[0].config, len(left), measured)[0].workers
    threads = max((with_threads(run.config).machine.threads or 1 for run in planned), default=1)
    alike = {_alike(run.config): run.config for run in left}
    found: dict[str, Pace | str] = {}
    for start in range(0, len(alike), workers):
        group = dict(list(alike.items())[start : start + workers])
        found |= zip(group, measured(list(group.values())), strict=True)
    entries = {
        table: ledger_of(table, results).entries()
        for table in dict.fromkeys(run.table for run in planned)
    }
    guesses = []
    for run in planned:
        if run in left:
            pace = found[_alike(run.config)]
            guesses.append(_guess(run, run.folder(runs), pace, entries[run.table]))
        else:
            guesses.append(Guess(run.key))
    return Estimate(tuple(guesses), workers, threads, _makespan(guesses, workers))


def fewest_epochs(training: TrainingConfig) -> int:
    r"""Returns the minimum number of epochs that a schedule allows. With a plateau, each learning
    rate lasts at least ``patience + 1`` epochs, and the first one an epoch more, because the first
    epoch is always an improvement."""
    if training.schedule != "plateau":
        return training.epochs
    if training.min_lr == 0 or training.factor == 1:
        return training.epochs
    count, lr = 0, training.lr
    while lr >= training.min_lr:
        lr *= training.factor
        count += 1
    return min(training.epochs, count * (training.patience + 1) + 1)


def _guess(run: Planned, folder: Path, pace: Pace | str, entries: list[LedgerEntry]) -> Guess:
    folds = folds_of(run.config)
    each, source = _epochs(run, entries)
    rows = [
        row
        for file in (folder.glob("fold-*/metrics.csv") if folds > 1 else [folder / "metrics.csv"])
        if file.exists()
        for row in read_metrics(file.parent)
    ]
    done, epochs = len(rows), max(each * folds, len(rows))
    if isinstance(pace, str):
        return Guess(run.key, done, epochs, source, None, pace)
    return Guess(run.key, done, epochs, source, pace.epoch)


def _epochs(run: Planned, entries: list[LedgerEntry]) -> tuple[int, str]:
    training = run.config.training
    fewest = fewest_epochs(training)
    if fewest == training.epochs:
        return fewest, "schedule"
    alike = [entry for entry in entries if _lasts_alike(Config.from_dict(entry.config), run.config)]
    same = [entry for entry in alike if (entry.row, entry.variant) == (run.row, run.variant)]
    known = [int(entry.result["epochs"]) for entry in same or alike]
    if known:
        return min(training.epochs, round(statistics.median(known))), "ledger"
    return min(training.epochs, PLATEAU * fewest), "assumed"


def _lasts_alike(one: Config, other: Config) -> bool:
    r"""Returns whether two runs have the same schedule and the same number of graphs, so that they
    are expected to have similar numbers of epochs."""
    names = ("epochs", "schedule", "factor", "patience", "min_lr")
    pairs = [(getattr(one.training, name), getattr(other.training, name)) for name in names]
    return all(a == b for a, b in pairs) and one.data.fraction == other.data.fraction


def _alike(config: Config) -> str:
    r"""Returns the settings that affect the speed of a run."""
    content = config.to_dict()
    del content["seed"]
    schedule = ("epochs", "schedule", "factor", "patience", "min_lr", "warmup")
    for name in ("lr", "weight_decay", *schedule):
        del content["training"][name]
    return json.dumps(content, sort_keys=True)


def _makespan(guesses: list[Guess], workers: int) -> float:
    r"""Returns the end of the last run in seconds, if each starts as soon as a worker is free."""
    ends = [0.0] * workers
    for guess in sorted(guesses, key=lambda guess: not guess.done):
        heapq.heapreplace(ends, ends[0] + guess.seconds)
    return max(ends)
