r"""The plots of the pages, by plotly. A colour is the name of one of the page's, which change with
the theme: the page's script replaces the names when it draws."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fognn.experiments.differences import difference_of, estimate
from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.rows import get_row
from fognn.experiments.tables import TABLES
from fognn.experiments.wording import METRICS, Metric
from fognn.report.text import capital

__all__ = ["Figure", "cost_figure", "curves_figure", "effect_figure", "results_figure"]

_COLOURS = {"host": "var(--line-0)", "FOG": "var(--line-1)", "paper": "var(--soft)"}
_LINES = [f"var(--line-{number})" for number in range(6)]
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "hexagon")
_CLEAR = "rgba(0,0,0,0)"
_ABOVE, _BELOW = 0.16, -0.16  # the paper's figure and ours, beside the middle of a row
_WIDEST = 2.5  # of the values' range: a wider interval is cut
_CUT = "95 % interval, which may be wider than the plot (the table has it in full)"
_CURVES = {
    "train_loss": "training loss",
    "val_loss": "validation loss",
    "val": "validation metric",
}


@dataclass(frozen=True)
class Figure:
    r"""A figure on a page.

    Args:
        name (str): An identifier that no other figure on the page has.
        caption (str): A description, also for screen readers.
        height (int): The height in pixels.
        json (str): The figure as plotly.js takes it, safe inside a :obj:`script` element.
        wide (bool, optional): Whether it is as wide as the page. (default: :obj:`False`)
    """

    name: str
    caption: str
    height: int
    json: str
    wide: bool = False


def results_figure(frame: pd.DataFrame, name: str) -> Figure | None:
    r"""A row for each network that is printed or measured: the paper's figure, each seed, and the
    mean of several seeds with its interval; :obj:`None` if there is none.

    Args:
        frame (DataFrame): The networks of one dataset.
        name (str): An identifier that no other figure on the page has.
    """
    lines = [line for line in _lines(frame) if line.entries or pd.notna(_printed(line))]
    if not lines:
        return None
    metric = METRICS[lines[0].metric]
    paper: list[Any] = []
    means: list[Any] = []
    runs: dict[str, list[Any]] = {"host": [], "FOG": []}
    for place, line in enumerate(lines):
        printed = _printed(line)
        if pd.notna(printed):
            paper.append((printed, line.paper_sd, -place + _ABOVE, f"{line.network}, the paper"))
        kind = "FOG" if "FOG" in line.network else "host"
        for seed, value in zip(line.seeds, line.values, strict=True):
            runs[kind].append((value, -place + _BELOW, f"{line.network}, seed {seed}"))
        if len(line.values) > 1:
            mean, _, low, high = estimate(line.values)
            means.append((mean, low, high, -place + _BELOW, f"{line.network}, mean"))
    traces = [_marks(paper)] if paper else []
    traces += [_dots(found, kind) for kind, found in runs.items() if found]
    traces += [_bars(means)] if means else []
    values = [value for line in lines for value in line.values]
    for value, sd, *_ in paper:
        values += [value] if pd.isna(sd) else [value - sd, value + sd]
    split = "validation" if lines[-1].figure.startswith("val") else "test"
    title = f"{split} {metric.axis} ({metric.direction})"
    caption = f"{capital(title)}. {'Diamonds: the paper. ' * bool(paper)}Dots: our runs."
    caption += f" Bars: the mean of the seeds with its {_CUT}." * bool(means)
    shown = _axis(title, range=_window(values, means))
    height = max(300, 150 + 34 * len(lines))
    return _figure(name, caption, traces, height, True, xaxis=shown, yaxis=_rows(lines))


def effect_figure(frame: pd.DataFrame, name: str) -> Figure | None:
    r"""The difference that FOG makes in each host, or to each control: for each common seed, and in
    the mean; :obj:`None` if there is none.

    Args:
        frame, name: As in :func:`results_figure`.
    """
    lines = [line for line in _lines(frame) if line.host]
    if not lines:
        return None
    metric, known = METRICS[lines[0].metric], {line.network: line for line in _lines(frame)}
    paper: list[Any] = []
    runs: list[Any] = []
    means: list[Any] = []
    controls = False
    for place, line in enumerate(lines):
        found, host = difference_of(line), known[line.host]
        if found is None:
            continue
        control = line.table in TABLES and bool(get_row(line.row).reference)
        controls, sign = controls or control, -1 if control else 1
        theirs = dict(zip(host.seeds, host.values, strict=True))
        for seed, value in zip(line.seeds, line.values, strict=True):
            if seed in theirs:
                gap = sign * (value - theirs[seed])
                runs.append((gap, -place + _BELOW, f"{line.network}, seed {seed}"))
        if found.low is not None and found.high is not None:
            text = f"{line.network}, {found.note}"
            means.append((found.value, found.low, found.high, -place + _BELOW, text))
        if pd.notna(_printed(line)) and pd.notna(_printed(host)) and not control:
            gap = _printed(line) - _printed(host)
            paper.append((gap, math.nan, -place + _ABOVE, f"{line.network}, the paper"))
    traces = [_marks(paper)] if paper else []
    traces += [_dots(runs, "FOG")] if runs else []
    traces += [_bars(means)] if means else []
    values = [0.0, *(value for value, *_ in [*runs, *means, *paper])]
    right = metric.higher_is_better
    title = f"{metric.axis} with FOG minus {'its control' if controls else 'without'}"
    better = "FOG is better →" if right else "← FOG is better"
    caption = f"{capital(title)}, for each seed: FOG is better {'right' if right else 'left'} of 0."
    caption += f" Bars: the mean with its {_CUT}." * bool(means)
    zero = {"zeroline": True, "zerolinecolor": "var(--ink)", "zerolinewidth": 1.5}
    note = {"text": better, "x": 0, "y": 1, "yref": "paper", "yanchor": "top", "showarrow": False}
    note |= {"xanchor": "left" if right else "right", "xshift": 6 if right else -6}
    shown, rows = _axis(title, range=_window(values, means), **zero), _rows(lines, room=0.5)
    height = max(240, 150 + 34 * len(lines))
    layout: dict[str, Any] = {"xaxis": shown, "yaxis": rows, "annotations": [note]}
    return _figure(name, caption, traces, height, controls, **layout)


def cost_figure(frame: pd.DataFrame, name: str, column: str, unit: str) -> Figure | None:
    r"""The result of each run against what it costs, a network joined with its host; :obj:`None`
    without runs.

    Args:
        frame, name: As in :func:`results_figure`.
        column (str): The column of the cost: ``"seconds_per_epoch"`` or ``"parameters"``.
        unit (str): What it counts.
    """
    lines = [line for line in _lines(frame) if line.entries]
    if not lines:
        return None
    go, metric, traces = _plotly(), METRICS[lines[0].metric], []
    known = {line.network: line for line in lines}
    hosts = list(dict.fromkeys(_host(line) for line in lines))
    for number, host in enumerate(hosts):
        ink = _LINES[number % len(_LINES)]
        own = [line for line in lines if _host(line) == host]
        for line in own:
            if line.host in known:
                ends = [known[line.host], line]
                x, y = [getattr(e, column) for e in ends], [e.mean for e in ends]
                look = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
                traces.append(go.Scatter(x=x, y=y, line={"color": ink, "width": 1.5}, **look))
        points = [(line, e) for line in own for e in zip(line.seeds, line.values, strict=True)]
        fills = [ink if "FOG" in line.network else _CLEAR for line, _ in points]
        symbol = _SHAPES[number % len(_SHAPES)]
        traces.append(
            go.Scatter(
                x=[getattr(line, column) for line, _ in points],
                y=[value for _, (_, value) in points],
                name=host,
                mode="markers",
                marker={
                    **{"symbol": symbol, "size": 11, "color": fills},
                    "line": {"color": ink, "width": 2},
                },
                text=[f"{line.network}, seed {seed}" for line, (seed, _) in points],
                hovertemplate=f"%{{text}}<br>%{{y:.4f}}, %{{x:,.4~g}} {unit}<extra></extra>",
            )
        )
    caption = (
        f"{capital(metric.axis)} ({metric.direction}) against {unit}. Full: with FOG; open: "
        "without; a line joins the means of the two."
    )
    cost = _axis(unit, rangemode="tozero")
    return _figure(name, caption, traces, 440, xaxis=cost, yaxis=_axis(metric.axis))


def curves_figure(
    groups: Mapping[str, Mapping[str, Sequence[LedgerEntry]]], metric: Metric, name: str
) -> Figure:
    r"""Losses and metric over the epochs. A list in the figure chooses one of several groups.

    Args:
        groups (mapping): By the title of each group, the runs of its networks by their labels.
        metric (Metric): Their metric.
        name (str): An identifier that no other figure on the page has.
    """
    traces: list[Any] = []
    shown: dict[str, list[int]] = {}
    for title, networks in groups.items():
        start = len(traces)
        for number, (label, entries) in enumerate(networks.items()):
            look = {"color": _LINES[number % len(_LINES)], "dash": _DASHES[number % len(_DASHES)]}
            for place, column in enumerate(_CURVES, 1):
                traces += _curves(label, entries, column, place, look)
        shown[title] = list(range(start, len(traces)))
    first = next(iter(shown))
    for number, trace in enumerate(traces):
        trace.visible = number in shown[first]
    layout: dict[str, Any] = {"grid": {"rows": 1, "columns": 3, "pattern": "independent"}}
    for place, (column, title) in enumerate(_CURVES.items(), 1):
        axis = str(place) if place > 1 else ""
        label = metric.axis if column == "val" else metric.loss
        values = [v for t in traces for v in t.y if t.xaxis == f"x{axis}" and v is not None]
        log = column != "val" and min(values) > 0 and max(values) > 30 * min(values)
        layout[f"xaxis{axis}"] = _axis("epoch", nticks=5)
        layout[f"yaxis{axis}"] = _axis(f"{title.replace(' metric', '')}, {label}")
        layout[f"yaxis{axis}"] |= {"type": "log", "dtick": 1} if log else {}
    if len(groups) > 1:
        buttons: list[Any] = [
            {
                "label": title,
                "method": "restyle",
                "args": [{"visible": [number in own for number in range(len(traces))]}],
            }
            for title, own in shown.items()
        ]
        menu: dict[str, Any] = {
            "buttons": buttons,
            "x": 1,
            "xanchor": "right",
            "y": 1.05,
            "yanchor": "bottom",
        }
        menu |= {"bgcolor": "var(--paper)", "bordercolor": "var(--soft)", "font": {"size": 13}}
        layout["updatemenus"] = [menu]
        layout["margin"] = {"l": 10, "r": 16, "t": 70, "b": 10}
    caption = "Losses and metric of each epoch."
    if any(len(entries) > 1 for networks in groups.values() for entries in networks.values()):
        caption += " Thin: one seed each; thick: their mean, up to the last epoch of all."
    caption += " The list chooses the networks." * (len(groups) > 1)
    return _figure(name, caption, traces, 400, wide=True, **layout)


def _curves(
    label: str, entries: Sequence[LedgerEntry], column: str, place: int, look: Mapping[str, Any]
) -> list[Any]:
    axis = str(place) if place > 1 else ""
    where = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": label, "name": label}
    curves = [entry.curve[column] for entry in entries]
    several = len(curves) > 1
    lines = [(curve, 1.0, 0.35) if several else (curve, 2.0, 1.0) for curve in curves]
    if several:
        epochs = list(zip(*curves, strict=False))
        known = [[v for v in values if v is not None] for values in epochs]
        means = [sum(v) / len(v) if len(v) == len(curves) else None for v in known]
        lines.append((means, 2.5, 1.0))
    return [
        _plotly().Scatter(
            x=list(range(1, len(values) + 1)),
            y=values,
            mode="lines",
            opacity=opacity,
            showlegend=place == 1 and number == len(lines) - 1,
            line=dict(look) | {"width": width},
            hovertemplate=f"{label}<br>epoch %{{x}}: %{{y:.5g}}<extra></extra>",
            **where,
        )
        for number, (values, width, opacity) in enumerate(lines)
    ]


def _plotly() -> Any:
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError(
            'pages need plotly, which is not installed: pip install "fognn[train]"'
        ) from error
    return go


def _figure(
    name: str, caption: str, traces: Sequence[Any], height: int, wide: bool = False, **own: Any
) -> Figure:
    go = _plotly()
    layout: dict[str, Any] = {
        "template": go.layout.Template(),  # plotly's own is longer than most figures
        "font": {"family": "system-ui, sans-serif", "size": 14, "color": "var(--ink)"},
        "paper_bgcolor": _CLEAR,
        "plot_bgcolor": _CLEAR,
        "margin": {"l": 10, "r": 16, "t": 44, "b": 10},
        "legend": {
            **{"orientation": "h", "x": 0, "xref": "container", "xanchor": "left"},
            **{"y": 1, "yref": "container", "yanchor": "top"},
        },
        "hoverlabel": {"bgcolor": "var(--paper)", "font": {"color": "var(--ink)"}},
        "hovermode": "closest",
        "dragmode": "pan",
    }
    text: str = go.Figure(list(traces), layout | own).to_json()
    # "</script>" must not end the element that contains it.
    return Figure(name, caption, height, text.replace("<", "\\u003c"), wide)


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "gridcolor": "var(--rule)",
        "linecolor": "var(--rule)",
        "zeroline": False,
        "automargin": True,
        "nticks": 8,
    } | more


def _rows(lines: Sequence[Any], room: float = 0.0) -> dict[str, Any]:
    r"""An axis with a row for each network, and some room above the first."""
    return _axis("") | {
        "tickvals": [-number for number in range(len(lines))],
        "ticktext": [line.network for line in lines],
        "range": [-len(lines) + 0.4, 0.6 + room],
        "fixedrange": True,  # a finger that scrolls the page must not move the rows
    }


def _window(values: Sequence[float], means: Sequence[Any]) -> list[float]:
    r"""The range of an axis that shows all values, and the intervals unless they are so wide that
    the values would look like one point, as with an interval of two seeds."""
    low, high = min(values), max(values)
    ends = [end for _, *interval, _, _ in means for end in interval]
    if ends and max(high, *ends) - min(low, *ends) <= _WIDEST * (high - low):
        low, high = min(low, *ends), max(high, *ends)
    margin = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
    return [low - margin, high + margin]


def _marks(paper: Sequence[Any]) -> Any:
    values, spreads, places, texts = (list(column) for column in zip(*paper, strict=True))
    known = [0.0 if pd.isna(spread) else spread for spread in spreads]
    marker = {"symbol": "diamond-open", "size": 9, "color": _COLOURS["paper"]}
    bars = {"array": known, "color": _COLOURS["paper"], "thickness": 1.5, "width": 4}
    return _scatter(values, places, texts, "the paper, mean ± s.d.", marker, bars)


def _dots(runs: Sequence[Any], kind: str) -> Any:
    values, places, texts = (list(column) for column in zip(*runs, strict=True))
    name = "with FOG, one seed" if kind == "FOG" else "without FOG, one seed"
    marker = {"size": 9, "color": _COLOURS[kind], "opacity": 0.75}
    return _scatter(values, places, texts, name, marker)


def _bars(means: Sequence[Any]) -> Any:
    values, _, highs, places, texts = (list(column) for column in zip(*means, strict=True))
    half = [high - value for high, value in zip(highs, values, strict=True)]
    ink = "var(--ink)"
    marker = {"symbol": "line-ns", "size": 13, "line": {"width": 2.5, "color": ink}}
    bars = {"array": half, "color": ink, "thickness": 1.5, "width": 4}
    return _scatter(values, places, texts, "mean, 95 % interval", marker, bars)


def _scatter(
    x: list[Any], y: list[Any], texts: list[str], name: str, marker: Any, bars: Any = None
) -> Any:
    hover = "%{text}<br>%{x:.4f}<extra></extra>"
    look = {"mode": "markers", "marker": marker, "error_x": bars, "hovertemplate": hover}
    return _plotly().Scatter(x=x, y=y, text=texts, name=name, **look)


def _lines(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


def _printed(line: Any) -> float:
    return float(getattr(line, "paper_mean", math.nan))


def _host(line: Any) -> str:
    name = line.network.partition(" ")[0].partition(",")[0]
    return str(name.removesuffix("+FOG"))
