r"""What a better number costs: the result against the number of parameters."""

from collections.abc import Sequence
from typing import Any

from fognn.paper.pairing import t_interval
from fognn.paper.table_line import TableLine
from fognn.report.metric import Metric
from fognn.report.site_figure import INTERVAL, Figure, axis, figure, graph_objects, window
from fognn.report.site_marks import error_bars, hover
from fognn.report.site_measurements import run_link

__all__ = ["widths_figure"]

_HEIGHT = 520
_SHAPES = ("circle", "square")  # of GCN+FOG and GatedGCN-E+FOG


def widths_figure(
    lines: Sequence[TableLine], baselines: Sequence[TableLine], metric: Metric, name: str
) -> Figure | None:
    r"""The error of networks of several widths against their parameters.

    Args:
        lines (sequence of TableLine): The rows of the table of widths.
        baselines (sequence of TableLine): Their hosts at full width, of another table.
        metric (Metric): Their metric.
        name (str): A word that no other figure on the page has.
    """
    shown = [line for line in lines if line.entries and not line.ours]
    if not shown:
        return None
    hosts = {line.paper.model.removesuffix("+FOG") for line in lines}
    shown_hosts = [
        base
        for base in baselines
        if base.paper.model in hosts and not base.ours and base.mean is not None
    ]
    go, traces = graph_objects(), []
    for number, model in enumerate(dict.fromkeys(line.paper.model for line in lines)):
        colour, shape = f"var(--line-{number})", _SHAPES[number]
        printed = [line for line in lines if line.paper.model == model and not line.ours]
        own = [line for line in shown if line.paper.model == model]
        traces.append(
            go.Scatter(
                x=[line.paper.params for line in printed],
                y=[line.paper.mean for line in printed],
                error_y=error_bars([line.paper.sd for line in printed], colour),
                name=f"{model}, the paper, mean ± s.d.",
                mode="lines+markers",
                opacity=0.6,
                line={"color": colour, "dash": "dot", "width": 1.5},
                marker={"symbol": f"{shape}-open", "size": 9},
                text=[line.label for line in printed],
                hovertemplate=hover("paper %{y:.4f}, %{x:,} parameters"),
            )
        )
        if own:
            traces += _measured(own, model, colour, shape)
        host = model.removesuffix("+FOG")
        for base in (base for base in shown_hosts if base.paper.model == host):
            text = f"{host}, measured, {base.paper.params:,} parameters"
            traces.append(
                go.Scatter(
                    x=[min(line.paper.params for line in lines), base.paper.params],
                    y=[base.mean, base.mean],
                    name=f"{host} without FOG",
                    mode="lines",
                    line={"color": colour, "dash": "dash", "width": 2},
                    text=[text, text],
                    hovertemplate=hover("%{y:.4f}"),
                )
            )
    better = "more" if metric.higher_is_better else "less"
    spans = [value for line in lines for value in line.values]
    spans += [line.paper.mean + side * line.paper.sd for line in lines for side in (-1, 1)]
    spans += [base.mean for base in shown_hosts if base.mean is not None]
    return figure(
        name,
        f"{metric.axis} against the number of parameters, {better} is better. Full: our runs, one "
        "a dot; open and dotted: the paper; dashed: the host without FOG at its full width. Bars "
        f"of our means: the {INTERVAL}.",
        traces,
        _HEIGHT,
        wide=True,
        xaxis=axis("parameters", rangemode="tozero", tickformat=",d"),
        yaxis=axis(
            f"test {metric.axis} ({better} is better)",
            range=window(spans, [t_interval(list(line.values)) for line in lines]),
        ),
    )


def _measured(lines: Sequence[TableLine], model: str, colour: str, shape: str) -> list[Any]:
    go = graph_objects()
    points = [
        (line, entry, value)
        for line in lines
        for entry, value in zip(line.entries, line.values, strict=True)
    ]
    halves = []
    for line in lines:
        interval = t_interval(list(line.values))
        halves.append(None if interval is None else (interval[1] - interval[0]) / 2)
    several = any(half is not None for half in halves)
    return [
        go.Scatter(
            x=[line.parameters for line in lines],
            y=[line.mean for line in lines],
            error_y=error_bars(halves, colour),
            name=f"{model}, mean{', 95 % interval' if several else ''}",
            mode="lines",
            line={"color": colour, "width": 2.5},
            text=[line.label for line in lines],
            hovertemplate=hover("mean %{y:.4f}, %{x:,} parameters"),
        ),
        go.Scatter(
            x=[line.parameters for line, _, _ in points],
            y=[value for _, _, value in points],
            name=f"{model}, one seed",
            mode="markers",
            marker={"symbol": shape, "size": 9, "color": colour, "opacity": 0.75},
            text=[f"{line.label}, seed {entry.seed}" for line, entry, _ in points],
            customdata=[run_link(entry) for _, entry, _ in points],
            hovertemplate=hover("%{y:.4f}, %{x:,} parameters"),
        ),
    ]
