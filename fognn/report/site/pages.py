# ruff: noqa: E501
r"""The content of the front page and of the page of each table, for their templates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fognn.experiments.pairing import Paired
from fognn.experiments.table_line import TableLine
from fognn.experiments.tables import TABLES
from fognn.report.claims import RULE, VERDICTS, Comparison, Judgement, judge_all, verdict_of
from fognn.report.measurements import Measurements, host_of, name_of, run_link
from fognn.report.metric import Metric, metric_of
from fognn.report.site.curves import compared_figures
from fognn.report.site.figures import Figure
from fognn.report.site.plots import effect_figure, results_figure, time_figure, widths_figure
from fognn.report.tables.notes import commits_of, published_notes, rates_notes
from fognn.report.text import NONE, capital, joined, pluralize

__all__ = [
    "DIFFERENCE",
    "Cell",
    "cell",
    "difference_cells",
    "overview_context",
    "plus_minus",
    "table_context",
]

DIFFERENCE = "FOG\u00a0−\u00a0host"  # one line of a narrow column
# The pair of the paper's figure 1, whose curves are shown first where there are any.
_FIGURE_1 = "GatedGCN-E+FOG"
_COUNTS = {
    "holds": ("holds here", "hold here"),
    "fails": ("does not", "do not"),
    "unclear": ("is not clear", "are not clear"),
    "partly": ("holds where measured", "hold where measured"),
    "seen": ("was seen but is not sure", "were seen but are not sure"),
    "against": ("was seen the other way", "were seen the other way"),
    "missing": ("is not measured yet", "are not measured yet"),
}
_HEADER = ["better, says the paper", "than", "advantage here", "95 % interval", "pairs"]
_HEADER += ["in the paper", "learning rates"]


@dataclass(frozen=True)
class Cell:
    r"""A cell of a table.

    Args:
        text (str): The text.
        order (str): The value that the column is sorted by; an empty one is sorted to the end.
        note (str, optional): A small note below the text. (default: none)
    """

    text: str
    order: str
    note: str = ""


def cell(number: float | None, text: str, note: str = "") -> Cell:
    r"""A cell of a number, or a dash for :obj:`None`."""
    return Cell(NONE, "") if number is None else Cell(text, repr(number), note)


def plus_minus(mean: float | None, sd: float | None, metric: Metric) -> Cell:
    r"""A cell of a mean with its standard deviation, if it has one."""
    if mean is None:
        return cell(None, "")
    text = metric.number(mean)
    return cell(mean, text if sd is None else f"{text} ± {metric.number(sd)}")


def difference_cells(paired: Paired | None, metric: Metric, note: str) -> list[Cell]:
    r"""The cells of a paired difference and of its interval, empty without a pair."""
    ends = paired.interval if paired else None
    difference = paired.difference if paired else None
    return [
        cell(difference, metric.signed(difference or 0.0), note),
        cell(ends[0] if ends else None, metric.interval(ends)),
    ]


def overview_context(measurements: Measurements) -> dict[str, Any]:
    r"""The front page: the claims with their verdicts, and the tables."""
    judged = judge_all(measurements)
    return {
        "title": "Second-order message passing, measured again",
        "summary": _verdicts(judged),
        "how": RULE,
        "made": _made(measurements),
        "claims": [_claim(j) for j in judged if j.verdict != "missing"],
        "waiting": [_claim(j) for j in judged if j.verdict == "missing"],
        "tables": [_table(name, measurements) for name in TABLES if TABLES[name].number],
        "own_tables": [_table(name, measurements) for name in TABLES if not TABLES[name].number],
        "others": len(measurements.runs),
        "comparisons": [],
        "figures": [],
        "sortable": True,
    }


def _verdicts(judged: Sequence[Judgement]) -> str:
    counts = {
        verdict: sum(judgement.verdict == verdict for judgement in judged) for verdict in _COUNTS
    }
    parts = [f"{count} {_COUNTS[verdict][count > 1]}" for verdict, count in counts.items() if count]
    return f"Of {pluralize(len(judged), 'claim')} of the paper, {joined(parts)}."


def _claim(judgement: Judgement) -> dict[str, Any]:
    return {
        "text": judgement.claim.text,
        "quote": judgement.claim.quote,
        "table": judgement.claim.table,
        "kind": judgement.verdict,
        "verdict": capital(judgement.text) + ".",
        "sure": judgement.sure,
        "header": _HEADER,
        "rows": [_comparison(comparison) for comparison in judgement.comparisons],
    }


def _comparison(comparison: Comparison) -> list[str]:
    metric, paired, advantage = comparison.metric, comparison.paired, comparison.advantage
    return [
        comparison.better.label,
        comparison.than.label,
        NONE if advantage is None else metric.signed(advantage),
        metric.interval(comparison.interval) or NONE,
        VERDICTS["missing"] if paired is None else paired.note,
        metric.signed(comparison.printed),
        NONE if paired is None else f"{comparison.better.lr:g}, {comparison.than.lr:g}",
    ]


def _table(name: str, measurements: Measurements) -> dict[str, Any]:
    lines = measurements.tables[name]
    seeds = [len(line.entries) for line in lines if not line.ours]
    return {
        "name": name,
        "title": capital(TABLES[name].title),
        "number": TABLES[name].number,
        "measured": sum(map(bool, seeds)),
        "rows": len(seeds),
        "runs": sum(len(line.entries) for line in lines),
        "most": max(seeds),
        "fewest": min(seeds),
    }


def _made(measurements: Measurements) -> str:
    r"""The number of runs of the paper's tables, their days and their commits, in a sentence."""
    entries = [entry for entry in measurements.entries() if TABLES[entry.table].number]
    if not entries:
        return ""
    days = sorted({entry.finished[:10] for entry in entries})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    hours = sum(entry.result["seconds"] for entry in entries) / 3600
    devices = joined(sorted({str(entry.result["device"]).upper() for entry in entries}))
    return (
        f"It rests on {pluralize(len(entries), 'finished run')} ({span}; {hours:,.1f} hours of training "
        f"on {devices}, from commit {joined(commits_of(entry.result for entry in entries))})."
    )


