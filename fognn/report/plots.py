r"""The plots of the pages, by plotly. A colour is the name of one of the page's, which change with
the theme: the page's script replaces the names when it draws."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from fognn.experiments.differences import METRICS, difference_of, estimate
from fognn.experiments.rows import TABLES, get_row
from fognn.report.forms import capital

_HOST, _FOG, _PAPER, _INK = "var(--line-0)", "var(--line-1)", "var(--soft)", "var(--ink)"
_LINES = [f"var(--line-{number})" for number in range(6)]
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_ABOVE, _BELOW = 0.16, -0.16  # the paper's figure and ours, beside the middle of a row
_STYLE = json.loads(Path(__file__).with_name("templates").joinpath("plot.json").read_text())
_WIDEST = 2.5  # of the values' range: a wider interval is cut
_CURVES = {"train_loss": "training loss", "val_loss": "validation loss", "val": "validation"}
# A point of a row: its value, half the length of its bar, its height and its text.
Point = tuple[float, float, float, str]
Points = dict[str, list[Point]]  # by their kind: paper, host, fog or mean


@dataclass(frozen=True)
class Figure:
    r"""A figure on a page."""

    name: str
    caption: str
    height: int
    json: str
    wide: bool = False


def results_figure(frame: pd.DataFrame) -> Figure | None:
    r"""Returns a row for each network that is printed or measured: the paper's figure, each seed,
    and the mean of several seeds with its interval; :obj:`None` without any."""
    lines = [o for o in frame.itertuples() if o.entries or not math.isnan(_printed(o))]
    if not lines:
        return None
    points: Points = defaultdict(list)
    for place, line in enumerate(lines):
        if not math.isnan(printed := _printed(line)):
            sd = 0.0 if pd.isna(line.paper_sd) else line.paper_sd
            points["paper"].append((printed, sd, _ABOVE - place, f"{line.network}, the paper"))
        for seed, value in zip(line.seeds, line.values, strict=True):
            kind = "fog" if "FOG" in line.network else "host"
            points[kind].append((value, 0.0, _BELOW - place, f"{line.network}, seed {seed}"))
        if len(line.values) > 1:
            mean, _, _, high = estimate(line.values)
            points["mean"].append((mean, high - mean, _BELOW - place, f"{line.network}, mean"))
    metric = METRICS[lines[0].metric]
    split = "validation" if lines[-1].figure.startswith("val") else "test"
    title = f"{split} {metric.axis} ({metric.direction})"
    caption = f"{capital(title)}. {'Diamonds: the paper. ' * ('paper' in points)}Dots: our runs."
    return _rows("results", caption, lines, points, _axis(title))


def effect_figure(frame: pd.DataFrame) -> Figure | None:
    r"""Returns the difference that FOG makes in each host, or to each control: for each common
    seed, and in the mean; :obj:`None` if there is none."""
    known = {line.network: line for line in frame.itertuples()}
    lines = [line for line in known.values() if line.host]
    if not lines:
        return None
    points: Points = defaultdict(list)
    controls = [line.table in TABLES and bool(get_row(line.row).reference) for line in lines]
    for place, (line, control) in enumerate(zip(lines, controls, strict=True)):
        found, host = difference_of(line), known[line.host]
        theirs = dict(zip(host.seeds, host.values, strict=True))
        for seed, value in zip(line.seeds, line.values, strict=True):
            if seed in theirs:
                gap = (value - theirs[seed]) * (-1 if control else 1)
                points["fog"].append((gap, 0.0, _BELOW - place, f"{line.network}, seed {seed}"))
        if found is not None and found.pairs > 1:
            text = f"{line.network}, {found.note}"
            points["mean"].append((found.value, found.high - found.value, _BELOW - place, text))
        printed = _printed(line) - _printed(host)
        if not (control or math.isnan(printed)):
            points["paper"].append((printed, 0.0, _ABOVE - place, f"{line.network}, the paper"))
    metric = METRICS[lines[0].metric]
    side = "right" if metric.higher_is_better else "left"
    title = f"{metric.axis} with FOG minus {'its control' if any(controls) else 'without'}"
    caption = f"{capital(title)}, for each seed: FOG is better {side} of 0."
    axis = _axis(title, zeroline=True, zerolinecolor=_INK, zerolinewidth=1.5)
    return _rows("effect", caption, lines, points, axis)


def curves_figure(frame: pd.DataFrame) -> Figure:
    r"""Returns losses and metric over the epochs, a line for each run. At first it shows the
    networks of the first pair, or the first two."""
    lines = [line for line in frame.itertuples() if line.entries]
    first = next((line for line in lines if line.host), None)
    shown = {first.network, first.host} if first else {line.network for line in lines[:2]}
    traces = []
    for number, line in enumerate(lines):
        look = {"color": _LINES[number % 6], "dash": _DASHES[number % 6]}
        for place, column in enumerate(_CURVES, 1):
            for entry in line.entries:
                curve = entry.curve[column]
                traces.append(
                    go.Scatter(
                        x=list(range(1, len(curve) + 1)),
                        y=curve,
                        mode="lines",
                        line=look | {"width": 1.5},
                        name=line.network,
                        legendgroup=line.network,
                        showlegend=place == 1 and entry is line.entries[0],
                        visible=True if line.network in shown else "legendonly",
                        hovertemplate=f"{line.network}, seed {entry.seed}<br>"
                        "epoch %{x}: %{y:.5g}<extra></extra>",
                        xaxis=f"x{place}",
                        yaxis=f"y{place}",
                    )
                )
    axes: dict[str, Any] = {"grid": {"rows": 1, "columns": 3, "pattern": "independent"}}
    metric = METRICS[lines[0].metric]
    for place, text in enumerate(_CURVES.values(), 1):
        axes[f"xaxis{place}"] = _axis("epoch")
        axes[f"yaxis{place}"] = _axis(f"{text} {metric.axis}" if text == "validation" else text)
    caption = "Losses and metric of each epoch, a line for each run."
    caption += " A click on a name shows or hides it." * (len(lines) > 2)
    return _figure("curves", caption, traces, 400, wide=True, **axes)


def _printed(line: Any) -> float:
    return float(getattr(line, "paper_mean", math.nan))


def _rows(
    name: str, caption: str, lines: Sequence[Any], points: Points, axis: dict[str, Any]
) -> Figure:
    r"""Returns a figure with a row for each network. Its axis shows all points, and the intervals
    unless they, as with those of two seeds, are so wide that the points would look like one."""
    values = [value for kind in points.values() for value, *_ in kind] + [0.0] * axis["zeroline"]
    values += [value + sign * sd for value, sd, *_ in points["paper"] for sign in (-1, 1)]
    low, high = min(values), max(values)
    bars = [value + sign * half for value, half, *_ in points["mean"] for sign in (-1, 1)]
    if bars and max(high, *bars) - min(low, *bars) <= _WIDEST * (high - low):
        low, high = min(low, *bars), max(high, *bars)
    margin = 0.08 * (high - low) or 0.08 * abs(high) or 1.0
    places = _axis("") | {
        "tickvals": [-number for number in range(len(lines))],
        "ticktext": [line.network for line in lines],
        "range": [-len(lines) + 0.4, 0.6],
        "fixedrange": True,  # a finger that scrolls the page must not move the rows
    }
    looks: dict[str, tuple[str, str, dict[str, Any]]] = {
        "paper": ("the paper, mean ± s.d.", _PAPER, {"symbol": "diamond-open", "size": 9}),
        "host": ("without FOG, one seed", _HOST, {"size": 9, "opacity": 0.75}),
        "fog": ("with FOG, one seed", _FOG, {"size": 9, "opacity": 0.75}),
        "mean": ("mean, 95 % interval", _INK, {"symbol": "diamond", "size": 6}),
    }
    traces = []
    for kind, (label, colour, marker) in looks.items():
        if points[kind]:
            x, half, y, texts = zip(*points[kind], strict=True)
            bar = {"array": half, "color": colour, "thickness": 1.5, "width": 4}
            look = {"mode": "markers", "marker": marker | {"color": colour}}
            look |= {"error_x": bar} if any(half) else {}
            hover = {"text": texts, "hovertemplate": "%{text}<br>%{x:.4f}<extra></extra>"}
            traces.append(go.Scatter(x=x, y=y, name=label, **look, **hover))
    caption += (
        " Bars: the mean with its 95 % interval, which may be wider than the plot (the table has "
        "it in full)."
    ) * bool(points["mean"])
    axes = {"xaxis": axis | {"range": [low - margin, high + margin]}, "yaxis": places}
    return _figure(name, caption, traces, max(260, 150 + 34 * len(lines)), len(lines) > 3, **axes)


def _axis(title: str, **more: Any) -> dict[str, Any]:
    text = {"text": title, "standoff": 8, "font": {"size": 13}}
    return {"title": text} | _STYLE["axis"] | more


def _figure(
    name: str, caption: str, traces: Sequence[Any], height: int, wide: bool = False, **axes: Any
) -> Figure:
    text: str = go.Figure(list(traces), _STYLE["layout"] | axes).to_json()
    # "</script>" must not end the element that contains it.
    return Figure(name, caption, height, text.replace("<", "\\u003c"), wide)
