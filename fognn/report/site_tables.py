r"""What a table's page shows, part by part: one for each dataset."""

from collections.abc import Sequence
from typing import Any

from fognn.paper.table_line import TableLine
from fognn.paper.tables import TABLES
from fognn.report.metric import Metric
from fognn.report.site_costs import time_figure
from fognn.report.site_curves import loss_figures
from fognn.report.site_effect import effect_figure
from fognn.report.site_figure import Figure
from fognn.report.site_measurements import Measurements, host_of, metric_of, name_of, run_link
from fognn.report.site_numbers import Cell, cell, interval, plus_minus, signed
from fognn.report.site_plots import results_figure
from fognn.report.site_widths import widths_figure
from fognn.report.words import joined, many

__all__ = ["table_context"]

# The pair of the paper's figure 1, whose curves are shown first where there are any.
_FIGURE_1 = "GatedGCN-E+FOG"


def table_context(table: str, measurements: Measurements) -> dict[str, Any]:
    r"""What the template of a table's page needs.

    Args:
        table (str): One of :obj:`~fognn.paper.tables.TABLES`.
        measurements (Measurements): What was measured.
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
    return {
        "title": f"Table {TABLES[table].number}: {TABLES[table].title}",
        "summary": _summary(lines),
        "how": _how(lines),
        "datasets": parts,
        "figures": figures,
        "sortable": True,
    }


def _part(lines: list[TableLine], number: int, measurements: Measurements) -> dict[str, Any]:
    metric, dataset = metric_of(lines[0]), lines[0].paper.dataset
    held_out = any(line.held_out is not None for line in lines)
    header = ["network", "parameters", f"measured {metric.axis}", "seeds", "paper", "difference"]
    header += ["at the last epoch"] if held_out else []
    header += ["FOG\u00a0−\u00a0host", "95 % interval"] if _has_hosts(lines) else []
    header += ["s an epoch", "epochs"]
    plots: list[Figure | None] = [results_figure(lines, metric, f"results-{number}")]
    if lines[0].table == "widths":
        hosts = measurements.tables["zinc"]
        plots.append(widths_figure(lines, hosts, metric, f"widths-{number}"))
    plots += [
        effect_figure(lines, metric, f"effect-{number}"),
        time_figure(lines, metric, f"time-{number}"),
    ]
    return {
        "group": f"curves-{number}",
        "caption": f"{dataset}: measured and printed",
        "header": header,
        "rows": [_row(line, metric, held_out, _has_hosts(lines)) for line in lines],
        "notes": _notes(lines, metric),
        "figures": [plot for plot in plots if plot is not None],
        "curves": _curves(lines, metric, number),
    }


def _row(line: TableLine, metric: Metric, held_out: bool, hosts: bool) -> dict[str, Any]:
    paired = line.paired
    off = f"more than {' and '.join(line.off)}" if line.off else ""
    cells: list[Cell] = [
        cell(line.parameters or line.paper.params, f"{line.parameters or line.paper.params:,}"),
        plus_minus(line.mean, line.sd, metric),
        plus_minus(line.paper_mean, line.paper_sd, metric),
        cell(line.difference, signed(line.difference or 0.0, metric), off),
    ]
    if held_out:
        cells.append(plus_minus(line.held_out, line.held_out_sd, metric))
    if hosts:
        ends = paired.interval if paired else None
        difference = paired.difference if paired else None
        note = paired.note if paired else ""
        cells += [
            cell(difference, signed(difference or 0.0, metric), note),
            cell(ends[0] if ends else None, interval(ends, metric)),
        ]
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
    better = "More" if metric.higher_is_better else "Less"
    notes = [f"{better} {metric.label} is better. A seed is a run, which opens on a click."]
    if any(line.folds for line in lines):
        notes.append(
            "Measured as in the paper: at the best epoch of the mean curve over the held-out "
            "folds, which is optimistic, because the same graphs chose the epoch; ± is over folds. "
            "Beside it, the same at the last epoch, which nothing chose. Pairs of folds share "
            "their training graphs: their interval is too narrow."
        )
    if any(len(line.entries) == 1 for line in lines):
        notes.append(
            "One seed has no interval: whatever it shows was seen once, and another seed may turn "
            "it around."
        )
    if any(line.off for line in lines):
        notes.append(
            "A difference of more than 3 of the printed s.d., or of more than 5 % of the printed "
            "mean, is said beside it."
        )
    if any(line.ours for line in lines):
        notes.append(
            "Rows marked as ours are not in the paper: another reading of a network, or a run "
            "that does not follow the paper's settings."
        )
    return notes


def _curves(lines: Sequence[TableLine], metric: Metric, number: int) -> list[dict[str, Any]]:
    r"""Each network with FOG beside its host, or by itself where the host was not measured."""
    shown = []
    for line in lines:
        host = host_of(line, list(lines))
        if line.entries and (host or not any(host_of(o, list(lines)) is line for o in lines)):
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
                "figures": loss_figures({line.label: line.entries for line in own}, metric, name),
            }
        )
    return pairs


def _summary(lines: Sequence[TableLine]) -> str:
    rows = [line for line in lines if not line.ours]
    measured = [line for line in rows if line.entries]
    runs = sum(len(line.entries) for line in lines)
    if not runs:
        return "Not measured yet: what stands here is what the paper prints."
    sentences = [
        f"{len(measured)} of {many(len(rows), 'row')} of the paper measured, {many(runs, 'run')}."
    ]
    paired = [line for line in rows if line.paired is not None]
    if paired:
        ahead = [line for line in paired if _ahead(line, sure=False)]
        sure = [line for line in paired if _ahead(line, sure=True)]
        sentences.append(
            f"With FOG, {len(ahead)} of {many(len(paired), 'host')} came out better; "
            f"{len(sure) or 'none'} of them so clearly that a 95 % interval over seeds excludes 0."
        )
    return " ".join(sentences)


def _ahead(line: TableLine, sure: bool) -> bool:
    metric, paired = metric_of(line), line.paired
    if paired is None:
        return False
    if not sure:
        return metric.advantage(paired.difference, 0.0) > 0
    ends = paired.interval if paired.over == "seed" else None
    return ends is not None and min(metric.advantage(end, 0.0) for end in ends) > 0


def _how(lines: Sequence[TableLine]) -> str:
    if all(line.folds for line in lines if line.entries) and any(line.folds for line in lines):
        return "Shown is the validation figure that the paper prints; see below the table."
    return (
        "Shown is the figure of the test split at the last epoch, the mean of the batches' "
        "figures, as the paper's benchmark does; the other ways to count are on each run's page. "
        "± is the standard deviation over seeds."
        + (" FOG − host: the difference between runs of the same seed." * _has_hosts(lines))
    )


def _has_hosts(lines: Sequence[TableLine]) -> bool:
    r"""Whether there are networks without FOG to compare with."""
    return any(not line.paper.model.endswith("FOG") for line in lines)