def table_context(table: str, measurements: Measurements) -> dict[str, Any]:
    r"""The page of a table, with a part for each dataset.

    Args:
        table (str): One of :obj:`~fognn.experiments.tables.TABLES`.
        measurements (Measurements): The measurements.
    """
    lines = measurements.tables[table]
    datasets = list(dict.fromkeys(line.paper.dataset for line in lines))
    parts = [
        _part([line for line in lines if line.paper.dataset == dataset], number, measurements)
        for number, dataset in enumerate(datasets)
    ]
    for part, dataset in zip(parts, datasets, strict=True):
        part["title"] = dataset if len(datasets) > 1 else ""
    figures = [figure for part in parts for figure in part["figures"]]
    figures += [f for part in parts for pair in part["curves"] for f in pair["figures"]]
    number, title = TABLES[table].number, TABLES[table].title
    return {
        "title": f"Table {number}: {title}" if number else f"{capital(title)}: not in the paper",
        "summary": _summary(lines),
        "how": _how(lines),
        "datasets": parts,
        "figures": figures,
        "sortable": True,
    }


def _part(lines: list[TableLine], number: int, measurements: Measurements) -> dict[str, Any]:
    metric, dataset = metric_of(lines[0]), lines[0].paper.dataset
    held_out = any(line.held_out is not None for line in lines)
    printed = _printed(lines)
    header = ["network", "parameters", f"measured {metric.axis}", "seeds"]
    header += ["paper", "difference"] if printed else []
    header += ["at the last epoch"] if held_out else []
    header += [_difference(lines), "95 % interval"] if _has_hosts(lines) else []
    header += ["s an epoch", "epochs"]
    plots: list[Figure | None] = [results_figure(lines, metric, f"results-{number}")]
    if lines[0].table == "widths":
        hosts = measurements.tables["zinc"]
        plots.append(widths_figure(lines, hosts, metric, f"widths-{number}"))
    plots.append(effect_figure(lines, metric, f"effect-{number}"))
    if not lines[0].paper.control:  # too many networks for each host, of nearly equal times
        plots.append(time_figure(lines, metric, f"time-{number}"))
    return {
        "group": f"curves-{number}",
        "caption": f"{dataset}: measured{' and printed' * printed}",
        "header": header,
        "rows": [_row(line, metric, held_out, _has_hosts(lines)) for line in lines],
        "notes": _notes(lines, metric),
        "figures": [plot for plot in plots if plot is not None],
        "curves": _curves(lines, metric, number),
    }


