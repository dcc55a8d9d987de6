r"""Hosts and hosts with FOG that chose their learning rates among the same tries, beside those with
the paper's settings: how much of the gain is due to the settings?"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.pairing import Paired, paired_difference, t_interval
from fognn.experiments.rows import rows_of
from fognn.experiments.scores import score_of
from fognn.experiments.search import Choice, Setting, choices_of, with_choice
from fognn.experiments.tables import (
    TABLES,
    TableRun,
    host_variant,
    is_host,
    plan,
    variant_of,
)

__all__ = ["FairPair", "Side", "fair_pairs", "pair_settings"]


@dataclass(frozen=True)
class Side:
    r"""A network with the paper's settings, and with those that a search chose.

    Args:
        planned (TableRun): Its run with the paper's settings.
        entries (tuple): Its runs with the paper's settings, by seed.
        choice (Choice, optional): The search; :obj:`None` if there was none.
        chosen (tuple): Its runs with the chosen settings, by seed. They are the same runs if the
            search chose the paper's settings.
    """

    planned: TableRun
    entries: tuple[LedgerEntry, ...]
    choice: Choice | None
    chosen: tuple[LedgerEntry, ...]

    @property
    def tried(self) -> set[Setting]:
        r"""The learning rates and weight decays that were tried."""
        return {(t.lr, t.weight_decay) for t in self.choice.tried} if self.choice else set()


@dataclass(frozen=True)
class FairPair:
    r"""A host and the host with FOG.

    Args:
        host (Side): The host.
        fog (Side): The host with FOG.
        printed (Paired, optional): FOG - host with the paper's settings.
        fair (Paired, optional): FOG - host, where both chose among the same tries; :obj:`None` if
            one was not searched, or if their tries differ.
        settings (Paired, optional): The first difference minus the second, over the seeds that have
            both: the part of the gain that is due to the settings.
    """

    host: Side
    fog: Side
    printed: Paired | None
    fair: Paired | None
    settings: Paired | None


def fair_pairs(table: str, results: Path) -> list[FairPair]:
    r"""Returns the pairs of a table of the paper, measured or not.

    A network with FOG is compared with the host of the same reading of the paper: GCN+FOG with GCN
    of the symmetric norm.

    Args:
        table (str): One of :obj:`fognn.experiments.rows.TABLES`.
        results (Path): The folder of the ledgers.
    """
    entries = {entry.key: entry for entry in ledger_of(table, results).entries()}
    choices = {choice.key: choice for choice in choices_of(table, results).read()}
    seeds = sorted({entry.seed for entry in entries.values()})
    runs: dict[tuple[str, str], list[TableRun]] = {}
    for run in plan(table, seeds=seeds or 1):
        runs.setdefault((run.row, run.variant), []).append(run)
    sides = [_side(group, entries, choices) for group in runs.values()]
    shown = TABLES[table]
    return [
        _pair(host, fog, shown.at, shown.over)
        for fog in sides
        for host in sides
        if not fog.planned.variant
        and is_host(host.planned.paper, fog.planned.paper)
        and variant_of(host.planned.paper, host.planned.variant)
        == host_variant(fog.planned.paper, fog.planned.variant)
    ]


def pair_settings(planned: TableRun) -> list[Setting]:
    r"""Returns the learning rates and weight decays that the paper gives a host and the host with
    FOG, the highest rate first; those of its own row if there is no such pair.

    Args:
        planned (TableRun): A run of the host, or of the host with FOG.
    """
    own = planned.paper
    pair = [
        row
        for row in rows_of(planned.table)
        if row == own or is_host(own, row) or is_host(row, own)
    ]
    return sorted({(row.lr, row.weight_decay) for row in pair}, reverse=True)


def _side(
    runs: Sequence[TableRun], entries: dict[str, LedgerEntry], choices: dict[str, Choice]
) -> Side:
    # Searches of the row's own protocol; one with fewer epochs or data has another key.
    choice = next((choices[run.key] for run in runs if run.key in choices), None)
    own = (entries.get(run.key) for run in runs)
    chosen = (entries.get(with_choice(run, choice).key) for run in runs if choice)
    return Side(
        runs[0],
        tuple(entry for entry in own if entry is not None),
        choice,
        tuple(entry for entry in chosen if entry is not None),
    )


def _pair(host: Side, fog: Side, at: str, over: str) -> FairPair:
    label = host.planned.label
    printed = paired_difference(label, fog.entries, host.entries, at, over)
    if not host.tried or host.tried != fog.tried:
        return FairPair(host, fog, printed, None, None)
    fair = paired_difference(label, fog.chosen, host.chosen, at, over)
    return FairPair(host, fog, printed, fair, _settings(host, fog, at, over))


def _settings(host: Side, fog: Side, at: str, over: str) -> Paired | None:
    groups = (fog.entries, host.entries, fog.chosen, host.chosen)
    figures = [{e.seed: score_of(e, at, over).value for e in group} for group in groups]
    common = [seed for seed in figures[0] if all(seed in figure for figure in figures)]
    if not common:
        return None
    parts = []
    for seed in common:
        first, second, third, fourth = (figure[seed] for figure in figures)
        parts.append(first - second - (third - fourth))
    label = host.planned.label
    return Paired(label, statistics.fmean(parts), t_interval(parts), len(parts), "seed")
