r"""The elements of interactive plots: the figure and its axes, points, bars and their colours.

plotly is imported only when something is drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ABOVE",
    "BELOW",
    "CLEAR",
    "COLOURS",
    "INTERVAL",
    "Figure",
    "axis",
    "colour",
    "error_bars",
    "figure",
    "graph_objects",
    "hover",
    "log_scale",
    "mean_bars",
    "paper_marks",
    "rows_axis",
    "rows_height",
    "run_points",
    "window",
]

# The names of the page's colours: the page's script replaces them when it draws, so that they
# change with the theme.
COLOURS = {
    "host": "var(--line-0)",
    "with FOG": "var(--line-1)",
    "FOG alone": "var(--line-2)",
    "paper": "var(--soft)",
}
CLEAR = "rgba(0,0,0,0)"
INTERVAL = "95 % interval, which may be wider than the plot (a table has it in full)"
ABOVE, BELOW = 0.16, -0.16  # the paper's figure and ours, beside the middle of a row
_LOG_RATIO = 30
_MARGIN = 0.08  # of the values' range, on either side
_WIDEST = 2.5  # of the values' range


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


def graph_objects() -> Any:
    r"""plotly's module of figures."""
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError(
            'the report needs plotly, which is not installed: pip install "fognn[report]"'
        ) from error
    return go


def figure(
    name: str,
    caption: str,
    traces: Sequence[Any],
    height: int,
    wide: bool = False,
    **layout: Any,
) -> Figure:
    r"""Makes a figure in the site's look.

    Args:
        name, caption, height, wide: As in :class:`Figure`.
        traces (sequence): plotly's traces.
        **layout: The figure's own layout: axes, shapes, annotations.
    """
    look: dict[str, Any] = {
        "template": graph_objects().layout.Template(),  # plotly's own is longer than most figures
        "font": {"family": "system-ui, sans-serif", "size": 14, "color": "var(--ink)"},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "margin": {"l": 10, "r": 16, "t": 44, "b": 10},
        "legend": {
            **{"orientation": "h", "font": {"size": 13}},
            **{"x": 0, "xref": "container", "xanchor": "left"},
            **{"y": 1, "yref": "container", "yanchor": "top"},
        },
        "hoverlabel": {"bgcolor": "var(--paper)", "font": {"color": "var(--ink)"}},
        "hovermode": "closest",
        "dragmode": "pan",
        "autosize": True,
    }
    text = graph_objects().Figure(list(traces), look | layout).to_json()
    # "</script>" must not end the element that contains it.
    return Figure(name, caption, height, text.replace("<", "\\u003c"), wide)


def axis(title: str, **more: Any) -> dict[str, Any]:
    r"""An axis with its title, in the site's look."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "gridcolor": "var(--rule)",
        "linecolor": "var(--rule)",
        "zeroline": False,
        "automargin": True,
        "nticks": 8,
        "tickangle": 0,
        "ticks": "outside",
        "tickcolor": CLEAR,  # space between the numbers and the axis
    } | more


def rows_axis(names: Sequence[str], room: float = 0.0) -> dict[str, Any]:
    r"""An axis with a row for each name, and some room above the first."""
    return axis("") | {
        "title": None,
        "tickvals": [-number for number in range(len(names))],
        "ticktext": list(names),
        "range": [-len(names) + 0.4, 0.6 + room],
        "fixedrange": True,  # a finger that scrolls the page must not move the rows
    }


def rows_height(rows: int) -> int:
    r"""The height of a figure with so many rows."""
    return max(460, 150 + 34 * rows)


def colour(model: str) -> str:
    r"""Which of :obj:`COLOURS` a network has, by its name in the paper."""
    if model == "FOG":
        return "FOG alone"
    return "with FOG" if model.endswith("+FOG") else "host"


def window(
    values: Sequence[float], intervals: Sequence[tuple[float, float] | None] = ()
) -> list[float]:
    r"""The range of an axis that shows all values.

    It shows the intervals in full too, unless they are so wide that the values would look like
    one point, as with an interval of two seeds.
    """
    low, high = min(values), max(values)
    ends = [end for interval in intervals if interval is not None for end in interval]
    if ends and max(high, *ends) - min(low, *ends) <= _WIDEST * (high - low):
        low, high = min(low, *ends), max(high, *ends)
    size = max(abs(low), abs(high))
    # Values that are nearly equal need a margin, too.
    margin = _MARGIN * (high - low if high - low > 1e-6 * size else size) or 1.0
    return [low - margin, high + margin]


def log_scale(values: Sequence[float | None]) -> bool:
    r"""Whether values are so far apart that a linear scale would hide most of them."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) > _LOG_RATIO * min(finite)


def hover(value: str) -> str:
    r"""The label of a point under the mouse: its text, and a number in plotly's format."""
    return f"%{{text}}<br>{value}<extra></extra>"


def error_bars(half_widths: Sequence[float | None], colour: str) -> dict[str, Any]:
    r"""Bars of the given widths to either side; :obj:`None` is no bar."""
    array = [width or 0 for width in half_widths]
    return {"type": "data", "array": array, "color": colour, "thickness": 1.5, "width": 4}


def paper_marks(
    values: Sequence[float | None],
    spreads: Sequence[float | None] | None,
    places: Sequence[float],
    texts: Sequence[str],
    name: str,
) -> Any:
    r"""The trace of the paper's figures.

    Args:
        values, places (sequence of float): The coordinates.
        spreads (sequence of float, optional): The printed standard deviations.
        texts (sequence of str): The label of each.
        name (str): The name in the legend.
    """
    return graph_objects().Scatter(
        x=values,
        y=places,
        name=name,
        mode="markers",
        marker={"symbol": "diamond-open", "size": 9, "color": COLOURS["paper"]},
        error_x=None if spreads is None else error_bars(spreads, COLOURS["paper"]),
        text=texts,
        hovertemplate="%{text}<extra></extra>",
    )


def run_points(runs: Sequence[tuple[float, float, str, str]], kind: str, name: str) -> Any:
    r"""The trace of runs, each a point: value, place, text and the page that a click opens.

    Args:
        runs (sequence): The runs.
        kind (str): One of :obj:`COLOURS`.
        name (str): The name in the legend.
    """
    values, places, texts, links = (list(column) for column in zip(*runs, strict=True))
    return graph_objects().Scatter(
        x=values,
        y=places,
        name=name,
        mode="markers",
        marker={"size": 9, "color": COLOURS[kind], "opacity": 0.75},
        text=texts,
        customdata=links,
        hovertemplate=hover("%{x:.4f}"),
    )


def mean_bars(means: Sequence[tuple[float, tuple[float, float], float, str]]) -> list[Any]:
    r"""The trace of means with their intervals: mean, interval, place and text; empty for none."""
    if not means:
        return []
    marker = {"symbol": "line-ns", "size": 13, "line": {"width": 2.5, "color": "var(--ink)"}}
    return [
        graph_objects().Scatter(
            x=[mean for mean, _, _, _ in means],
            y=[place for _, _, place, _ in means],
            name="mean, 95 % interval",
            mode="markers",
            marker=marker,
            error_x=error_bars([high - mean for mean, (_, high), _, _ in means], "var(--ink)"),
            text=[text for _, _, _, text in means],
            hovertemplate=hover("mean %{x:.4f} ± %{error_x.array:.4f}"),
        )
    ]
