r"""How much of each gain of the paper is due to learning rates: ``fognn table rates``."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import (
    METRICS,
    NONE,
    Difference,
    Metric,
    difference_over,
    gaps,
    paired_difference,
    pluralize,
)
from fognn.experiments.ledger import LedgerEntry, ledger_of, readable
from fognn.experiments.rows import TABLES
from fognn.experiments.search import Choice, choices_of, with_rates
from fognn.experiments.tables import TableRun, is_host, plan, same_variant
from fognn.report.forms import Table

_RATES = ["host", "paper: host, FOG", "FOG − host", "chosen: host, FOG"]
_RATES += ["FOG − host, equal tries", "due to settings", "tries each"]


def rates_tables(results: Path) -> list[Table]:
    r"""Returns how much of each gain is due to learning rates, a table for each with a search."""
    searched = [name for name in TABLES if choices_of(name, results).path.exists()]
    found = []
    for name in searched or ["zinc"]:
        frame = rates_frame(name, results)
        metric = METRICS[frame["metric"].iloc[0]]
        title = (
            f"{TABLES[name].title}: {metric.axis}, {metric.direction}; how much of each gain is "
            "due to settings? Ours, not in the paper."
        )
        note = (
            "Settings: learning rate, and after a slash the weight decay, if there is one. The "
            "paper gives hosts and hosts with FOG different ones. Chosen: by validation over "
            "items, each run at its best epoch, the first seed, among the same tries for both "
            f"(fognn reproduce {name} --search). Due to settings: the first difference minus the "
            "second, over the seeds that have both; nothing, if the paper's settings are chosen. "
            "Intervals are of 95 %, by Student's t; one seed has none."
        )
        cells = []
        for line in frame.itertuples():
            own = f"{_setting(line.own_host)}; {_setting(line.own_fog)}"
            chosen = f"{_setting(line.chosen_host)}; {_setting(line.chosen_fog)}"
            differences = (line.printed, line.fair, line.settings)
            printed, fair, settings = (_difference(one, metric) for one in differences)
            due = "nothing" if line.settings and own == chosen else settings
            cells.append([line.network, own, printed, chosen, fair, due, line.tries or NONE])
        found.append(Table(title, _RATES, cells, [note], range(1, len(_RATES))))
    return found


def _setting(setting: tuple[float, float] | None) -> str:
    if setting is None:
        return "not run"
    lr, decay = setting
    return f"{lr:g}" if decay == 0 else f"{lr:g} / {decay:g}"


def _difference(found: Difference | None, metric: Metric) -> str:
    if found is None:
        return "not run"
    interval = metric.interval(found.low, found.high)
    text = f"{metric.signed(found.value)} {interval}".rstrip()
    return f"{text}, {pluralize(found.pairs, found.over)}"


def rates_frame(table: str, results: str | Path = "results") -> pd.DataFrame:
    r"""Returns a row for each host of a table and the same host with FOG: their settings, each a
    learning rate and a weight decay, the number of ``tries``, and three :class:`Difference`:
    ``printed`` (with the paper's settings), ``fair`` (with the chosen ones) and ``settings`` (the
    first minus the second)."""
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
            lines.append(_line(host, fog, at, over))
    return pd.DataFrame(lines)


def _side(
    runs: Sequence[TableRun], entries: Mapping[str, LedgerEntry], choices: Mapping[str, Choice]
) -> dict[str, Any]:
    # Searches of the row's own protocol; one with fewer epochs or data has another key.
    choice = next((choices[run.key] for run in runs if run.key in choices), None)
    training = runs[0].config.training
    picked = (choice.lr, choice.weight_decay) if choice else None
    chosen = [with_rates(run, *picked).key for run in runs] if picked else []
    return {
        "run": runs[0],
        "own": (training.lr, training.weight_decay),
        "chosen": picked,
        "tried": {(trial.lr, trial.weight_decay) for trial in choice.tried} if choice else set(),
        "own_runs": [entries[run.key] for run in runs if run.key in entries],
        "chosen_runs": [entries[key] for key in chosen if key in entries],
    }


def _line(host: dict[str, Any], fog: dict[str, Any], at: str, over: str) -> dict[str, Any]:
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
