r"""Runs compared on one page."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fognn.report.curves import Curve, curves_svg, swatch_svg
from fognn.report.findings import WAYS, findings
from fognn.report.page import figure_svg, page, panels, paragraph, points, section, table_html
from fognn.report.run_folder import Run, read_run
from fognn.report.run_groups import NONE, Group, differing, group_runs, settings
from fognn.report.words import capital
from fognn.utils.files import write_whole

__all__ = ["compare_runs", "runs_table"]

_BEFORE = ("network", "seed", "parameters")
_AFTER = ("epochs", "best epoch", "seconds an epoch")


def compare_runs(folders: Sequence[str | Path], output: str | Path, title: str) -> Path:
    r"""Writes a page that compares runs: one HTML file, whole or not at all, that needs no other.

    What is to be seen comes first, as sentences made of the numbers; then the curves, the
    table, the settings that differ, and how to repeat it.

    Args:
        folders (sequence of str or Path): The folders of two or more runs of the same data and
            metric. They need not have finished.
        output (str or Path): The file, which ends in :obj:`.html`.
        title (str): The title of the page.
    """
    output = Path(output)
    if output.suffix.lower() != ".html":
        raise ValueError(f"compare_runs: output must end in .html, got {str(output)!r}")
    runs = read_runs(folders)
    groups = group_runs(runs)
    sentences = findings(groups)
    content = page(
        title,
        sentences[0],
        [
            points(sentences[1:]),
            _plots(groups),
            section("Results", [_results(runs)]),
            section("Settings that differ", [_differences(runs)]),
            section("To repeat it", _repeat(runs)),
        ],
    )
    with write_whole(output) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return output


def read_runs(folders: Sequence[str | Path]) -> list[Run]:
    r"""Reads runs that can be compared: two or more, of the same data and metric."""
    if len(folders) < 2:
        raise ValueError(f"folders must be two or more, got {len(folders)}")
    if len({Path(folder).resolve() for folder in folders}) < len(folders):
        raise ValueError(f"folders must differ, got {', '.join(map(str, folders))}")
    runs = [read_run(folder) for folder in folders]
    for run in runs[1:]:
        for what in ("data", "metric_name"):
            first, other = getattr(runs[0], what), getattr(run, what)
            if first.lower() != other.lower():
                raise ValueError(
                    f"folders must be of runs with the same {what.removesuffix('_name')}, got "
                    f"{first} in {runs[0].folder} and {other} in {run.folder}"
                )
    return runs


def runs_table(runs: Sequence[Run]) -> tuple[list[str], list[list[str]]]:
    r"""The header and a row for each run: parameters, test results, epochs, time."""
    header = [*_BEFORE, *(f"{when}, {over}" for when, over in WAYS), *_AFTER]
    labels = _labels(runs)
    return header, [_row(run, label) for run, label in zip(runs, labels, strict=True)]


def _row(run: Run, label: str) -> list[str]:
    def cell(value: Any, form: str) -> str:
        return NONE if value is None else format(value, form)

    tests = [cell(run.test(*way), f".{run.metric.digits}f") for way in WAYS]
    epochs = f"{run.epochs:,}" if run.result is not None else f"{run.epochs:,}, not finished"
    return [
        *(label, str(run.seed), cell(run.result and run.result["parameters"], ",")),
        *(*tests, epochs, cell(run.best_epoch, ","), cell(run.seconds_per_epoch, ".2f")),
    ]


def _labels(runs: Sequence[Run]) -> list[str]:
    r"""What each run is called: as its group is."""
    names = {id(run): group.label for group in group_runs(runs) for run in group.runs}
    return [names[id(run)] for run in runs]


def _plots(groups: Sequence[Group]) -> str:
    metric = groups[0].runs[0].metric
    scores, losses = [], []
    for series, group in enumerate(groups):
        for run in group.runs:
            scores.append(Curve(run.curve("val"), series, ring=run.best_epoch))
            scores.append(Curve(run.curve("train"), series, dashed=True))
            losses.append(Curve(run.loss("val"), series, ring=run.best_epoch))
            losses.append(Curve(run.loss("train"), series, dashed=True))
    entries = [
        (swatch_svg(series, False, f"swatch-{series}"), group.label)
        for series, group in enumerate(groups)
    ]
    entries.append((swatch_svg(None, False, "swatch-val"), "validation"))
    entries.append((swatch_svg(None, True, "swatch-train"), "training"))
    items = "".join(f"<li>{svg}{escape(text)}</li>\n" for svg, text in entries)
    figures = [
        figure_svg(
            curves_svg(scores, metric.axis, "metric"),
            f"{capital(metric.label)} over all items after each epoch. A ring: the best "
            "validation epoch.",
        ),
        figure_svg(
            curves_svg(losses, metric.loss, "loss"),
            "Loss after each epoch. Training figures are means over the epoch, taken while the "
            "network learns.",
        ),
    ]
    return f'<ul class="legend">\n{items}</ul>\n{panels(figures, "plots")}'


def _results(runs: Sequence[Run]) -> str:
    metric = runs[0].metric
    header, rows = runs_table(runs)
    above = [("", len(_BEFORE)), (f"test {metric.axis}", len(WAYS)), ("", len(_AFTER))]
    return table_html(header, rows, above) + paragraph(
        "The test split was looked at when the training had ended: with the weights of the best "
        "validation epoch, and with those of the last one. Items: counted over all of them at "
        "once; batches: the mean of the batches' figures."
    )


def _differences(runs: Sequence[Run]) -> str:
    every = [settings(run) for run in runs]
    return _side_by_side(runs, every, "setting", "The settings that are the same in all runs")


def _repeat(runs: Sequence[Run]) -> list[str]:
    commands = [
        str(run.result["command"]) for run in runs if run.result and "command" in run.result
    ]
    listing = f"<pre>{escape(chr(10).join(commands))}</pre>" if commands else ""
    facts = [_facts(run) for run in runs]
    return [listing, _side_by_side(runs, facts, "", "What all runs were made with")]


def _side_by_side(
    runs: Sequence[Run], every: Sequence[Mapping[str, str]], what: str, rest: str
) -> str:
    r"""What differs as a table, and what does not as one to unfold."""
    names = [f"{label}, seed {run.seed}" for run, label in zip(runs, _labels(runs), strict=True)]
    if len(set(names)) < len(names):
        names = [f"{name}, {run.folder}" for run, name in zip(runs, names, strict=True)]
    differences = differing(every)
    same = [[name, value] for name, value in every[0].items() if name not in differences]
    rows = [[name, *values] for name, values in differences.items()]
    return (
        (table_html([what, *names], rows) if rows else "")
        + f"<details><summary>{escape(rest)}</summary>\n"
        + f"{table_html([what, 'value'], same)}</details>"
    )


def _facts(run: Run) -> dict[str, str]:
    r"""What the run was made with."""
    result = run.result or {}
    facts: dict[str, Any] = {"folder": run.folder}
    facts |= {name: result.get(name) for name in ("commit", "device", "threads", "ranks")}
    for name in ("machine", "versions"):
        facts |= result.get(name) or {}
    return {name: NONE if value is None else str(value) for name, value in facts.items()}
