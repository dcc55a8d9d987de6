r"""How long a sweep would take, from a few steps of each of its runs."""

import heapq
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fognn.paper.ledger import LedgerEntry, ledger_of
from fognn.paper.tables import Planned
from fognn.sweep.pace import Pace, fastest_split, folds_of, paces
from fognn.sweep.processes import share_of
from fognn.sweep.reproduce import unfinished
from fognn.training import Config, TrainingConfig
from fognn.training.progress import duration
from fognn.training.run_folder import read_metrics

__all__ = ["Estimate", "Guess", "estimate", "fewest_epochs"]

# Nobody knows when a plateau comes: so many times the fewest epochs that its schedule allows.
PLATEAU = 3


@dataclass(frozen=True)
class Guess:
    r"""How long one run would take.

    Args:
        key: The run.
        done: Epochs that are trained.
        epochs: Epochs that it has in all, over all its folds; :obj:`None` of a finished run.
        source: Where that number comes from: ``"schedule"`` (it is fixed), ``"ledger"`` (the
            median of the same row, or of its table), or ``"assumed"``.
        epoch: Seconds an epoch; :obj:`None` if it could not be measured.
        reason: Why it could not be measured.
    """

    key: str
    done: int = 0
    epochs: int | None = None
    source: str = ""
    epoch: float | None = None
    reason: str = ""

    @property
    def seconds(self) -> float:
        r"""How long it still takes; 0 if that is not known."""
        return max(0, (self.epochs or 0) - self.done) * (self.epoch or 0.0)

    def __str__(self) -> str:
        if self.epochs is None:
            return f"{self.key}: finished"
        if self.epoch is None:
            return f"{self.key}: cannot be measured: {self.reason}"
        done = f", {self.done} of them done" if self.done else ""
        source = {"schedule": "", "ledger": "about ", "assumed": "perhaps "}[self.source]
        pace = f"{self.epoch:.1f}" if self.epoch >= 1 else f"{self.epoch:.2g}"
        text = f"{self.key}: {pace} s an epoch, {source}{self.epochs} epochs{done}"
        return f"{text}, {duration(self.seconds)}"


@dataclass(frozen=True)
class Estimate:
    r"""How long a sweep would take. As text, it is what a user reads.

    Args:
        guesses: One for each run.
        workers: How many runs at a time.
        threads: Threads of each.
        seconds: How long all of them take.
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
            f"with {self.threads} threads each: {duration(self.seconds)}"
        )
        sources = {guess.source for guess in left if guess.epoch is not None}
        if "ledger" in sources:
            lines.append(
                "'about': a plateau ends the training; the median number of epochs of the same "
                "row in the ledger, or of the table, is taken"
            )
        if "assumed" in sources:
            lines.append(
                f"'perhaps': a plateau ends the training, nobody knows when; {PLATEAU} times the "
                "fewest epochs that the schedule allows are assumed"
            )
        unknown = sum(guess.epoch is None for guess in left)
        if unknown:
            lines.append(f"without the {unknown} that cannot be measured")
        return "\n".join(lines)


def estimate(
    planned: list[Planned],
    runs: str | Path = "runs",
    results: str | Path = "results",
    workers: int | Literal["auto"] = 1,
    again: bool = False,
    measured: Callable[[list[Config], int], list[Pace | str]] = paces,
) -> Estimate:
    r"""How long :func:`~fognn.sweep.reproduce` would take, on this machine. It writes nothing.

    Runs are measured ``workers`` at a time, as they will run; those that differ only in seed,
    rates and number of epochs are measured once. The number of epochs of a plateau is not known:
    see :class:`Guess`.

    Args:
        planned, runs, results, workers: As in :func:`~fognn.sweep.reproduce`.
        measured: Measures runs side by side.
    """
    runs, results = Path(runs).expanduser(), Path(results).expanduser()
    left = unfinished(planned, runs, results, again)
    if not left:
        workers = 1
    if workers == "auto":
        best = fastest_split(left[0].config, len(left), measured)[0]
        workers, threads = best.workers, best.threads
    else:
        threads = share_of(workers)
    alike = {_alike(run.config): run.config for run in left}
    found: dict[str, Pace | str] = {}
    for start in range(0, len(alike), workers):
        group = dict(list(alike.items())[start : start + workers])
        found |= zip(group, measured(list(group.values()), threads), strict=True)
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
    r"""The fewest epochs that a schedule allows: of a plateau, every rate ends after
    ``patience + 1`` epochs without a gain, and the first epoch is always one."""
    if training.schedule != "plateau":
        return training.epochs
    if training.min_lr == 0 or training.factor == 1:
        return training.epochs
    rates, rate = 0, training.lr
    while rate >= training.min_lr:
        rate *= training.factor
        rates += 1
    return min(training.epochs, rates * (training.patience + 1) + 1)


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
    r"""Whether two runs have the same schedule and as many graphs, so that one tells of the other
    when the plateau comes."""
    names = ("epochs", "schedule", "factor", "patience", "min_lr")
    pairs = [(getattr(one.training, name), getattr(other.training, name)) for name in names]
    return all(a == b for a, b in pairs) and one.data.fraction == other.data.fraction


def _alike(config: Config) -> str:
    r"""What decides the pace of a run."""
    content = config.to_dict()
    del content["seed"]
    for name in ("lr", "weight_decay", "epochs", "schedule", "factor", "patience", "min_lr"):
        del content["training"][name]
    return json.dumps(content, sort_keys=True)


def _makespan(guesses: list[Guess], workers: int) -> float:
    r"""When the last run ends, if each begins as soon as a worker is free."""
    ends = [0.0] * workers
    for guess in sorted(guesses, key=lambda guess: not guess.done):
        heapq.heapreplace(ends, ends[0] + guess.seconds)
    return max(ends)
