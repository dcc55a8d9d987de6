r"""The content of the page that compares runs."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.pairing import paired_difference
from fognn.experiments.scores import check_result, peak_memory, score_of
from fognn.experiments.table_line import TableLine
from fognn.models.registry import FOG_SETTINGS
from fognn.report.claims import FEW, few_seeds, verdict_of
from fognn.report.measurements import AT, OVER, RUNS, run_link
from fognn.report.metric import METRICS, Metric
from fognn.report.site.curves import MOST, compared_figures
from fognn.report.site.pages import DIFFERENCE, cell, difference_cells, plus_minus
from fognn.report.site.plots import same_machine
from fognn.report.site.run_page import facts_of, settings_of
from fognn.report.text import NONE, capital, joined, mebibytes, pluralize

__all__ = ["View", "runs_context"]

# Settings that do not make two runs different: the seed and the machine.
_SAME = ("seed", "machine.", "data.folder")
# FOG's own settings, and the width, which is chosen for an equal number of parameters.
_OF_FOG = (
    *("model.name", *(f"model.{name}" for name in FOG_SETTINGS)),
    *("model.channels", "model.head_channels", "model.hidden"),
)
_MUCH = 0.05  # a relative difference in parameters that is worth a sentence
_STEADY = 1.5  # the ratio of the slow to the fast epochs of a run on a machine without other work
_ITEMS = "over all items"
_CURVES = ("train_loss", "val_loss", "val")
_VERDICTS = {
    "holds": "{one} is better than {other}",
    "fails": "{one} is worse than {other}",
    "unclear": "There is no clear difference between {one} and {other}",
    "seen": "{one} was better than {other} with the {seeds} of both",
    "against": "{one} was not better than {other} with the {seeds} of both",
}


@dataclass(frozen=True)
class View:
    r"""Which figures of the runs are compared.

    Args:
        at (str, optional): The epoch: ``"last"`` or ``"best"``. (default: :obj:`"last"`)
        over (str, optional): The average: over ``"batches"`` or ``"items"``.
            (default: :obj:`"batches"`)
        searched (tuple, optional): Settings that each network has from a search of its own, so that
            a difference in them is part of the comparison. (default: :obj:`()`)
    """

    at: str = AT
    over: str = OVER
    searched: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        r"""The epoch and the average in words."""
        epoch = "the last epoch" if self.at == "last" else "the best validation epoch"
        return f"{epoch}, {'the mean over the batches' if self.over == 'batches' else _ITEMS}"


def runs_context(entries: Sequence[LedgerEntry], view: View | None = None) -> dict[str, Any]:
    r"""The page that compares runs, with a part for each dataset and metric.

    Runs that differ only in their seed or in the machine are one row. A network with FOG is
    compared with the same network without it; two rows that are no such pair are compared with
    each other.

    Args:
        entries (sequence of LedgerEntry): Finished runs.
        view (View, optional): Which figures are compared. (default: :class:`View()`)
    """
    view = View() if view is None else view
    parts: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        check_result(entry)
        parts.setdefault((entry.data, entry.result["metric"]), []).append(entry)
    made = [_part(own, number, view) for number, own in enumerate(parts.values())]
    for part, (data, metric) in zip(made, parts, strict=True):
        part["title"] = f"{data}, {METRICS[metric].label}" if len(made) > 1 else ""
    labels = [line.label for line in made[0]["lines"]]
    title = f"{joined(labels)} on {entries[0].data}" if len(labels) < 4 else entries[0].data
    return {
        "title": title if len(made) == 1 else "Runs compared",
        "summary": made[0]["findings"].pop(0) if len(made) == 1 else _count(entries),
        "how": (
            f"Shown is the metric on the test split at {view.text} (without a test split: on the "
            "validation split at its best epoch, over all items); the page of each run has the "
            "other averages and epochs. ± is the standard deviation over seeds. A difference is "
            "that between runs of the same seed, with its 95 % interval by Student's t."
        ),
        "datasets": made,
        "figures": [f for part in made for pair in part["curves"] for f in pair["figures"]],
        "sortable": True,
    }


def _count(entries: Sequence[LedgerEntry]) -> str:
    return (
        f"{pluralize(len(entries), 'run')} on {joined(sorted({entry.data for entry in entries}))}."
    )


def _part(entries: Sequence[LedgerEntry], number: int, view: View) -> dict[str, Any]:
    metric = METRICS[entries[0].result["metric"]]
    lines, hosts = _compared(_lines(entries, view), view)
    findings = [
        sentence
        for line, host in hosts.items()
        for sentence in _findings(next(o for o in lines if o.label == line), host, metric, view)
    ]
    if not findings:
        findings = [_count(entries)]
    split = "test" if any(entry.result["test"] for entry in entries) else "validation"
    fog = all(_is_fog_of(line, hosts[line.label]) for line in lines if line.label in hosts)
    header = ["network", "parameters", f"{split} {metric.axis}", "seeds"]
    header += [DIFFERENCE if fog else "difference", "95 % interval"] if hosts else []
    memory = any(peak_memory(line.entries) for line in lines)
    every = [_settings(line.entries[0]) for line in lines]
    differing = {name: [own.get(name, NONE) for own in every] for own in every for name in own}
    differing = {name: values for name, values in differing.items() if len(set(values)) > 1}
    return {
        "lines": lines,
        "findings": findings,
        "group": f"curves-{number}",
        "caption": f"{entries[0].data}: {metric.axis}, {metric.direction}",
        "header": [*header, "s an epoch", *(["peak memory"] if memory else []), "epochs"],
        "rows": [_row(line, metric, bool(hosts), memory) for line in lines],
        "notes": _notes(entries, lines),
        "figures": [],
        "curves": _curves(lines, hosts, metric, number),
        "more": {
            "names": [line.label for line in lines],
            "differing": [[name, *values] for name, values in differing.items()],
            "same": [[name, value] for name, value in every[0].items() if name not in differing],
            "commands": "\n".join(str(entry.result.get("command")) for entry in entries),
            "facts": _joined_facts(entries),
        },
    }


def _lines(entries: Sequence[LedgerEntry], view: View) -> list[TableLine]:
    r"""A line for all runs that differ only in the seed or in the machine."""
    groups: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault(str(sorted(_settings(entry).items())), []).append(entry)
    lines = []
    for own in groups.values():
        own.sort(key=lambda entry: entry.seed)
        if len({entry.seed for entry in own}) < len(own):
            keys = [entry.key for entry in own]
            raise ValueError(f"runs must not contain a run twice, got {joined(keys)}")
        scores = [score_of(entry, view.at, view.over) for entry in own]
        values = tuple(score.value for score in scores)
        spreads = [score.spread for score in scores if score.spread is not None]
        sd = statistics.fmean(spreads) if spreads else None
        if not spreads and len(values) > 1:
            sd = statistics.stdev(values)
        others = [g[0] for g in groups.values() if g[0].model == own[0].model]
        lines.append(
            TableLine(
                *(RUNS, "", "", _label(own[0], others)),
                entries=tuple(own),
                values=values,
                mean=statistics.fmean(values),
                sd=sd,
            )
        )
    return lines


def _settings(entry: LedgerEntry) -> dict[str, str]:
    r"""The settings that make a run what it is, as text."""
    return {name: v for name, v in settings_of(entry).items() if not name.startswith(_SAME)}


def _label(entry: LedgerEntry, others: Sequence[LedgerEntry]) -> str:
    r"""The network, and the settings that tell it from others of the same network."""
    mine, every = _settings(entry), [_settings(other) for other in others]
    own = [
        f"{name} {mine.get(name, NONE)}"
        for name in dict.fromkeys(name for each in every for name in each)
        if len({each.get(name, NONE) for each in every}) > 1
    ]
    return f"{entry.label} ({', '.join(own)})" if own else entry.label


def _compared(
    lines: Sequence[TableLine], view: View
) -> tuple[list[TableLine], dict[str, TableLine]]:
    r"""The lines with their paired differences, and the line that each was compared with."""
    hosts = {}
    for line in lines:
        own = [other for other in lines if _is_fog_of(line, other)]
        if own:
            # Of several hosts, the one with the most settings in common.
            unequal = [len(_unequal(line, host, view)) for host in own]
            hosts[line.label] = own[unequal.index(min(unequal))]
    if not hosts and len(lines) == 2:
        hosts[lines[1].label] = lines[0]
    made = []
    for line in lines:
        other = hosts.get(line.label)
        if other is not None:
            paired = paired_difference(other.label, line.entries, other.entries, view.at, view.over)
            line = replace(line, paired=paired)
        made.append(line)
    return made, hosts


def _is_fog_of(line: TableLine, host: TableLine) -> bool:
    one, other = line.entries[0], host.entries[0]
    # Runs of a comparison have their host and budget as row, other runs have none.
    return one.model == f"{other.model}+fog" and one.row == other.row


def _unequal(line: TableLine, host: TableLine, view: View) -> dict[str, tuple[str, str]]:
    r"""The settings in which the two differ, other than those of the network itself."""
    one, other = _settings(line.entries[0]), _settings(host.entries[0])
    pairs = {name: (one.get(name, NONE), other.get(name, NONE)) for name in one | other}
    network = (*(_OF_FOG if _is_fog_of(line, host) else ("model.",)), *view.searched)
    return {
        n: pair for n, pair in pairs.items() if pair[0] != pair[1] and not n.startswith(network)
    }


def _findings(line: TableLine, host: TableLine, metric: Metric, view: View) -> list[str]:
    r"""Sentences about the difference, its cost, and whether it is that of FOG alone."""
    one, other, paired = line.label, host.label, line.paired
    if paired is None:
        return [f"{one} and {other} have no seed in common: there is no difference to show."]
    few = few_seeds(paired)
    text = _VERDICTS[verdict_of(paired, metric)].format(one=one, other=other, seeds=few)
    text += f": {metric.label} {metric.number(line.mean or 0)} against "
    text += f"{metric.number(host.mean or 0)}" + " %" * metric.percent
    text += f" ({metric.direction}); the difference is {metric.signed(paired.difference)}"
    if paired.interval is not None:
        text += f", its 95 % interval over {pluralize(paired.pairs, f'common {paired.over}')} "
        text += metric.interval(paired.interval)
    text += "."
    if paired.over == "fold":
        text += " Folds share their training graphs, so the interval is too narrow."
    if few:
        text += f" {capital(FEW)}: another seed may show the opposite."
    sentences = [text]
    unequal = [f"{name} ({a} and {b})" for name, (a, b) in _unequal(line, host, view).items()]
    if unequal and line.entries[0].model != host.entries[0].model:
        sentences.append(
            f"The comparison is not of the networks alone: {one} and {other} also differ in "
            f"{joined(unequal)}."
        )
    sizes = line.parameters or 0, host.parameters or 0
    cost = f"{one} has {sizes[0]:,} parameters, {other} {sizes[1]:,}"
    if abs(sizes[0] - sizes[1]) > _MUCH * sizes[1]:
        cost += f" ({100 * (sizes[0] / sizes[1] - 1):+.0f} %)".replace("-", "−")
    if not same_machine([*line.entries, *host.entries]):
        ratio = (line.seconds_per_epoch or 0) / (host.seconds_per_epoch or 1)
        cost += f"; an epoch takes {ratio:.2f} times as long"
        spread = max(_time_spread(entry) for entry in (*line.entries, *host.entries))
        if spread > _STEADY:
            cost += f" (not reliable: epochs of the same run differ {spread:.1f}-fold in time)"
    return [*sentences, f"{cost}."]


def _time_spread(entry: LedgerEntry) -> float:
    r"""The third quartile of the times of the epochs, divided by the first."""
    times = [seconds for seconds in entry.curve["seconds"] if seconds]
    if len(times) < 2:
        return 1.0
    first, _, third = statistics.quantiles(times, n=4, method="inclusive")
    return third / first


def _row(line: TableLine, metric: Metric, compared: bool, memory: bool) -> dict[str, Any]:
    paired = line.paired
    cells = [
        cell(line.parameters, f"{line.parameters:,}"),
        plus_minus(line.mean, line.sd, metric),
    ]
    if compared:
        note = f"to {paired.host}, {paired.note}" if paired else ""
        cells += difference_cells(paired, metric, note)
    cells.append(cell(line.seconds_per_epoch, f"{line.seconds_per_epoch:.2f}"))
    if memory:
        peak = peak_memory(line.entries)
        cells.append(cell(peak, mebibytes(peak)))
    cells.append(cell(line.epochs, f"{line.epochs:.4g}"))
    runs = [{"href": run_link(entry), "seed": str(entry.seed)} for entry in line.entries]
    name, _, own = line.label.partition(" ")
    return {
        "label": line.label,
        "name": name,
        "own": [own.strip("()")] if own else [],
        "ours": False,
        "cells": cells,
        "runs": runs,
    }


def _notes(entries: Sequence[LedgerEntry], lines: Sequence[TableLine]) -> list[str]:
    notes = ["A click on a seed opens its run."]
    if any(len(line.entries) == 1 for line in lines):
        notes.append("One seed has no standard deviation and no interval.")
    fraction = min(float(entry.config["data"].get("fraction") or 1) for entry in entries)
    if fraction < 1:
        notes.append(f"Only {100 * fraction:.3g} % of each split was used.")
    if len({entry.result.get("fingerprint") for entry in entries} - {None}) > 1:
        notes.append("Not all runs used the same data files: their fingerprints differ.")
    late = [
        line.label
        for line in lines
        if any(e.result["best_epoch"] == e.result["epochs"] for e in line.entries)
    ]
    if late:
        notes.append(
            f"The last epoch was the best validation epoch of a run of {joined(late)}: longer "
            "training may help."
        )
    return [" ".join([*notes, same_machine(entries)]).strip()]


def _curves(
    lines: Sequence[TableLine], hosts: Mapping[str, TableLine], metric: Metric, number: int
) -> list[dict[str, Any]]:
    r"""All networks in one figure; if they are too many, each with its host."""
    shown = [list(lines)]
    if len(lines) > MOST:
        used = {host.label for host in hosts.values()}
        shown = [
            [hosts[line.label], line] if line.label in hosts else [line]
            for line in lines
            if line.label in hosts or line.label not in used
        ]
    pairs = []
    for place, own in enumerate(shown):
        groups = {line.label: line.entries for line in own}
        name = f"curves-{number}-{place}"
        pairs.append(
            {"name": name, "title": joined(list(groups)), "chosen": not place}
            | {"figures": compared_figures(groups, metric, name, _CURVES)}
        )
    return pairs


def _joined_facts(entries: Sequence[LedgerEntry]) -> list[list[str]]:
    r"""The machines and versions of all runs: each different value once."""
    every = [facts_of(entry) for entry in entries]
    names = dict.fromkeys(name for facts in every for name in facts)
    return [
        [name, "; ".join(dict.fromkeys(facts.get(name, NONE) for facts in every))]
        for name in names
        if name not in ("parameters", "seconds")
    ]
