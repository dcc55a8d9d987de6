r"""Learning rates: the search for learning rate and weight decay, its choice by validation, and how
much of each gain of the paper is due to them."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict

from fognn.experiments.differences import METRICS, difference_over, gaps, paired_difference
from fognn.experiments.ledger import (
    JsonLines,
    KeyedLine,
    LedgerEntry,
    ledger_of,
    names_of,
    readable,
)
from fognn.experiments.rows import TABLES
from fognn.experiments.tables import Run, TableRun, is_host, plan, same_variant

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


def choices_of(table: str, results: str | Path) -> JsonLines[Choice]:
    r"""Returns the file of a table's searches, one line for each."""
    return JsonLines(Path(results) / "searches" / f"{table}.jsonl", Choice)


def grid(run: AnyRun, settings: Sequence[Setting] = GRID) -> list[AnyRun]:
    r"""Returns a run for each pair of a learning rate and a weight decay. The run with its own
    ones keeps its key, so it is not trained twice."""
    return [_with_values(run, lr, decay) for lr, decay in settings]


def choose(run: Run, entries: Sequence[LedgerEntry], trials: Sequence[Run]) -> Choice | None:
    r"""Chooses learning rate and weight decay by the validation metric of the trials, the runs of
    :func:`grid`; the first if several are equal, :obj:`None` if all failed."""
    scores = {entry.key: entry.result["val"]["best"]["items"] for entry in entries}
    tried = tuple(_trial(trial, scores.get(trial.key)) for trial in trials)
    finished = {trial: trial.score for trial in tried if trial.score is not None}
    if not finished:
        return None
    metric = run.config.training.metric
    higher = METRICS[metric].higher_is_better
    best = (max if higher else min)(finished, key=lambda trial: finished[trial])
    return Choice(
        **names_of(run) | {"key": run.search_key},
        seed=run.config.seed,
        metric=metric,
        higher_is_better=higher,
        lr=best.lr,
        weight_decay=best.weight_decay,
        tried=tried,
    )


def _trial(run: Run, score: float | None) -> Trial:
    training = run.config.training
    return Trial(key=run.key, lr=training.lr, weight_decay=training.weight_decay, score=score)


def with_choice(run: AnyRun, choice: Choice) -> AnyRun:
    r"""Returns a run with the learning rate and the weight decay that a search chose for it."""
    return _with_values(run, choice.lr, choice.weight_decay)


def _with_values(run: AnyRun, lr: float, decay: float) -> AnyRun:
    return replace(run, config=run.config.with_values({SEARCHED[0]: lr, SEARCHED[1]: decay}))


def without_trials(entries: Sequence[LedgerEntry], choices: Sequence[Choice]) -> list[LedgerEntry]:
    r"""Returns the entries without the trials of searches; chosen trials, and those with the row's
    own learning rate and weight decay, are kept."""
    tried = {trial.key for choice in choices for trial in choice.tried}
    kept = {key for choice in choices for key in (choice.key, choice.picked.key)}
    return [entry for entry in entries if entry.key not in tried - kept]


def trials(planned: Sequence[AnyRun], settings: Sequence[Setting]) -> list[AnyRun]:
    r"""Returns all runs of the searches for the rows of some runs, each with its first seed."""
    return [trial for run in _first_seeds(planned) for trial in grid(run, settings)]


def search_rates(
    planned: Sequence[AnyRun],
    results: str | Path,
    train: Callable[[Sequence[AnyRun]], Any],
    settings: Sequence[Setting],
    skip_failed: bool = False,
) -> tuple[list[AnyRun], list[Choice]]:
    r"""Tries learning rates and weight decays for each row of a table on its first seed, chooses by
    the validation metric, and writes the choices into ``results/searches``. Returns the runs with
    the chosen ones, and the choices; rows whose trials all fail are left out with
    ``skip_failed``."""
    failed = train(trials(planned, settings)).failed
    if failed and not skip_failed:
        reasons = "; ".join(f"{key}: {reason}" for key, reason in failed.items())
        raise ValueError(f"search: all runs must finish before one can be chosen; {reasons}")
    choices = {}
    for run in _first_seeds(planned):
        entries = ledger_of(run.table, results).entries()
        choice = choose(run, entries, grid(run, settings))
        if choice is not None:
            choices_of(run.table, results).add(choice)
            choices[run.row, run.variant] = choice
    chosen = [
        with_choice(run, choices[run.row, run.variant])
        for run in planned
        if (run.row, run.variant) in choices
    ]
    return chosen, list(choices.values())


