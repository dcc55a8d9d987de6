r"""What plots with a row for each network are made of."""

from collections.abc import Sequence
from typing import Any

from fognn.paper.table_line import TableLine
from fognn.report.site_figure import COLOURS, axis, graph_objects
from fognn.report.site_measurements import name_of
from fognn.report.words import many

__all__ = [
    "ABOVE",
    "BELOW",
    "error_bars",
    "hover",
    "mean_bars",
    "paper_marks",
    "rows_axis",
    "rows_height",
    "run_points",
]

ABOVE, BELOW = 0.16, -0.16  # the paper's figure and ours, beside the middle of a row


def error_bars(half_widths: Sequence[float | None], colour: str) -> dict[str, Any]:
    r"""Bars of the widths given to either side; none where there is none."""
    return {
        "type": "data",
        "array": [width or 0 for width in half_widths],
        "color": colour,
        "thickness": 1.5,
        "width": 4,
    }


def hover(value: str) -> str:
    r"""What is shown at a point: its text, and a number by plotly's format."""
    return f"%{{text}}<br>{value}<extra></extra>"


def paper_marks(
    values: Sequence[float | None],
    spreads: Sequence[float | None] | None,
    places: Sequence[float],
    texts: Sequence[str],
    name: str,
) -> Any:
    r"""What the paper prints.

    Args:
        values, places (sequence of float): Where on the two axes.
        spreads (sequence of float, optional): The printed s.d.
        texts (sequence of str): What is shown at each.
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
    r"""Runs, one a point: value, place, text and the page that opens on a click.

    Args:
        runs (sequence): The runs.
        kind (str): One of :obj:`~fognn.report.site_figure.COLOURS`.
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
    r"""Means with their intervals: mean, interval, place and text; nothing for none."""
    if not means:
        return []
    return [
        graph_objects().Scatter(
            x=[mean for mean, _, _, _ in means],
            y=[place for _, _, place, _ in means],
            name="mean, 95 % interval",
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 13,
                "line": {"width": 2.5, "color": "var(--ink)"},
            },
            error_x=error_bars([high - mean for mean, (_, high), _, _ in means], "var(--ink)"),
            text=[text for _, _, _, text in means],
            hovertemplate=hover("mean %{x:.4f} ± %{error_x.array:.4f}"),
        )
    ]


def rows_axis(lines: Sequence[TableLine], room: float = 0.0) -> dict[str, Any]:
    r"""An axis with a row for each line, and some room above the first."""
    return axis("") | {
        "title": None,
        "tickvals": [-number for number in range(len(lines))],
        "ticktext": [_short(line) for line in lines],
        "range": [-len(lines) + 0.4, 0.6 + room],
        "fixedrange": True,  # a finger that scrolls the page must not move the rows
    }


def _short(line: TableLine) -> str:
    r"""A label in two lines, for a narrow screen; the table has it in full."""
    parts = [name_of(line).replace(", ", "<br>", 1)]
    parts += [f"({line.variant})"] if line.variant else []
    parts += [f"[{many(len(line.changed), 'setting')} changed]"] if line.changed else []
    return "<br>".join(parts)


def rows_height(rows: int) -> int:
    r"""The height of a figure with so many rows."""
    return max(460, 150 + 34 * rows)
