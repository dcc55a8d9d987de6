r"""What a better number costs: the result against the time of an epoch."""

from collections.abc import Sequence

from fognn.paper.table_line import TableLine
from fognn.report.metric import Metric
from fognn.report.site_figure import CLEAR, Figure, axis, figure, graph_objects
from fognn.report.site_marks import hover
from fognn.report.site_measurements import host_of, run_link

__all__ = ["time_figure"]

_HEIGHT = 460
# A host has a colour and a shape; full with FOG, and open without.
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "hexagon")


def time_figure(lines: Sequence[TableLine], metric: Metric, name: str) -> Figure | None:
    r"""The time of an epoch against the result: each run a point, a host joined with its FOG.

    Args:
        lines (sequence of TableLine): The rows of one dataset.
        metric (Metric): Their metric.
        name (str): A word that no other figure on the page has.
    """
    shown = [line for line in lines if line.entries]
    if not shown:
        return None
    go, traces = graph_objects(), []
    hosts = list(dict.fromkeys(_host(line) for line in lines if _host(line) != "FOG"))
    for host in dict.fromkeys(_host(line) for line in shown):
        own = [line for line in shown if _host(line) == host]
        number = hosts.index(host) if host in hosts else 0
        shape = "star" if host == "FOG" else _SHAPES[number % len(_SHAPES)]
        colour = "var(--ink)" if host == "FOG" else f"var(--line-{number % len(_SHAPES)})"
        for dotted, (x, y) in _joins(own):
            traces.append(
                go.Scatter(
                    x=x, y=y, mode="lines", showlegend=False, legendgroup=host, hoverinfo="skip",
                    line={"color": colour, "width": 1.5, "dash": "dot" if dotted else "solid"},
                )
            )  # fmt: skip
        points = [
            (entry.result["seconds_per_epoch"], value, line, entry)
            for line in own
            for entry, value in zip(line.entries, line.values, strict=True)
        ]
        full = [line.paper.model.endswith("FOG") for _, _, line, _ in points]
        traces.append(
            go.Scatter(
                x=[seconds for seconds, _, _, _ in points],
                y=[value for _, value, _, _ in points],
                name=host,
                legendgroup=host,
                mode="markers",
                marker={
                    "symbol": shape,
                    "size": 12,
                    "color": [colour if is_full else CLEAR for is_full in full],
                    "line": {"color": colour, "width": 2},
                },
                text=[f"{line.label}, seed {entry.seed}" for _, _, line, entry in points],
                customdata=[run_link(entry) for _, _, _, entry in points],
                hovertemplate=hover("%{y:.4f}, %{x:.2f} s an epoch"),
            )
        )
    better = "more" if metric.higher_is_better else "less"
    return figure(
        name,
        f"The median time of an epoch, validation included, against the result: the best place is "
        f"at the {'top' if metric.higher_is_better else 'bottom'} left. Full: with FOG; open: "
        f"without; a line joins the means of the two (dotted: ours).{_machines(shown)}",
        traces,
        _HEIGHT,
        xaxis=axis("seconds an epoch", rangemode="tozero"),
        yaxis=axis(f"{metric.axis} ({better} is better)"),
    )


def _host(line: TableLine) -> str:
    return line.paper.model.removesuffix("+FOG")


def _joins(lines: Sequence[TableLine]) -> list[tuple[bool, tuple[list[float], list[float]]]]:
    r"""From the mean of each host to that of the same with FOG; whether they are ours."""
    joins = []
    for line in lines:
        host = host_of(line, lines)
        if host is not None:
            ends = [(end.seconds_per_epoch or 0.0, end.mean or 0.0) for end in (host, line)]
            x, y = ([float(value) for value in column] for column in zip(*ends, strict=True))
            joins.append((line.ours, (x, y)))
    return joins


def _machines(lines: Sequence[TableLine]) -> str:
    r"""A warning if not all times were taken in the same way."""
    made = {
        str([entry.result.get(name) for name in ("machine", "device", "threads", "ranks")])
        for line in lines
        for entry in line.entries
    }
    return (
        " Not all runs had the same machine or number of threads: their times cannot be compared."
        if len(made) > 1
        else ""
    )
