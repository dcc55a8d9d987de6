r"""Plots over the epochs: networks side by side, or one run."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fognn.experiments.ledger import LedgerEntry
from fognn.report.metric import Metric
from fognn.report.site.figures import Figure, axis, figure, graph_objects, log_scale
from fognn.report.text import joined

__all__ = ["MOST", "compared_figures", "run_figures"]

_HEIGHT = 380
# Networks differ in colour and in dashes: either is enough to tell them apart.
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_LINES = [(f"var(--line-{number})", dash) for number, dash in enumerate(_DASHES)]
MOST = len(_LINES)  # networks in one figure
_COLUMNS = {
    "train_loss": ("Training loss", "the mean over an epoch, while the network learns"),
    "val_loss": ("Validation loss", "at the end of each epoch"),
    "val": ("Validation", "over all items, at the end of each epoch"),
}


def compared_figures(
    groups: Mapping[str, Sequence[LedgerEntry]],
    metric: Metric,
    name: str,
    columns: Sequence[str] = ("train_loss", "val_loss"),
) -> list[Figure]:
    r"""Curves of networks over the epochs.

    Each seed is a thin line. The mean of several seeds is a thick line, up to the last epoch that
    all of them have.

    Args:
        groups (mapping): The runs of each network, by its label; at most :obj:`MOST`.
        metric (Metric): Their metric.
        name (str): The beginning of the figures' identifiers.
        columns (sequence of str, optional): One figure each: :obj:`"train_loss"`,
            :obj:`"val_loss"`, or :obj:`"val"`, the metric. (default: the two losses)
    """
    if len(groups) > MOST:
        raise ValueError(f"groups must be at most {MOST}, got {len(groups)}")
    seeds = max(len(entries) for entries in groups.values())
    thin = " Thin: one seed each; thick: their mean, up to the last epoch of all." * (seeds > 1)
    figures = []
    for column in columns:
        what, when = _COLUMNS[column]
        what = what if "loss" in column else f"{what} {metric.label}"
        unit = f"{what.split()[0].lower()} {metric.loss if 'loss' in column else metric.axis}"
        curves = {label: [e.curve[column] for e in entries] for label, entries in groups.items()}
        traces = [
            trace
            for (label, entries), line in zip(groups.items(), _LINES, strict=False)
            for trace in _lines(label, entries, column, line)
        ]
        values = [value for own in curves.values() for curve in own for value in curve]
        figures.append(
            figure(
                f"{name}-{column.replace('_', '-')}",
                f"{what} of {joined(list(groups))}: {when}.{thin}",
                traces,
                _HEIGHT,
                xaxis=axis("epoch"),
                yaxis=_loss_axis(unit, values) if "loss" in column else axis(unit),
            )
        )
    return figures


def run_figures(entry: LedgerEntry, metric: Metric) -> list[Figure]:
    r"""The curves of one run: its loss, its metric, its learning rate."""
    go, curve = graph_objects(), entry.curve
    best = int(entry.result["best_epoch"])
    ring = go.Scatter(
        x=[best],
        y=[curve["val"][best - 1]],
        name="best validation epoch",
        mode="markers",
        marker={"symbol": "circle-open", "size": 13, "color": _LINES[0][0], "line": {"width": 2}},
        hovertemplate="best epoch %{x}<br>validation %{y:.5g}<extra></extra>",
    )

    def traces(*columns: str) -> list[Any]:
        return [
            go.Scatter(
                x=curve["epoch"],
                y=curve[column],
                name=split,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2},
                hovertemplate=f"epoch %{{x}}<br>{split} %{{y:.5g}}<extra></extra>",
            )
            for column, split, (colour, dash) in zip(
                columns, ("training", "validation"), (_LINES[1], _LINES[0]), strict=True
            )
        ]

    rate = go.Scatter(
        x=curve["epoch"],
        y=curve["lr"],
        mode="lines",
        line={"color": "var(--line-2)", "shape": "hv", "width": 2},
        hovertemplate="epoch %{x}<br>learning rate %{y:.3g}<extra></extra>",
    )
    losses = [value for column in ("train_loss", "val_loss") for value in curve[column]]
    epochs = axis("epoch")
    return [
        figure(
            *("run-loss", "Loss of each epoch.", traces("train_loss", "val_loss"), _HEIGHT),
            xaxis=epochs,
            yaxis=_loss_axis(metric.loss, losses),
        ),
        figure(
            "run-metric",
            f"The metric over all items, of each epoch. The ring marks the best epoch, {best}.",
            [*traces("train", "val"), ring],
            _HEIGHT,
            xaxis=epochs,
            yaxis=axis(metric.axis),
        ),
        figure(
            *("run-rate", "The learning rate of each epoch.", [rate], _HEIGHT),
            xaxis=epochs,
            yaxis=axis("learning rate", type="log", exponentformat="power", dtick=1),
        ),
    ]


def _lines(
    label: str, entries: Sequence[LedgerEntry], column: str, line: tuple[str, str]
) -> list[Any]:
    go, (colour, dash) = graph_objects(), line
    many = len(entries) > 1
    traces = [
        go.Scatter(
            x=entry.curve["epoch"],
            y=entry.curve[column],
            name=label,
            legendgroup=label,
            showlegend=not many,
            mode="lines",
            opacity=0.35 if many else 1.0,
            line={"color": colour, "dash": dash, "width": 1 if many else 2},
            hovertemplate=f"{label}, seed {entry.seed}<br>epoch %{{x}}: %{{y:.5g}}<extra></extra>",
        )
        for entry in entries
    ]
    if many:
        means = [_mean(at) for at in zip(*(e.curve[column] for e in entries), strict=False)]
        traces.append(
            go.Scatter(
                x=list(range(1, len(means) + 1)),
                y=means,
                name=label,
                legendgroup=label,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2.5},
                hovertemplate=f"{label}, mean of {len(entries)} seeds<br>"
                "epoch %{x}: %{y:.5g}<extra></extra>",
            )
        )
    return traces


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _loss_axis(label: str, values: Sequence[float | None]) -> dict[str, Any]:
    if not log_scale(values):
        return axis(label)
    finite = [value for value in values if value is not None]
    decades = math.log10(max(finite) / min(finite))
    # A loss that overflowed for an epoch spans twenty decades: not each has room for a tick.
    ticks: dict[str, Any] = {"dtick": "D2"}
    if decades > 3:
        ticks = {"dtick": math.ceil(decades / 8), "exponentformat": "power"}
    return axis(f"{label}, log scale", type="log", **ticks)
