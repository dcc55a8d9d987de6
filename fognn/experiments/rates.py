r"""How much of each gain is due to learning rates: hosts and hosts with FOG that chose theirs among
the same tries, beside those with the paper's settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import Difference, estimate, paired_difference, value_of
from fognn.experiments.ledger import LedgerEntry, ledger_of, readable
from fognn.experiments.rows import TABLES, rows_of
from fognn.experiments.search import Choice, Setting, choices_of, with_choice
from fognn.experiments.tables import TableRun, host_variant, is_host, plan, variant_of

__all__ = ["pair_settings", "rates_frame"]


def pair_settings(run: TableRun) -> list[Setting]:
    r"""Returns the learning rates and weight decays that the paper gives a host and the host with
    FOG, the highest rate first; those of its own row if there is no such pair."""
    own = run.paper
    pair = [
        row for row in rows_of(run.table) if row == own or is_host(own, row) or is_host(row, own)
    ]
    return sorted({(row.lr, row.weight_decay) for row in pair}, reverse=True)


def rates_frame(table: str, results: str | Path = "results") -> pd.DataFrame:
    r"""Returns a row for each host of a table and the same host with FOG: their difference at the
    paper's settings, and where both chose learning rate and weight decay among the same tries.

    A network with FOG is compared with the host of the same variant: GCN+FOG with GCN of the
    symmetric norm. The columns are ``network`` (the label of the host), ``metric``, ``own_host``,
    ``own_fog``, ``chosen_host`` and ``chosen_fog`` (pairs of a learning rate and a weight decay;
    :obj:`None` without a search), ``tries`` (of each, or ``"not equal"``), and three
    :class:`Difference`, or :obj:`None`: ``printed`` (with the paper's settings), ``fair`` (with the
    chosen ones) and ``settings`` (the first minus the second, over the seeds that have both).
    """
    results = readable(results)
    entries = {entry.key: entry for entry in ledger_of(table, results).entries()}
    choices = {choice.key: choice for choice in choices_of(table, results).read()}
    seeds = sorted({entry.seed for entry in entries.values()})
    runs: dict[tuple[str, str], list[TableRun]] = {}
    for run in plan(table, seeds=seeds or 1):
        runs.setdefault((run.row, run.variant), []).append(run)
    sides = [_side(group, entries, choices) for group in runs.values()]
    shown = TABLES[table]
    lines = []
    for fog in sides:
        for host in sides:
            one, other = fog["run"], host["run"]
            same = variant_of(other.paper, other.variant) == host_variant(one.paper, one.variant)
            if not one.variant and is_host(other.paper, one.paper) and same:
                lines.append(_rates(host, fog, shown.at, shown.over))
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
    printed = paired_difference(fog["own_runs"], host["own_runs"], at, over)
    fair, settings = None, None
    equal = bool(host["tried"]) and host["tried"] == fog["tried"]
    if equal:
        fair = paired_difference(fog["chosen_runs"], host["chosen_runs"], at, over)
        groups = (fog["own_runs"], host["own_runs"], fog["chosen_runs"], host["chosen_runs"])
        values = [{e.seed: value_of(e, at, over) for e in group} for group in groups]
        common = [seed for seed in values[0] if all(seed in value for value in values)]
        parts = [(a[s] - b[s]) - (c[s] - d[s]) for s in common for a, b, c, d in [values]]
        if parts:
            mean, _, low, high = estimate(parts)
            settings = Difference(mean, low, high, len(parts), "seed")
    tries = str(len(host["tried"])) if equal else "not equal"
    return {
        "network": host["run"].label,
        "metric": host["run"].config.training.metric,
        "own_host": host["own"],
        "own_fog": fog["own"],
        "chosen_host": host["chosen"],
        "chosen_fog": fog["chosen"],
        "tries": tries if host["tried"] and fog["tried"] else "",
        "printed": printed,
        "fair": fair,
        "settings": settings,
    }
