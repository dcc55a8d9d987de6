r"""Curves over the epochs, for the site: networks side by side, or one run."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from fognn.paper.ledger import LedgerEntry
from fognn.report.metric import Metric
from fognn.report.site_figure import Figure, axis, figure, graph_objects, log_scale

__all__ = ["loss_figures", "run_figures"]

_HEIGHT = 380
# Dashes and colours tell networks apart, whichever of the two a reader sees.
_LINES = (("var(--line-0)", "solid"), ("var(--line-1)", "dash"), ("var(--line-2)", "dot"))


def loss_figures(
    groups: dict[str, Sequence[LedgerEntry]], metric: Metric, name: str
) -> list[Figure]:
    r"""The training loss and the validation loss of networks, epoch by epoch.

    Each seed is a thin line; where there are more, their mean is a thick one, as far as all go.

    Args:
        groups (dict): The runs of each network, by its label; up to three.
        metric (Metric): The metric that goes with the loss.
        name (str): A word that no other figures on the page have.
    """
    title = " and ".join(groups)
    seeds = max(len(entries) for entries in groups.values())
    thin = " Thin: one seed each; thick: their mean, as far as all go." if seeds > 1 else ""
    figures = []
    for column, split, when in (
        ("train_loss", "Training", "the mean over an epoch, while the network learns"),
        ("val_loss", "Validation", "at the end of each epoch"),
    ):
        curves = {
            label: [(entry, entry.curve[column]) for entry in entries]
            for label, entries in groups.items()
        }
        traces = [
            trace
            for (label, own), line in zip(curves.items(), _LINES, strict=False)
            for trace in _lines(label, own, line)
        ]
        values = [value for own in curves.values() for _, curve in own for value in curve]
        figures.append(
            figure(
                f"{name}-{split.lower()}",
                f"{split} loss of {title}: {when}.{thin}",
                traces,
                _HEIGHT,
                xaxis=axis("epoch"),
                yaxis=_loss_axis(f"{split.lower()} {metric.loss}", values),
            )
        )
    return figures


def run_figures(entry: LedgerEntry, metric: Metric) -> list[Figure]:
    r"""The curves of one run: its loss, its metric, its learning rate."""
    go, curve = graph_objects(), entry.curve
    best = int(entry.result["best_epoch"])
    figures = []
    for name, columns, label, caption in (
        ("loss", ("train_loss", "val_loss"), metric.loss, "Loss, epoch by epoch."),
        (
            "metric",
            ("train", "val"),
            metric.axis,
            f"The metric over all items, epoch by epoch. A ring: the best epoch, {best}.",
        ),
    ):
        traces = [
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
        if name == "metric":
            traces.append(
                go.Scatter(
                    x=[best],
                    y=[curve["val"][best - 1]],
                    name="best validation epoch",
                    mode="markers",
                    marker={
                        "symbol": "circle-open",
                        "size": 13,
                        "color": _LINES[0][0],
                        "line": {"width": 2},
                    },
                    hovertemplate="best epoch %{x}<br>validation %{y:.5g}<extra></extra>",
                )
            )
        values = [value for column in columns for value in curve[column]]
        figures.append(
            figure(
                *(f"run-{name}", caption, traces, _HEIGHT),
                xaxis=axis("epoch"),
                yaxis=_loss_axis(label, values) if name == "loss" else axis(label),
            )
        )
    rate = go.Scatter(
        x=curve["epoch"],
        y=curve["lr"],
        mode="lines",
        line={"color": "var(--line-2)", "shape": "hv", "width": 2},
        hovertemplate="epoch %{x}<br>learning rate %{y:.3g}<extra></extra>",
    )
    figures.append(
        figure(
            *("run-rate", "The learning rate of each epoch.", [rate], _HEIGHT),
            xaxis=axis("epoch"),
            yaxis=axis("learning rate", type="log", exponentformat="power", dtick=1),
        )
    )
    return figures


def _lines(
    label: str, curves: Sequence[tuple[LedgerEntry, list[Any]]], line: tuple[str, str]
) -> list[Any]:
    go, (colour, dash) = graph_objects(), line
    many = len(curves) > 1
    traces = [
        go.Scatter(
            x=entry.curve["epoch"],
            y=values,
            name=label,
            legendgroup=label,
            showlegend=not many,
            mode="lines",
            opacity=0.35 if many else 1.0,
            line={"color": colour, "dash": dash, "width": 1 if many else 2},
            hovertemplate=f"{label}, seed {entry.seed}<br>epoch %{{x}}: %{{y:.5g}}<extra></extra>",
        )
        for entry, values in curves
    ]
    if many:
        shortest = min((values for _, values in curves), key=len)
        means = [_mean(column) for column in zip(*(v for _, v in curves), strict=False)]
        traces.append(
            go.Scatter(
                x=list(range(1, len(shortest) + 1)),
                y=means,
                name=label,
                legendgroup=label,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2.5},
                hovertemplate=f"{label}, mean of {len(curves)} seeds<br>"
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
