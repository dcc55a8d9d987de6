r"""Interactive figures: plotly, imported only when something is drawn, and the site's look."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CLEAR",
    "COLOURS",
    "INTERVAL",
    "Figure",
    "axis",
    "colour",
    "figure",
    "graph_objects",
    "log_scale",
    "window",
]

# The colours of the page by their names: the page puts them in, and changes them with its theme.
COLOURS = {
    "host": "var(--line-0)",
    "with FOG": "var(--line-1)",
    "FOG alone": "var(--line-2)",
    "paper": "var(--soft)",
}
CLEAR = "rgba(0,0,0,0)"
INTERVAL = "95 % interval, which may be wider than the plot (a table has it in full)"
_LOG_RATIO = 30
_MARGIN = 0.08  # of the values' range, on either side
_WIDEST = 2.5  # of the values' range


@dataclass(frozen=True)
class Figure:
    r"""A figure on a page.

    Args:
        name (str): A word that no other figure on the page has.
        caption (str): What it shows, for the eye and for a screen reader.
        height (int): Its height in pixels.
        json (str): The figure as plotly.js takes it, safe inside a :obj:`script` element.
        wide (bool, optional): Whether it is as wide as the page.
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
    r"""Traces and a layout, in the site's look.

    Args:
        name, caption, height, wide: As in :class:`Figure`.
        traces (sequence): plotly's traces.
        **layout: What this figure has of its own: axes, shapes, annotations.
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
    # "</script>" must not end the element that holds it.
    return Figure(name, caption, height, text.replace("<", "\\u003c"), wide)


def axis(title: str, **more: Any) -> dict[str, Any]:
    r"""An axis with its title, in the site's look."""
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": "var(--rule)",
        "linecolor": "var(--rule)",
        "zeroline": False,
        "automargin": True,
        "nticks": 8,
        "tickangle": 0,
        "ticks": "outside",
        "tickcolor": CLEAR,  # a little room between the numbers and the axis
    } | more


def colour(model: str) -> str:
    r"""Which of :obj:`COLOURS` a network has, by its name in the paper."""
    if model == "FOG":
        return "FOG alone"
    return "with FOG" if model.endswith("+FOG") else "host"


def window(
    values: Sequence[float], intervals: Sequence[tuple[float, float] | None] = ()
) -> list[float]:
    r"""The range of an axis that shows all values.

    The intervals are shown in full too, unless the values would be one point beside them, as they
    are beside an interval of two seeds.
    """
    low, high = min(values), max(values)
    ends = [end for interval in intervals if interval is not None for end in interval]
    if ends and max(high, *ends) - min(low, *ends) <= _WIDEST * (high - low):
        low, high = min(low, *ends), max(high, *ends)
    size = max(abs(low), abs(high))
    # Values that are as good as the same need a margin all the same.
    margin = _MARGIN * (high - low if high - low > 1e-6 * size else size) or 1.0
    return [low - margin, high + margin]


def log_scale(values: Sequence[float | None]) -> bool:
    r"""Whether values are so far apart that a linear scale would hide most of them."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return bool(finite) and min(finite) > 0 and max(finite) > _LOG_RATIO * min(finite)