def _row(line: TableLine, metric: Metric, held_out: bool, hosts: bool) -> dict[str, Any]:
    paired, parameters = line.paired, line.parameters or line.paper.params
    off = f"more than {' and '.join(line.off)}" if line.off else ""
    cells: list[Cell] = [
        cell(parameters, f"{parameters or 0:,}"),
        plus_minus(line.mean, line.plus_minus, metric),
    ]
    if line.paper.mean is not None:
        cells += [
            plus_minus(line.paper_mean, line.paper_sd, metric),
            cell(line.difference, metric.signed(line.difference or 0.0), off),
        ]
    if held_out:
        cells.append(plus_minus(line.held_out, line.held_out_sd, metric))
    if hosts:
        cells += difference_cells(paired, metric, paired.note if paired else "")
    cells += [
        cell(line.seconds_per_epoch, f"{line.seconds_per_epoch or 0.0:.2f}"),
        cell(line.epochs, f"{line.epochs or 0.0:.4g}"),
    ]
    runs = [{"href": run_link(entry), "seed": str(entry.seed)} for entry in line.entries]
    return {
        "label": line.label,
        "name": name_of(line),
        "own": [line.variant, *line.changed] if line.variant else line.changed,
        "ours": line.ours,
        "cells": cells,
        "runs": runs,
    }


def _notes(lines: Sequence[TableLine], metric: Metric) -> list[str]:
    notes = [f"{capital(metric.label)}: {metric.direction}. A click on a seed opens its run."]
    if any(line.folds for line in lines):
        notes.append(
            "Measured as in the paper: at the best epoch of the mean curve over the held-out "
            "folds, which is optimistic, because the same graphs chose the epoch; ± is over folds. "
            "Beside it, the same at the last epoch, which nothing chose. Pairs of folds share "
            "their training graphs: their interval is too narrow."
        )
    if any(line.interval is not None for line in lines):
        notes.append(
            "The interval of one seed is over its episodes and says nothing about other seeds, "
            "which may show the opposite."
        )
    elif any(len(line.entries) == 1 for line in lines):
        notes.append(
            "One seed has no interval: its result was seen once, and another seed may show the "
            "opposite."
        )
    if any(line.off for line in lines):
        notes.append(
            "A difference of more than 3 of the printed s.d., or of more than 5 % of the printed "
            "mean, is said beside it."
        )
    notes += rates_notes(lines)
    notes += published_notes(lines)
    if any(line.ours for line in lines) and _printed(lines):
        notes.append(
            "Rows marked as ours are not in the paper: another reading of a network, or a run "
            "that does not follow the paper's settings."
        )
    return notes


