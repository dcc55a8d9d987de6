r"""The plots of a table: its rows, the effect of FOG, and the cost in time and in parameters."""

from collections.abc import Sequence
from typing import Any

from fognn.experiments.pairing import t_interval
from fognn.experiments.table_line import TableLine
from fognn.report.measurements import host_of, name_of, run_link
from fognn.report.metric import Metric
from fognn.report.site.figures import (
    ABOVE,
    BELOW,
    CLEAR,
    COLOURS,
    INTERVAL,
    Figure,
    axis,
    colour,
    error_bars,
    figure,
    graph_objects,
    hover,
    mean_bars,
    paper_marks,
    rows_axis,
    rows_height,
    run_points,
    window,
)
from fognn.report.text import capital, pluralize

__all__ = ["effect_figure", "results_figure", "same_machine", "time_figure", "widths_figure"]

# A host has a colour and a shape; full with FOG, and open without.
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "hexagon")


def results_figure(lines: Sequence[TableLine], metric: Metric, name: str) -> Figure | None:
    r"""A row for each line that is printed or measured: the paper's figure, each seed, and the mean
    of several seeds with its interval; :obj:`None` if there is no such line.

    Args:
        lines (sequence of TableLine): The lines of one dataset.
        metric (Metric): Their metric.
        name (str): An identifier that no other figure on the page has.
    """
    lines = [line for line in lines if line.paper_mean is not None or line.entries]
    if not lines:
        return None
    places = {id(line): -number for number, line in enumerate(lines)}
    printed = [line for line in lines if line.paper_mean is not None]
    below = _below(lines)
    traces = []
    if printed:
        marks = paper_marks(
            [line.paper_mean for line in printed],
            [line.paper_sd for line in printed],
            [places[id(line)] + ABOVE for line in printed],
            [
                f"{line.label}<br>paper {line.paper_mean:.4g} ± {line.paper_sd:.2g}"
                for line in printed
            ],
            "the paper, mean ± s.d.",
        )
        traces.append(marks)
    for kind in COLOURS:
        runs = [
            (value, places[id(line)] + below, f"{line.label}, seed {entry.seed}", run_link(entry))
            for line in lines
            if colour(line.paper.model) == kind
            for entry, value in zip(line.entries, line.values, strict=True)
        ]
        if runs:
            traces.append(run_points(runs, kind, f"{kind}, one seed"))
    means = [(line, ends) for line in lines if (ends := t_interval(list(line.values)))]
    traces += mean_bars(
        [
            (line.mean or 0.0, ends, places[id(line)] + below, line.label)
            for line, ends in means
        ]
    )  # fmt: skip
    split = "validation" if any(line.folds for line in lines) else "test"
    several = f" A bar: the mean of the seeds with its {INTERVAL}." if means else ""
    spans = _spans(printed)
    diamond = "A diamond: the paper; a" if printed else "A"
    return figure(
        name,
        f"{capital(split)} {metric.axis}, {metric.direction}. {diamond} dot: one of "
        f"our runs, which opens on a click.{several}",
        traces,
        rows_height(len(lines)),
        wide=True,
        xaxis=axis(
            f"{split} {metric.axis} ({metric.direction})",
            range=window(
                [value for line in lines for value in line.values] + spans,
                [ends for _, ends in means],
            ),
        ),
        yaxis=rows_axis([_short(line) for line in lines]),
    )


