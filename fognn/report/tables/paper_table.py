r"""A table of the paper beside the measurement, or a table of our own: the command ``fognn
table``."""

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from fognn.experiments.comparison import TableLine, compare
from fognn.experiments.ledger import Ledger
from fognn.experiments.search import table_entries
from fognn.experiments.tables import TABLES, label_of
from fognn.report.metric import Metric, metric_of
from fognn.report.tables.claims import claims_table
from fognn.report.tables.comparisons import comparisons_table
from fognn.report.tables.forms import in_form
from fognn.report.tables.notes import notes_of, numbers_of
from fognn.report.tables.rates import rates_table
from fognn.report.text import NONE, pluralize
from fognn.utils import checks

__all__ = ["FORMS", "report_table"]

FORMS = ("text", "markdown", "latex", "csv")
_OTHERS = {"claims": claims_table, "rates": rates_table, "compare": comparisons_table}


def report_table(
    table: str,
    results: Path = Path("results"),
    form: str = "text",
    at: str | None = None,
    over: str | None = None,
    minus: str | None = None,
) -> str:
    r"""A table of the paper beside the measurement, or a table of our own.

    It reads only the ledger. A table of two datasets is printed as two.

    Args:
        table (str): One of :obj:`fognn.experiments.tables.TABLES`; ``"claims"``, for the paper's
        claims
            and whether they hold; ``"rates"``, for what is due to learning rates; or ``"compare"``,
            for the comparisons of ``fognn compare``, which are always at the best epoch and over
            items.
        results (Path, optional): The folder of the ledgers. (default: :obj:`results`)
        form (str, optional): :obj:`"text"`, :obj:`"markdown"`, :obj:`"latex"` (with the package
            ``booktabs``), or :obj:`"csv"`, with all digits.
        at (str, optional): Which epoch's test figure: :obj:`"last"`, or the :obj:`"best"` by
            validation. (default: that of the table, :class:`fognn.experiments.tables.Table`)
        over (str, optional): Which average: over :obj:`"batches"`, as in the public benchmark, or
            over :obj:`"items"`. (default: that of the table)
        minus (str, optional): As in :func:`fognn.experiments.comparison.compare`.
            (default: :obj:`None`)
    """
    checks.one_of("report_table", "form", form, FORMS)
    if table in _OTHERS:
        if minus is not None:
            raise ValueError(f"report_table: minus needs a table of rows, got table {table!r}")
        return _OTHERS[table](Path(results), form)
    checks.known("report_table", "table", table, TABLES)
    at, over = TABLES[table].at if at is None else at, TABLES[table].over if over is None else over
    entries = Ledger(Path(results) / f"{table}.jsonl").entries()
    lines = compare(table, table_entries(Path(results), table), at, over, minus)
    difference = TABLES[table].difference if minus is None else f"row - {minus}"
    if form == "csv":
        return _csv(lines, at, over, difference)
    parts = []
    for data, group in groupby(lines, key=lambda line: line.paper.dataset):
        part = list(group)
        numbers = numbers_of(part)
        header, rows = _cells(part, numbers, difference)
        metric = metric_of(part[0])
        title = _title(TABLES[table].number, data, metric)
        # Trials of other datasets of the table count in their own part.
        own = [entry for entry in entries if entry.row in {line.row for line in part}]
        hidden = len(own) - sum(len(line.entries) for line in part)
        notes = notes_of(part, at, over, hidden, numbers, difference)
        parts.append(in_form(form, title, header, rows, notes, range(1, len(header))))
    return "\n\n".join(parts)


def _title(number: int | None, data: str, metric: Metric) -> str:
    text = f"{data}: {metric.axis}, {metric.direction}"
    return (
        f"{text}; not in the paper." if number is None else f"Table {number} of the paper, {text}."
    )


def _cells(
    lines: Sequence[TableLine], numbers: Mapping[tuple[str, ...], str], difference: str
) -> tuple[list[str], list[list[str]]]:
    folds = any(line.held_out is not None for line in lines)
    paired = any(line.paired for line in lines)
    printed = any(line.paper.mean is not None for line in lines)
    named = difference != TABLES[lines[0].table].difference
    header = ["network", "parameters", *["paper"] * printed, "here"]
    header += ["held out"] * folds + ["seeds"] + ["here - paper"] * printed
    header += [difference] * paired + ["epochs", "s/epoch"]
    rows = []
    for line in lines:
        digits = line.paper.digits
        name = label_of(line.paper, line.variant)
        name += f" {numbers[line.changed]}" if line.changed else ""
        row = [f"{name} †" if line.ours else name, _count(line.parameters)]
        row += [_figure(line.paper_mean, line.paper_sd, digits)] * printed
        row += [_figure(line.mean, line.plus_minus, digits) if line.entries else "not run"]
        row += [_figure(line.held_out, line.held_out_sd, digits)] * folds
        row += [str(len(line.seeds))]
        row += [_gap(line.difference, digits) + " !" * bool(line.off)] * printed
        row += [_paired(line, digits) or (NONE if named else _unpaired(line))] * paired
        row += [_count(line.epochs), _plain(line.seconds_per_epoch)]
        rows.append(row)
    return header, rows


def _figure(mean: float | None, sd: float | None, digits: int) -> str:
    if mean is None:
        return NONE
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def _gap(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:+.{digits}f}"


def _count(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def _plain(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _paired(line: TableLine, digits: int) -> str:
    if line.paired is None:
        return ""
    paired, interval = line.paired, line.paired.interval
    text = _gap(paired.difference, digits)
    if interval is not None:
        text += f" [{_gap(interval[0], digits)}, {_gap(interval[1], digits)}]"
    return f"{text}, {paired.note}"


def _unpaired(line: TableLine) -> str:
    row = line.paper
    compared = row.reference or (row.model.endswith("+FOG") and not row.control)
    return "no common run" if compared and line.entries else NONE


def _csv(lines: Sequence[TableLine], at: str, over: str, difference: str) -> str:
    text = io.StringIO()
    name = difference.lower().replace(" - ", "_minus_")
    rows = [_record(line, at, over, name) for line in lines]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _record(line: TableLine, at: str, over: str, difference: str) -> dict[str, object]:
    r"""All that is known of a line, with all digits; what is not known is empty."""
    validation = any(entry.result["test"] is None for entry in line.entries)
    figure = "val.best.items" if validation else f"test.{at}.{over}"
    paired = line.paired
    low, high = (None, None) if paired is None else paired.interval or (None, None)
    return {
        "table": line.table,
        "data": line.paper.dataset,
        "network": line.label,
        "ours": "yes" if line.ours else "no",
        "figure": figure if line.entries else None,
        "parameters": line.parameters,
        "paper_mean": line.paper_mean,
        "paper_sd": line.paper_sd,
        "mean": line.mean,
        "sd": line.sd,
        "sd_over": None if line.sd is None else "folds" if line.folds else "seeds",
        "interval": line.interval,
        "held_out": line.held_out,
        "held_out_sd": line.held_out_sd,
        "seeds": " ".join(map(str, line.seeds)),
        "values": " ".join(map(repr, line.values)),
        "difference": line.difference,
        "off": " and ".join(line.off),
        difference: None if paired is None else paired.difference,
        "low": low,
        "high": high,
        "pairs": None if paired is None else pluralize(paired.pairs, paired.over),
        "epochs": line.epochs,
        "seconds_per_epoch": line.seconds_per_epoch,
        "commits": " ".join(dict.fromkeys(str(e.result.get("commit")) for e in line.entries)),
    }