def _curves(lines: Sequence[TableLine], metric: Metric, number: int) -> list[dict[str, Any]]:
    r"""Each network with FOG beside its host, or by itself where the host was not measured."""
    shown = []
    for line in lines:
        host = host_of(line, lines)
        if line.entries and (host or not any(host_of(o, lines) is line for o in lines)):
            shown.append([line] if host is None else [host, line])
    first = next((n for n, own in enumerate(shown) if own[-1].paper.model == _FIGURE_1), None)
    if first is None:
        first = next((n for n, own in enumerate(shown) if len(own) > 1), 0)
    pairs = []
    for place, own in enumerate(shown):
        name = f"curves-{number}-{place}"
        title = joined([line.label for line in own])
        figure_1 = own[-1].table == "zinc" and own[-1].label == _FIGURE_1 and len(own) > 1
        pairs.append(
            {
                "name": name,
                "title": f"{title} (the paper's figure 1)" if figure_1 else title,
                "chosen": place == first,
                "figures": compared_figures(
                    {line.label: line.entries for line in own}, metric, name
                ),
            }
        )
    return pairs


def _summary(lines: Sequence[TableLine]) -> str:
    rows = [line for line in lines if not line.ours]
    measured = [line for line in rows if line.entries]
    runs = sum(len(line.entries) for line in lines)
    if not runs:
        return "Not measured yet" + ": the figures are those of the paper" * _printed(lines) + "."
    whose = " of the paper" * _printed(lines)
    sentences = [
        f"{len(measured)} of {pluralize(len(rows), 'row')}{whose} measured, {pluralize(runs, 'run')}."
    ]
    paired = [line for line in rows if line.paired is not None]
    if paired:
        ahead = sum(_advantage(line) > 0 for line in paired)
        behind = sum(_advantage(line) < 0 for line in paired) or "none"
        if rows[0].paper.control:
            count = f"{ahead} of {pluralize(len(paired), 'control')}"
            sentences.append(
                f"FOG had a better result than {count}, and a worse one than {behind}."
            )
        else:
            count = f"{ahead} of {pluralize(len(paired), 'host')}"
            sentences.append(f"{count} had a better result with FOG, and {behind} a worse one.")
        verdicts = [verdict_of(line.paired, metric_of(line)) for line in paired]
        better, worse = (verdicts.count(verdict) or "none" for verdict in ("holds", "fails"))
        sentences.append(
            f"A 95 % interval over three seeds or more excludes 0 for {better} of the better "
            f"results and for {worse} of the worse ones."
        )
    return " ".join(sentences)


def _advantage(line: TableLine) -> float:
    return metric_of(line).advantage(line.paired.difference if line.paired else 0.0, 0.0)


def _how(lines: Sequence[TableLine]) -> str:
    if all(line.folds for line in lines if line.entries) and any(line.folds for line in lines):
        return "Shown is the validation figure that the paper prints; see below the table."
    table, spread = TABLES[lines[0].table], ""
    shown = "the test split"
    if any(line.paper.few_shot for line in lines):
        shown = "episodes of the test classes"
        spread = (
            "; with one seed, the 95 % interval over the test episodes, which is the paper's form"
        )
    if table.at == "best":
        metric = metric_of(lines[0]).label
        shown += f" at the epoch with the best validation {metric}"
    else:
        shown += " at the last epoch"
    if table.over == "items":
        shown += ", over all items"
    else:
        shown += ", the mean over the batches, as in the paper's benchmark"
    return (
        f"Shown is the metric on {shown}; the page of each run has the other averages and epochs."
        f" ± is the standard deviation over seeds{spread}."
        + f" {_difference(lines)}: the difference between runs of the same seed."
        * _has_hosts(lines)
    )


def _difference(lines: Sequence[TableLine]) -> str:
    r"""The name of the paired difference, in one line of a narrow column."""
    return TABLES[lines[0].table].difference.replace(" - ", "\u00a0−\u00a0")


def _printed(lines: Sequence[TableLine]) -> bool:
    r"""Whether the paper has the table."""
    return any(line.paper.mean is not None for line in lines)


def _has_hosts(lines: Sequence[TableLine]) -> bool:
    r"""Whether there are networks without FOG to compare with."""
    return any(not line.paper.model.endswith("FOG") for line in lines)
