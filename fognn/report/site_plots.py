r"""Each row of a table: what was measured beside what was printed."""

from collections.abc import Sequence

from fognn.paper.pairing import t_interval
from fognn.paper.table_line import TableLine
from fognn.report.metric import Metric
from fognn.report.site_figure import COLOURS, INTERVAL, Figure, axis, colour, figure, window
from fognn.report.site_marks import (
    ABOVE,
    BELOW,
    mean_bars,
    paper_marks,
    rows_axis,
    rows_height,
    run_points,
)
from fognn.report.site_measurements import run_link
from fognn.report.words import capital

__all__ = ["results_figure"]


def results_figure(lines: Sequence[TableLine], metric: Metric, name: str) -> Figure:
    r"""Each row: what the paper prints, each seed, and the mean of more seeds with its interval.

    Args:
        lines (sequence of TableLine): The rows of one dataset.
        metric (Metric): Their metric.
        name (str): A word that no other figure on the page has.
    """
    places = {id(line): -number for number, line in enumerate(lines)}
    printed = [line for line in lines if line.paper_mean is not None]
    traces = [
        paper_marks(
            [line.paper_mean for line in printed],
            [line.paper_sd for line in printed],
            [places[id(line)] + ABOVE for line in printed],
            [f"{line.label}<br>paper {_pm(line.paper_mean, line.paper_sd)}" for line in printed],
            "the paper, mean ± s.d.",
        )
    ]
    for kind in COLOURS:
        own = [line for line in lines if line.entries and colour(line.paper.model) == kind]
        runs = [
            (value, places[id(line)] + BELOW, f"{line.label}, seed {entry.seed}", run_link(entry))
            for line in own
            for entry, value in zip(line.entries, line.values, strict=True)
        ]
        if runs:
            traces.append(run_points(runs, kind, f"{kind}, one seed"))
    means = [(line, t_interval(list(line.values))) for line in lines if len(line.values) > 1]
    traces += mean_bars(
        [
            (line.mean or 0.0, interval, places[id(line)] + BELOW, line.label)
            for line, interval in means
            if interval is not None
        ]
    )
    better = "more" if metric.higher_is_better else "less"
    several = f" A bar: the mean of the seeds with its {INTERVAL}." if means else ""
    spans = [
        end
        for line in printed
        for end in (line.paper.mean - line.paper.sd, line.paper.mean + line.paper.sd)
    ]
    return figure(
        name,
        f"{capital(_what(lines, metric))}, {better} is better. A diamond: the paper; a dot: one of "
        f"our runs, which opens on a click.{several}",
        traces,
        rows_height(len(lines)),
        wide=True,
        xaxis=axis(
            f"{_what(lines, metric)} ({better} is better)",
            range=window(
                [value for line in lines for value in line.values] + spans,
                [interval for _, interval in means],
            ),
        ),
        yaxis=rows_axis(lines),
    )


def _what(lines: Sequence[TableLine], metric: Metric) -> str:
    r"""The metric and the split that it is of."""
    folds = any(line.folds for line in lines)
    return f"{'validation' if folds else 'test'} {metric.axis}"


def _pm(mean: float | None, sd: float | None) -> str:
    return f"{mean:.4g} ± {sd:.2g}"
