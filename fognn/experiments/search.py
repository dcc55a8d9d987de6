r"""The search for learning rate and weight decay: its runs, and the choice by validation."""

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from fognn.experiments.json_lines import JsonLines, KeyedLine
from fognn.experiments.ledger import LedgerEntry, ledger_of, readable
from fognn.experiments.pool import Summary
from fognn.experiments.tables import Run

__all__ = ["DECAYS", "RATES", "Choice", "choices_of", "search", "table_entries", "trials"]

SEARCHED = ("training.lr", "training.weight_decay")
RATES = (1e-2, 5e-3, 1e-3, 5e-4)
DECAYS = (1e-3, 1e-6, 0.0)
# A learning rate and a weight decay.
Setting = tuple[float, float]
# The grid of the paper.
GRID: tuple[Setting, ...] = tuple(itertools.product(RATES, DECAYS))
# Returns the learning rates and weight decays to try for a run.
Settings = Callable[[Run], Sequence[Setting]]
AnyRun = TypeVar("AnyRun", bound=Run)


class Trial(BaseModel):
    r"""One run of a search, with its validation metric over items at its best epoch; :obj:`None` if
    the run failed."""

    model_config = ConfigDict(strict=True, frozen=True)

    key: str
    lr: float
    weight_decay: float
    score: float | None


class Choice(KeyedLine):
    r"""The trials of a search and its choice: the trial with the best validation metric over items,
    each at its own best epoch. The test split is not used. Its key is that of
    :attr:`fognn.experiments.tables.Run.search_key`."""

    table: str
    row: str
    variant: str
    label: str
    seed: int
    metric: str
    higher_is_better: bool
    lr: float
    weight_decay: float
    tried: tuple[Trial, ...]
    figure: str = "val.best.items"

    @property
    def picked(self) -> Trial:
        r"""The chosen trial."""
        wanted = (self.lr, self.weight_decay)
        return next(trial for trial in self.tried if (trial.lr, trial.weight_decay) == wanted)

    @model_validator(mode="after")
    def _is_tried(self) -> "Choice":
        if (self.lr, self.weight_decay) not in {(t.lr, t.weight_decay) for t in self.tried}:
            raise ValueError("lr and weight_decay must be those of a trial")
        return self


def choices_of(table: str, results: str | Path) -> JsonLines[Choice]:
    r"""Returns the file of a table's searches, one line for each."""
    return JsonLines(Path(results) / "searches" / f"{table}.jsonl", Choice)


def grid(run: AnyRun, settings: Sequence[Setting] = GRID) -> list[AnyRun]:
    r"""Returns a run for each pair of a learning rate and a weight decay. The run with its own
    ones keeps its key, so it is not trained twice."""
    return [_with_values(run, lr, decay) for lr, decay in settings]


def choose(
    run: Run,
    entries: Sequence[LedgerEntry],
    trials: Sequence[Run] | None = None,
    failed: Collection[str] = (),
) -> Choice | None:
    r"""Chooses learning rate and weight decay by the validation metric of the trials, the runs of
    :func:`grid`; the first if several are equal, :obj:`None` if all failed."""
    known = {entry.key: entry for entry in entries}
    trials = grid(run) if trials is None else trials
    missing = [trial.key for trial in trials if trial.key not in {*known, *failed}]
    if missing:
        raise ValueError(f"search: {len(missing)} runs are missing, such as {missing[0]!r}")
    tried = tuple(_trial(trial, known.get(trial.key)) for trial in trials)
    finished = {trial: trial.score for trial in tried if trial.score is not None}
    if not finished:
        return None
    higher = known[next(iter(finished)).key].result["higher_is_better"]
    best = (max if higher else min)(finished, key=lambda trial: finished[trial])
    names: dict[str, Any] = {k: getattr(run, k) for k in ("table", "row", "variant", "label")}
    names |= {"metric": run.config.training.metric, "higher_is_better": higher}
    names |= {"lr": best.lr, "weight_decay": best.weight_decay, "tried": tried}
    return Choice(key=run.search_key, seed=run.config.seed, **names)


def _trial(run: Run, entry: LedgerEntry | None) -> Trial:
    score = None if entry is None else entry.result["val"]["best"]["items"]
    training = run.config.training
    return Trial(key=run.key, lr=training.lr, weight_decay=training.weight_decay, score=score)


def with_choice(run: AnyRun, choice: Choice) -> AnyRun:
    r"""Returns a run with the learning rate and the weight decay that a search chose for it."""
    return _with_values(run, choice.lr, choice.weight_decay)


def _with_values(run: AnyRun, lr: float, decay: float) -> AnyRun:
    config = run.config.with_values(dict(zip(SEARCHED, (lr, decay), strict=True)))
    return replace(run, config=config)


def without_trials(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the entries without the trials of searches; chosen trials, and those with the row's
    own learning rate and weight decay, are kept."""
    tried = {trial.key for choice in choices for trial in choice.tried}
    kept = {key for choice in choices for key in (choice.key, choice.picked.key)}
    return [entry for entry in entries if entry.key not in tried - kept]


def table_entries(results: str | Path, table: str) -> list[LedgerEntry]:
    r"""Returns the runs of a table from its ledger, without the trials of searches."""
    results = readable(results)
    return without_trials(ledger_of(table, results).entries(), choices_of(table, results).read())


def trials(planned: Sequence[AnyRun], settings: Settings = lambda _: GRID) -> list[AnyRun]:
    r"""Returns all runs of the searches for the rows of some runs, each with its first seed."""
    return [trial for run in _first_seeds(planned) for trial in grid(run, settings(run))]


def search(
    planned: Sequence[AnyRun],
    results: str | Path,
    train: Callable[[list[AnyRun]], Summary],
    settings: Settings = lambda _: GRID,
    skip_failed: bool = False,
) -> tuple[list[AnyRun], list[Choice]]:
    r"""Tries learning rates and weight decays for each row on its first seed, chooses by the
    validation metric, and writes the choices into ``results/searches``.

    Args:
        planned (list): The runs of a table.
        results (str): The folder of the ledgers.
        train (Callable): Trains runs and adds them to the ledgers.
        settings (Callable, optional): Returns the learning rates and weight decays to try for a
            run. (default: the paper's grid)
        skip_failed (bool, optional): If set to :obj:`True`, leaves out rows whose trials all fail.
            (default: :obj:`False`, which raises)

    Returns:
        The runs with the chosen learning rates and weight decays, and the choices.
    """
    summary = train(trials(planned, settings))
    if summary.failed and not skip_failed:
        raise ValueError(f"search: all runs must finish before one can be chosen; {summary}")
    failed = {outcome.job.key for outcome in summary.failed}
    choices = {}
    for run in _first_seeds(planned):
        entries = ledger_of(run.table, results).entries()
        choice = choose(run, entries, grid(run, settings(run)), failed)
        if choice is not None:
            choices_of(run.table, results).add(choice)
            choices[_row(run)] = choice
    chosen = [with_choice(run, choices[_row(run)]) for run in planned if _row(run) in choices]
    return chosen, list(choices.values())


def _row(run: Run) -> tuple[str, str, str]:
    return run.table, run.row, run.variant


def _first_seeds(planned: Sequence[AnyRun]) -> list[AnyRun]:
    first: dict[tuple[str, str, str], AnyRun] = {}
    for run in planned:
        first.setdefault(_row(run), run)
    return list(first.values())