def effect_figure(lines: Sequence[TableLine], metric: Metric, name: str) -> Figure | None:
    r"""The difference that FOG makes in each host, or to each control: for each common seed, and in
    the mean.

    Args:
        lines, metric, name: As in :func:`results_figure`.
    """
    shown = [(line, host) for line in lines if (host := host_of(line, lines)) and line.paired]
    if not shown:
        return None
    printed: list[tuple[float, float, str]] = []
    runs: list[tuple[float, float, str, str]] = []
    means: list[tuple[float, tuple[float, float], float, str]] = []
    below = _below([line for line, _ in shown])
    for number, (line, host) in enumerate(shown):
        theirs = dict(zip(host.seeds, host.values, strict=True))
        # The line of a control has the difference "reference minus control".
        sign = -1 if line.paper.reference else 1
        what = " minus ".join([line.label, host.label][::sign])
        for entry, value in zip(line.entries, line.values, strict=True):
            if entry.seed in theirs:
                gap = sign * (value - theirs[entry.seed])
                text = f"{what}, seed {entry.seed}"
                runs.append((gap, -number + below, text, run_link(entry)))
        if line.paired and line.paired.interval:
            text = f"{what}, {line.paired.note}"
            means.append((line.paired.difference, line.paired.interval, -number + below, text))
        if line.paper_mean is not None and host.paper_mean is not None:
            printed.append((line.paper_mean - host.paper_mean, -number + ABOVE, line.label))
    traces = [run_points(runs, "with FOG", "one seed"), *mean_bars(means)]
    if printed:
        marks = paper_marks(
            [value for value, _, _ in printed],
            None,
            [place for _, place, _ in printed],
            [f"{label}<br>paper {value:+.4g}" for value, _, label in printed],
            "the paper's means",
        )
        traces.insert(0, marks)
    right = metric.higher_is_better
    controls = any(line.paper.reference for line, _ in shown)
    difference = f"{metric.axis} with FOG minus " + ("its control" if controls else "without")
    helps = "is better" if controls else "helps"
    return figure(
        name,
        f"{capital(difference)}, for each seed: FOG {helps} "
        f"{'right' if right else 'left'} of the line at 0."
        + (f" A bar: the mean with its {INTERVAL}." if means else ""),
        traces,
        rows_height(len(shown)),
        wide=controls,  # no other figure is beside it
        xaxis=axis(
            difference,
            range=window(
                [0.0, *(e[0] for e in runs), *(e[0] for e in means), *(e[0] for e in printed)],
                [each[1] for each in means],
            ),
            zeroline=True,
            zerolinecolor="var(--ink)",
            zerolinewidth=1.5,
        ),
        yaxis=rows_axis([_short(line) for line, _ in shown], room=0.5),
        annotations=[
            {
                "text": f"FOG {helps} →" if right else f"← FOG {helps}",
                **{"x": 0, "xanchor": "left" if right else "right", "xshift": 6 if right else -6},
                **{"y": 1, "yref": "paper", "yanchor": "top", "showarrow": False},
                "font": {"color": "var(--soft)", "size": 13},
            }
        ],
    )


def time_figure(lines: Sequence[TableLine], metric: Metric, name: str) -> Figure | None:
    r"""The result against the time of an epoch: each run a point, a host joined with its FOG.

    Args:
        lines, metric, name: As in :func:`results_figure`.
    """
    shown = [line for line in lines if line.entries]
    if not shown:
        return None
    go, traces = graph_objects(), []
    hosts = list(dict.fromkeys(_host(line) for line in lines if _host(line) != "FOG"))
    for host in dict.fromkeys(_host(line) for line in shown):
        own = [line for line in shown if _host(line) == host]
        number = hosts.index(host) % len(_SHAPES) if host in hosts else 0
        shape = "star" if host == "FOG" else _SHAPES[number]
        ink = "var(--ink)" if host == "FOG" else f"var(--line-{number})"
        for line in own:
            other = host_of(line, own)
            if other is None:
                continue
            traces.append(
                go.Scatter(
                    x=[other.seconds_per_epoch, line.seconds_per_epoch],
                    y=[other.mean, line.mean],
                    **{"mode": "lines", "showlegend": False, "hoverinfo": "skip"},
                    legendgroup=host,
                    line={"color": ink, "width": 1.5, "dash": "dot" if line.ours else "solid"},
                )
            )
        points = _points(own)
        fills = [ink if line.paper.model.endswith("FOG") else CLEAR for line, _, _ in points]
        traces.append(
            go.Scatter(
                x=[entry.result["seconds_per_epoch"] for _, entry, _ in points],
                y=[value for _, _, value in points],
                name=host,
                legendgroup=host,
                mode="markers",
                marker={
                    **{"symbol": shape, "size": 12},
                    **{"color": fills, "line": {"color": ink, "width": 2}},
                },
                text=[f"{line.label}, seed {entry.seed}" for line, entry, _ in points],
                customdata=[run_link(entry) for _, entry, _ in points],
                hovertemplate=hover("%{y:.4f}, %{x:.2f} s an epoch"),
            )
        )
    return figure(
        name,
        f"The median time of an epoch, validation included, against the result: the best place is "
        f"at the {'top' if metric.higher_is_better else 'bottom'} left. Full: with FOG; open: "
        "without; a line joins the means of the two (dotted: ours)."
        + (f" {same_machine([entry for _, entry, _ in _points(shown)])}".rstrip()),
        traces,
        460,
        xaxis=axis("seconds an epoch", rangemode="tozero"),
        yaxis=axis(f"{metric.axis} ({metric.direction})"),
    )


def same_machine(entries: Sequence[Any]) -> str:
    r"""A warning if not all times were measured on the same machine; else an empty string."""
    names = ("machine", "device", "threads", "ranks")
    made = {str([entry.result.get(name) for name in names]) for entry in entries}
    if len(made) < 2:
        return ""
    return "Not all runs had the same machine or number of threads: their times cannot be compared."