def _first_seeds(planned: Sequence[AnyRun]) -> list[AnyRun]:
    first: dict[tuple[str, str], AnyRun] = {}
    for run in planned:
        first.setdefault((run.row, run.variant), run)
    return list(first.values())


def rates_frame(table: str, results: str | Path = "results") -> pd.DataFrame:
    r"""Returns a row for each host of a table and the same host with FOG.

    ``own_host``, ``own_fog``, ``chosen_host`` and ``chosen_fog`` are pairs of a learning rate and a
    weight decay; ``tries`` is their number, or ``"not equal"``; and three are a
    :class:`Difference`: ``printed`` (with the paper's settings), ``fair`` (with the chosen ones)
    and ``settings`` (the first minus the second).
    """
    results = readable(results)
    entries = {entry.key: entry for entry in ledger_of(table, results).entries()}
    choices = {choice.key: choice for choice in choices_of(table, results).entries()}
    seeds = sorted({entry.seed for entry in entries.values()})
    groups: dict[tuple[str, str], list[TableRun]] = {}
    for run in plan(table, seeds=seeds or 1):
        groups.setdefault((run.row, run.variant), []).append(run)
    sides = [_side(runs, entries, choices) for runs in groups.values()]
    at, over = TABLES[table].at, TABLES[table].over
    lines = []
    for fog, host in itertools.product(sides, sides):
        one, other = fog["run"], host["run"]
        same = same_variant(other.paper, other.variant, one.paper, one.variant)
        if not one.variant and is_host(other.paper, one.paper) and same:
            lines.append(_rates(host, fog, at, over))
    return pd.DataFrame(lines)


def _side(
    runs: Sequence[TableRun], entries: Mapping[str, LedgerEntry], choices: Mapping[str, Choice]
) -> dict[str, Any]:
    # Searches of the row's own protocol; one with fewer epochs or data has another key.
    choice = next((choices[run.key] for run in runs if run.key in choices), None)
    training = runs[0].config.training
    chosen = [with_choice(run, choice).key for run in runs] if choice else []
    return {
        "run": runs[0],
        "own": (training.lr, training.weight_decay),
        "chosen": (choice.lr, choice.weight_decay) if choice else None,
        "tried": {(trial.lr, trial.weight_decay) for trial in choice.tried} if choice else set(),
        "own_runs": [entries[run.key] for run in runs if run.key in entries],
        "chosen_runs": [entries[key] for key in chosen if key in entries],
    }


def _rates(host: dict[str, Any], fog: dict[str, Any], at: str, over: str) -> dict[str, Any]:
    fair, settings, tries = None, None, ""
    if host["tried"] and fog["tried"]:
        tries = str(len(host["tried"])) if host["tried"] == fog["tried"] else "not equal"
    if tries.isdigit():
        fair = paired_difference(fog["chosen_runs"], host["chosen_runs"], at, over)
        own = gaps(fog["own_runs"], host["own_runs"], at, over)
        chosen = gaps(fog["chosen_runs"], host["chosen_runs"], at, over)
        settings = difference_over([own[seed] - chosen[seed] for seed in own if seed in chosen])
    return {
        "network": host["run"].label,
        "metric": host["run"].config.training.metric,
        "own_host": host["own"],
        "own_fog": fog["own"],
        "chosen_host": host["chosen"],
        "chosen_fog": fog["chosen"],
        "tries": tries,
        "printed": paired_difference(fog["own_runs"], host["own_runs"], at, over),
        "fair": fair,
        "settings": settings,
    }
