r"""What FOG changes in each host."""

from collections.abc import Sequence

from fognn.paper.table_line import TableLine
from fognn.report.metric import Metric
from fognn.report.site_figure import INTERVAL, Figure, axis, figure, window
from fognn.report.site_marks import (
    ABOVE,
    BELOW,
    mean_bars,
    paper_marks,
    rows_axis,
    rows_height,
    run_points,
)
from fognn.report.site_measurements import host_of, run_link

__all__ = ["effect_figure"]


def effect_figure(lines: Sequence[TableLine], metric: Metric, name: str) -> Figure | None:
    r"""What FOG changes in each host: run by run of a common seed, and in the mean.

    Args:
        lines (sequence of TableLine): The rows of one dataset.
        metric (Metric): Their metric.
        name (str): A word that no other figure on the page has.
    """
    shown = [(line, host) for line in lines if (host := host_of(line, list(lines))) and line.paired]
    if not shown:
        return None
    printed: list[tuple[float, float, str]] = []
    runs: list[tuple[float, float, str, str]] = []
    means: list[tuple[float, tuple[float, float], float, str]] = []
    for number, (line, host) in enumerate(shown):
        theirs = dict(zip(host.seeds, host.values, strict=True))
        for entry, value in zip(line.entries, line.values, strict=True):
            if entry.seed in theirs:
                text = f"{line.label} minus {host.label}, seed {entry.seed}"
                runs.append((value - theirs[entry.seed], -number + BELOW, text, run_link(entry)))
        if line.paired and line.paired.interval:
            text = f"{line.label} minus {host.label}, {line.paired.note}"
            means.append((line.paired.difference, line.paired.interval, -number + BELOW, text))
        if line.paper_mean is not None and host.paper_mean is not None:
            printed.append((line.paper_mean - host.paper_mean, -number + ABOVE, line.label))
    traces = [
        paper_marks(
            [value for value, _, _ in printed],
            None,
            [place for _, place, _ in printed],
            [f"{label}<br>paper {value:+.4g}" for value, _, label in printed],
            "the paper's means",
        ),
        run_points(runs, "with FOG", "one seed"),
        *mean_bars(means),
    ]
    side = "right" if metric.higher_is_better else "left"
    return figure(
        name,
        f"{metric.axis} with FOG minus without, seed by seed: {side} of the line at 0, FOG helps."
        + (f" A bar: the mean with its {INTERVAL}." if means else ""),
        traces,
        rows_height(len(shown)),
        xaxis=axis(
            f"{metric.axis} with FOG minus without",
            range=window(
                [0.0, *(e[0] for e in runs), *(e[0] for e in means), *(e[0] for e in printed)],
                [each[1] for each in means],
            ),
            zeroline=True,
            zerolinecolor="var(--ink)",
            zerolinewidth=1.5,
        ),
        yaxis=rows_axis([line for line, _ in shown], room=0.5),
        annotations=[
            {
                "text": "FOG helps →" if metric.higher_is_better else "← FOG helps",
                "x": 0,
                "xanchor": "left" if metric.higher_is_better else "right",
                "xshift": 6 if metric.higher_is_better else -6,
                "y": 1,
                "yref": "paper",
                "yanchor": "top",
                "showarrow": False,
                "font": {"color": "var(--soft)", "size": 13},
            }
        ],
    )
