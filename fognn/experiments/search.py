r"""Learning rates: the search for learning rate and weight decay, its choice by validation, and how
much of each gain of the paper is due to them."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict

from fognn.experiments.differences import Difference, estimate, paired_difference, value_of
from fognn.experiments.ledger import JsonLines, KeyedLine, LedgerEntry, ledger_of, readable
from fognn.experiments.rows import TABLES, rows_of
from fognn.experiments.tables import Run, TableRun, host_variant, is_host, plan, variant_of

SEARCHED = ("training.lr", "training.weight_decay")
RATES = (1e-2, 5e-3, 1e-3, 5e-4)
DECAYS = (1e-3, 1e-6, 0.0)
# A learning rate and a weight decay.
Setting = tuple[float, float]
# The grid of the paper.
GRID: tuple[Setting, ...] = tuple(itertools.product(RATES, DECAYS))
# Returns the learning rates and weight decays to try for a run.
Settings = Callable[[Any], Sequence[Setting]]
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
    known = {entry.key: entry for entry in entries}
    tried = tuple(_trial(trial, known.get(trial.key)) for trial in trials)
    finished = {trial: trial.score for trial in tried if trial.score is not None}
    if not finished:
        return None
    higher = known[next(iter(finished)).key].result["higher_is_better"]
    best = (max if higher else min)(finished, key=lambda trial: finished[trial])
    return Choice(
        key=run.search_key,
        table=run.table,
        row=run.row,
        variant=run.variant,
        label=run.label,
        seed=run.config.seed,
        metric=run.config.training.metric,
        higher_is_better=higher,
        lr=best.lr,
        weight_decay=best.weight_decay,
        tried=tried,
    )


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


def trials(planned: Sequence[AnyRun], settings: Settings) -> list[AnyRun]:
    r"""Returns all runs of the searches for the rows of some runs, each with its first seed."""
    return [trial for run in _first_seeds(planned) for trial in grid(run, settings(run))]


def search_rates(
    planned: Sequence[AnyRun],
    results: str | Path,
    train: Callable[[Sequence[AnyRun]], Any],
    settings: Settings,
    skip_failed: bool = False,
) -> tuple[list[AnyRun], list[Choice]]:
    r"""Tries learning rates and weight decays for each row on its first seed, chooses by the
    validation metric, and writes the choices into ``results/searches``. Returns the runs with the
    chosen ones, and the choices; rows whose trials all fail are left out with ``skip_failed``."""
    failed = train(trials(planned, settings)).failed
    if failed and not skip_failed:
        reasons = "; ".join(f"{key}: {reason}" for key, reason in failed.items())
        raise ValueError(f"search: all runs must finish before one can be chosen; {reasons}")
    choices = {}
    for run in _first_seeds(planned):
        entries = ledger_of(run.table, results).entries()
        choice = choose(run, entries, grid(run, settings(run)))
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


def pair_settings(run: TableRun) -> list[Setting]:
    r"""Returns the learning rates and weight decays that the paper gives a host and the host with
    FOG, the highest rate first; those of its own row if there is no such pair."""
    own = run.paper
    pair = [
        row for row in rows_of(run.table) if row == own or is_host(own, row) or is_host(row, own)
    ]
    return sorted({(row.lr, row.weight_decay) for row in pair}, reverse=True)


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
    runs: dict[tuple[str, str, str], list[TableRun]] = {}
    for run in plan(table, seeds=seeds or 1):
        runs.setdefault(_row(run), []).append(run)
    sides = [_side(group, entries, choices) for group in runs.values()]
    lines = []
    for fog, host in itertools.product(sides, sides):
        one, other = fog["run"], host["run"]
        same = variant_of(other.paper, other.variant) == host_variant(one.paper, one.variant)
        if not one.variant and is_host(other.paper, one.paper) and same:
            lines.append(_rates(host, fog, TABLES[table].at, TABLES[table].over))
    return pd.DataFrame(lines)


def _side(
    runs: Sequence[TableRun], entries: Mapping[str, LedgerEntry], choices: Mapping[str, Choice]
) -> dict[str, Any]:
    # Searches of the row's own protocol; one with fewer epochs or data has another key.
    choice = next((choices[run.key] for run in runs if run.key in choices), None)
    own, training = [run.key for run in runs], runs[0].config.training
    chosen = [with_choice(run, choice).key for run in runs] if choice else []
    return {
        "run": runs[0],
        "own": (training.lr, training.weight_decay),
        "chosen": (choice.lr, choice.weight_decay) if choice else None,
        "tried": {(trial.lr, trial.weight_decay) for trial in choice.tried} if choice else set(),
        "own_runs": [entries[key] for key in own if key in entries],
        "chosen_runs": [entries[key] for key in chosen if key in entries],
    }


def _rates(host: dict[str, Any], fog: dict[str, Any], at: str, over: str) -> dict[str, Any]:
    fair, settings, tries = None, None, ""
    if host["tried"] and fog["tried"]:
        tries = str(len(host["tried"])) if host["tried"] == fog["tried"] else "not equal"
    if tries.isdigit():
        fair = paired_difference(fog["chosen_runs"], host["chosen_runs"], at, over)
        groups = (fog["own_runs"], host["own_runs"], fog["chosen_runs"], host["chosen_runs"])
        values = [{e.seed: value_of(e, at, over) for e in group} for group in groups]
        common = [seed for seed in values[0] if all(seed in value for value in values)]
        parts = [(a[s] - b[s]) - (c[s] - d[s]) for s in common for a, b, c, d in [values]]
        if parts:
            mean, _, low, high = estimate(parts)
            settings = Difference(mean, low, high, len(parts), "seed")
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
