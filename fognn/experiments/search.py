r"""The search for learning rate and weight decay, and its choice by validation."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from fognn.experiments.differences import METRICS
from fognn.experiments.ledger import JsonLines, KeyedLine, LedgerEntry, ledger_of, names_of
from fognn.experiments.tables import Run

SEARCHED = ("training.lr", "training.weight_decay")
RATES = (1e-2, 5e-3, 1e-3, 5e-4)
DECAYS = (1e-3, 1e-6, 0.0)
Setting = tuple[float, float]  # a learning rate and a weight decay
GRID: tuple[Setting, ...] = tuple(itertools.product(RATES, DECAYS))  # that of the paper
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
    r"""The trials of a search, and its choice: that with the best validation metric, without use of
    the test split. Its key is the run's :attr:`~fognn.experiments.tables.Run.search_key`."""

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


def choices_of(table: str, results: str | Path) -> JsonLines[Choice]:
    r"""Returns the file of a table's searches, one line for each."""
    return JsonLines(Path(results) / "searches" / f"{table}.jsonl", Choice)


def grid(run: AnyRun, settings: Sequence[Setting] = GRID) -> list[AnyRun]:
    r"""Returns a run for each setting; that with its own keeps its key, and is not repeated."""
    return [with_rates(run, *setting) for setting in settings]


def choose(run: Run, entries: Sequence[LedgerEntry], trials: Sequence[Run]) -> Choice | None:
    r"""Chooses the best of the trials, the runs of :func:`grid`; :obj:`None` if all failed."""
    scores = {entry.key: entry.result["val"]["best"]["items"] for entry in entries}
    tried = []
    for trial in trials:
        training = trial.config.training
        rates = {"lr": training.lr, "weight_decay": training.weight_decay}
        tried.append(Trial(key=trial.key, score=scores.get(trial.key), **rates))
    metric = METRICS[run.config.training.metric]
    scored = {trial: metric.advantage(trial.score) for trial in tried if trial.score is not None}
    if not scored:
        return None
    best = max(scored, key=lambda trial: scored[trial])
    return Choice(
        **names_of(run) | {"key": run.search_key},
        seed=run.config.seed,
        metric=run.config.training.metric,
        higher_is_better=metric.higher_is_better,
        lr=best.lr,
        weight_decay=best.weight_decay,
        tried=tuple(tried),
    )


def with_rates(run: AnyRun, lr: float, decay: float) -> AnyRun:
    r"""Returns a run with a learning rate and a weight decay, such as those of a choice."""
    return run.with_values({SEARCHED[0]: lr, SEARCHED[1]: decay})


def without_trials(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the entries without trials that were not chosen and have not the row's settings."""
    tried = {trial.key for choice in choices for trial in choice.tried}
    tried -= {key for choice in choices for key in (choice.key, choice.picked.key)}
    return [entry for entry in entries if entry.key not in tried]


def chosen_entries(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the runs of a comparison with the chosen learning rates."""
    rates = {choice.key: choice.lr for choice in choices}
    found = [(rates.get(entry.key.rpartition("-lr")[0]), entry) for entry in entries]
    return [entry for lr, entry in found if lr == entry.config["training"]["lr"]]


def trials(planned: Sequence[AnyRun], settings: Sequence[Setting]) -> list[AnyRun]:
    r"""Returns all runs of the searches for the rows of some runs, each with its first seed."""
    return [trial for run in _first_seeds(planned) for trial in grid(run, settings)]


def search_rates(
    planned: Sequence[AnyRun],
    results: str | Path,
    train: Callable[[Sequence[AnyRun]], Any],
    settings: Sequence[Setting],
) -> tuple[list[AnyRun], list[Choice], dict[str, str]]:
    r"""Tries settings for each row on its first seed, and writes the choices down. Returns the runs
    with the chosen settings, without rows whose trials all failed; the choices; and why trials
    failed, by their keys."""
    failed = train(trials(planned, settings)).failed
    choices = {}
    for run in _first_seeds(planned):
        entries = ledger_of(run.table, results).entries()
        choice = choose(run, entries, grid(run, settings))
        if choice is not None:
            choices_of(run.table, results).add(choice)
            choices[run.row, run.variant] = choice
    chosen = [
        with_rates(run, choice.lr, choice.weight_decay)
        for run in planned
        if (choice := choices.get((run.row, run.variant)))
    ]
    return chosen, list(choices.values()), failed


def _first_seeds(planned: Sequence[AnyRun]) -> list[AnyRun]:
    first: dict[tuple[str, str], AnyRun] = {}
    for run in planned:
        first.setdefault((run.row, run.variant), run)
    return list(first.values())
