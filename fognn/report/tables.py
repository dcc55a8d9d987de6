r"""The tables of results: the commands ``fognn table`` and ``fognn models``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import METRICS, NONE, Difference, difference_of, pluralize
from fognn.experiments.ledger import COMPARE, ledger_of, readable
from fognn.experiments.results import networks_frame, table_frame
from fognn.experiments.rows import TABLES, get_row, name_of, rows
from fognn.experiments.search import choices_of, chosen_entries
from fognn.experiments.tables import label_of
from fognn.models import list_models
from fognn.report.claims import claims_table, read_frames
from fognn.report.forms import FORMS, Table, text_table
from fognn.report.notes import notes_of
from fognn.report.rates import rates_tables
from fognn.training import Predictions
from fognn.utils import checks


def report_table(
    table: str,
    results: Path = Path("results"),
    form: str = "text",
    at: str | None = None,
    over: str | None = None,
    minus: str | None = None,
) -> str:
    """Returns a table of the paper beside the measurement, or one of our own, from the ledgers, in
    one of :obj:`fognn.report.forms.FORMS`; a table of two datasets as two."""
    checks.one_of("table", "form", form, FORMS)
    results = readable(results, "**/*.jsonl" if table == "compare" else "*.jsonl")
    if table in ("claims", "rates", "compare"):
        if minus is not None:
            raise ValueError(f"table: minus needs a table of rows, got table {table!r}")
        if table == "rates":
            found = rates_tables(results)
        elif table == "compare":
            found = [comparisons_table(read_comparisons(results))]
        else:
            found = [claims_table(read_frames(results))]
        return "\n\n".join(one.to(form) for one in found)
    frame = table_frame(table, results, at, over, minus)
    difference = TABLES[table].difference if minus is None else f"row - {minus}"
    if form == "csv":
        return _table_csv(frame, difference)
    found = paper_tables(frame, at, over, difference)
    return "\n\n".join(one.to(form) for one in found)


def paper_tables(
    frame: pd.DataFrame,
    at: str | None = None,
    over: str | None = None,
    difference: str | None = None,
) -> list[Table]:
    r"""Returns a table for each dataset of a table of the paper, or of our own."""
    about = TABLES[frame["table"].iloc[0]]
    at, over = at or about.at, over or about.over
    difference = difference or about.difference
    found = []
    for data, part in frame.groupby("data", sort=False):
        lines: list[Any] = list(part.itertuples())
        changes = dict.fromkeys(line.changed for line in lines if line.changed)
        numbers = {changed: f"[{number}]" for number, changed in enumerate(changes, 1)}
        header, cells = _cells(lines, numbers, difference)
        metric = METRICS[lines[0].metric]
        title = f"{data}: {metric.axis}, {metric.direction}"
        if about.number is None:
            title = f"{title}; not in the paper."
        else:
            title = f"Table {about.number} of the paper, {title}."
        notes = notes_of(lines, at, over, numbers, difference)
        found.append(Table(title, header, cells, notes, range(1, len(header))))
    return found


_CSV = [
    *("table", "data", "network", "ours", "figure", "parameters", "paper_mean", "paper_sd"),
    *("mean", "sd", "sd_over", "interval", "held_out", "held_out_sd", "seeds", "values"),
    *("difference", "off", "paired", "low", "high", "pairs", "epochs", "seconds_per_epoch"),
    "commits",
]


def _table_csv(frame: pd.DataFrame, difference: str) -> str:
    r"""Returns a :func:`table_frame` as csv with all digits; what is not known is empty. The paired
    difference is named as in ``"FOG - host"``."""
    shown = frame[_CSV].copy()
    shown["ours"] = shown["ours"].map({True: "yes", False: "no"})
    shown["seeds"] = [" ".join(map(str, seeds)) for seeds in frame["seeds"]]
    shown["values"] = [" ".join(map(repr, values)) for values in frame["values"]]
    counts = zip(frame["pairs"], frame["paired_over"], strict=True)
    shown["pairs"] = ["" if pd.isna(n) else pluralize(int(n), over) for n, over in counts]
    shown = shown.rename(columns={"paired": difference.lower().replace(" - ", "_minus_")})
    return str(shown.to_csv(index=False, lineterminator="\n")).rstrip("\n")


def _cells(
    lines: Sequence[Any], numbers: Mapping[tuple[str, ...], str], difference: str
) -> tuple[list[str], list[list[str]]]:
    folds = any(pd.notna(line.held_out) for line in lines)
    paired = any(line.host for line in lines)
    printed = any(get_row(line.row).mean is not None for line in lines)
    header = ["network", "parameters", *["paper"] * printed, "here"]
    header += ["held out"] * folds + ["seeds"] + ["here - paper"] * printed
    header += [difference] * paired + ["epochs", "s/epoch"]
    cells = []
    for line in lines:
        paper = get_row(line.row)
        digits = paper.digits
        name = label_of(paper, line.variant)
        name += f" {numbers[line.changed]}" if line.changed else ""
        spread = line.interval if pd.isna(line.sd) else line.sd
        row = [f"{name} †" if line.ours else name, _format(line.parameters, ",.0f")]
        row += [_figure(line.paper_mean, line.paper_sd, digits)] * printed
        row += [_figure(line.mean, spread, digits) if line.entries else "not run"]
        row += [_figure(line.held_out, line.held_out_sd, digits)] * folds
        row += [str(len(line.seeds))]
        row += [_format(line.difference, f"+.{digits}f") + " !" * bool(line.off)] * printed
        row += [_paired(difference_of(line), digits)] * paired
        row += [_format(line.epochs, ",.0f"), _format(line.seconds_per_epoch, ".2f")]
        cells.append(row)
    return header, cells


def _format(value: Any, form: str) -> str:
    return NONE if pd.isna(value) else f"{value:{form}}"


def _figure(mean: float, sd: float, digits: int) -> str:
    text = _format(mean, f".{digits}f")
    return text if pd.isna(mean) or pd.isna(sd) else f"{text} ± {sd:.{digits}f}"


def _paired(found: Difference | None, digits: int) -> str:
    if found is None:
        return NONE
    text = f"{found.value:+.{digits}f}"
    if found.pairs > 1:
        text += f" [{found.low:+.{digits}f}, {found.high:+.{digits}f}]"
    return f"{text}, {found.note}"


# --- comparisons of fognn compare ---

_COMPARE = ["data", "host", "metric", "alone", "with FOG", "FOG − host", "95 % interval", "over"]


def read_comparisons(results: Path) -> dict[str, pd.DataFrame]:
    """Reads the networks of each comparison with the learning rates that were chosen."""
    found = {}
    for file in sorted((results / "compare").glob("*.jsonl")):
        table = COMPARE + file.stem
        choices = choices_of(table, results).entries()
        if entries := chosen_entries(ledger_of(table, results).entries(), choices):
            found[file.stem] = networks_frame(entries)
    return found


def comparisons_table(frames: Mapping[str, pd.DataFrame]) -> Table:
    r"""Returns a row for each host of each comparison: the host, the host with FOG, and their
    difference."""
    cells = []
    for name, frame in frames.items():
        lines: list[Any] = list(frame.itertuples())
        known = {line.network: line for line in lines}
        cells += [[name, *_compared(known[line.host], line)] for line in lines if line.host]
    notes = [
        "The test split at the best validation epoch, mean ± standard deviation; higher is better "
        "for accuracy and ROC-AUC, lower for MAE and RMSE. The difference is between runs of the "
        "same seed (or fold), with its 95 % interval by Student's t; folds share training data, so "
        "that theirs is too narrow. * the interval over three seeds or more does not contain 0."
    ]
    title = "Hosts with and without FOG, at the same number of parameters."
    return Table(title, _COMPARE, cells, notes, range(3, 7))


def _compared(host: Any, fog: Any) -> list[str]:
    metric, found = METRICS[fog.metric], difference_of(fog)
    assert found is not None  # a network with a host has a difference
    figures = [metric.figure(line.mean, line.sd) for line in (host, fog)]
    gap = metric.signed(found.value) + " *" * (fog.verdict in ("better", "worse"))
    interval = metric.interval(found.low, found.high) or NONE
    return [host.network, metric.axis, *figures, gap, interval, pluralize(found.pairs, found.over)]


# --- the list of networks ---


def report_models(pattern: str = "*") -> str:
    r"""Returns a table of the networks, with their numbers of parameters in the paper's tables."""
    names = list_models(pattern)
    if not names:
        raise ValueError(f"pattern must match a network, got {pattern!r}; see fognn models")
    return text_table(("network", "parameters in the paper"), [(n, _sizes(n)) for n in names])


def _sizes(name: str) -> str:
    sizes: dict[str, int] = {}
    for row in rows():
        if name_of(row) == name and row.params is not None:
            # Of a network that stands in two tables, the first counts.
            sizes.setdefault(row.dataset, row.params)
    return ", ".join(f"{data} {size:,}" for data, size in sizes.items()) or "no row"


# --- the answers of a few-shot network ---


def answers_table(found: Predictions) -> str:
    r"""Returns a line for each query: the file, its class, and the probability of each class."""
    header = ["query", "class", *found.names]
    rows = [
        [Path(path).name, best, *(f"{value:.3f}" for value in values)]
        for path, best, *values in found.to_frame().itertuples(index=False)
    ]
    return text_table(header, rows, right=range(2, len(header)))