def widths_figure(
    lines: Sequence[TableLine], baselines: Sequence[TableLine], metric: Metric, name: str
) -> Figure | None:
    r"""The error of networks of several widths against their parameters.

    Args:
        lines (sequence of TableLine): The lines of the table of widths.
        baselines (sequence of TableLine): Their hosts at full width, of another table.
        metric, name: As in :func:`results_figure`.
    """
    shown = [line for line in lines if line.entries and not line.ours]
    if not shown:
        return None
    hosts = [
        base
        for base in baselines
        if base.paper.model in {_host(line) for line in lines}
        and not base.ours
        and base.mean is not None
    ]
    go, traces = graph_objects(), []
    for number, model in enumerate(dict.fromkeys(line.paper.model for line in lines)):
        ink, shape = f"var(--line-{number})", _SHAPES[number]
        printed = [line for line in lines if line.paper.model == model and not line.ours]
        traces.append(
            go.Scatter(
                x=[line.paper.params for line in printed],
                y=[line.paper.mean for line in printed],
                error_y=error_bars([line.paper.sd for line in printed], ink),
                name=f"{model}, the paper, mean ± s.d.",
                mode="lines+markers",
                opacity=0.6,
                line={"color": ink, "dash": "dot", "width": 1.5},
                marker={"symbol": f"{shape}-open", "size": 9},
                text=[line.label for line in printed],
                hovertemplate=hover("paper %{y:.4f}, %{x:,} parameters"),
            )
        )
        traces += _widths([line for line in shown if line.paper.model == model], ink, shape)
        for base in (base for base in hosts if f"{base.paper.model}+FOG" == model):
            text = f"{base.paper.model}, measured, {base.paper.params:,} parameters"
            traces.append(
                go.Scatter(
                    x=[min(line.paper.params or 0 for line in lines), base.paper.params],
                    y=[base.mean, base.mean],
                    name=f"{base.paper.model} without FOG",
                    mode="lines",
                    line={"color": ink, "dash": "dash", "width": 2},
                    text=[text, text],
                    hovertemplate=hover("%{y:.4f}"),
                )
            )
    spans = [value for line in lines for value in line.values]
    spans += _spans(lines)
    spans += [base.mean for base in hosts if base.mean is not None]
    return figure(
        name,
        f"{metric.axis} against the number of parameters, {metric.direction}. Full: our runs, one "
        "a dot; open and dotted: the paper; dashed: the host without FOG at its full width. Bars "
        f"of our means: the {INTERVAL}.",
        traces,
        520,
        wide=True,
        xaxis=axis("parameters", rangemode="tozero", tickformat=",d"),
        yaxis=axis(
            f"test {metric.axis} ({metric.direction})",
            range=window(spans, [t_interval(list(line.values)) for line in lines]),
        ),
    )


def _widths(lines: Sequence[TableLine], ink: str, shape: str) -> list[Any]:
    r"""The traces of the measured widths of one network: their means, and their runs."""
    if not lines:
        return []
    go, points, model = graph_objects(), _points(lines), lines[0].paper.model
    intervals = [t_interval(list(line.values)) for line in lines]
    return [
        go.Scatter(
            x=[line.parameters for line in lines],
            y=[line.mean for line in lines],
            error_y=error_bars([ends and (ends[1] - ends[0]) / 2 for ends in intervals], ink),
            name=f"{model}, mean{', 95 % interval' if any(intervals) else ''}",
            mode="lines",
            line={"color": ink, "width": 2.5},
            text=[line.label for line in lines],
            hovertemplate=hover("mean %{y:.4f}, %{x:,} parameters"),
        ),
        go.Scatter(
            x=[line.parameters for line, _, _ in points],
            y=[value for _, _, value in points],
            name=f"{model}, one seed",
            mode="markers",
            marker={"symbol": shape, "size": 9, "color": ink, "opacity": 0.75},
            text=[f"{line.label}, seed {entry.seed}" for line, entry, _ in points],
            customdata=[run_link(entry) for _, entry, _ in points],
            hovertemplate=hover("%{y:.4f}, %{x:,} parameters"),
        ),
    ]


def _points(lines: Sequence[TableLine]) -> list[tuple[TableLine, Any, float]]:
    return [
        (line, entry, value)
        for line in lines
        for entry, value in zip(line.entries, line.values, strict=True)
    ]


def _spans(lines: Sequence[TableLine]) -> list[float]:
    r"""The ends of the printed means ± s.d."""
    return [
        row.mean + side * row.sd
        for row in (line.paper for line in lines)
        if row.mean is not None and row.sd is not None
        for side in (-1, 1)
    ]


def _host(line: TableLine) -> str:
    return line.paper.model.removesuffix("+FOG")


def _below(lines: Sequence[TableLine]) -> float:
    r"""Where our figures are in a row: below the printed ones, or in the middle."""
    return BELOW if any(line.paper_mean is not None for line in lines) else 0.0


def _short(line: TableLine) -> str:
    r"""A label in two lines, for a narrow screen; the table has it in full."""
    parts = [name_of(line).replace(", ", "<br>", 1)]
    parts += [f"({line.variant})"] if line.variant else []
    parts += [f"[{pluralize(len(line.changed), 'setting')} changed]"] if line.changed else []
    return "<br>".join(parts)
