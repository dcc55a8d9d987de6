r"""The site made of the ledgers, the page that compares run folders, and that of ``fognn compare``:
folders that open from disk, without a server and without the internet."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import (
    METRICS,
    NONE,
    joined,
    networks_table,
    pluralize,
    sentence_of,
)
from fognn.experiments.ledger import LedgerEntry, ledger_entry, ledger_of, readable
from fognn.experiments.results import networks_frame
from fognn.experiments.rows import TABLES
from fognn.report.claims import CLAIMS, RULE, Judgement, judge, read_frames
from fognn.report.data import statistics_rows
from fognn.report.forms import Table, capital, write_pages
from fognn.report.plots import curves_figure, effect_figure, results_figure
from fognn.report.rates import rates_tables
from fognn.report.tables import comparisons_table, paper_tables, read_comparisons

Page = tuple[str, str, dict[str, Any]]  # name, template, context
Part = dict[str, Any]  # of a page: a table, figures, runs


def build_site(results: str | Path, output: str | Path) -> Path:
    """Writes the site of the ledgers: a front page with the paper's claims, a page for each table,
    one for the comparisons on other data, and one for the runs that are in no table."""
    return write_pages(output, _site(readable(results, "**/*.jsonl")))


def _site(results: Path) -> Iterator[Page]:
    tables = read_frames(results)
    comparisons = read_comparisons(results)
    others = ledger_of("runs", results).entries()
    judged = judge(tables)
    yield "index", "index", _overview(tables, judged)
    for name, frame in tables.items():
        yield name, "table", _table_page(name, frame, judged, results)
    if comparisons:
        table = comparisons_table(comparisons)
        parts = [_comparison(frame) for frame in comparisons.values()]
        context = {"title": "FOG on other data", "parts_": parts, "table": table}
        yield "compare", "compare", context
    if others:
        yield "runs", "table", _runs_page(others, "Runs that are in no table")


def build_run_report(runs: Sequence[str | Path], output: str | Path) -> Path:
    """Writes a page that compares finished runs: their table, curves, settings and commands."""
    entries = [ledger_entry(Path(folder)) for folder in runs]
    labels = list(dict.fromkeys(entry.label for entry in entries))
    data = joined(list(dict.fromkeys(entry.data for entry in entries)))
    title = f"{joined(labels)} on {data}" if len(labels) < 4 else f"Runs on {data}"
    return write_pages(output, [("index", "table", _runs_page(entries, title))])


def write_comparisons(answers: Any, output: str | Path, title: str = "") -> Path:
    """Writes the page of one or several results of :func:`fognn.compare`, side by side."""
    answers = answers if isinstance(answers, list | tuple) else [answers]
    parts = [_comparison(one.frame, one.notes, one.about) for one in answers]
    title = title or (parts[0]["title"] if len(parts) == 1 else "Does FOG help?")
    context = {"title": title, "parts_": parts, "table": None}
    return write_pages(output, [("index", "compare", context)])


# --- the front page ---


def _overview(frames: Mapping[str, pd.DataFrame], judged: Sequence[Judgement]) -> dict[str, Any]:
    counts = pd.Series([CLAIMS[one.verdict] for one in judged]).value_counts(sort=False)
    parts = "; ".join(f"{verdict}: {count}" for verdict, count in counts.items())
    tables: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for name, frame in frames.items():
        rows = frame[~frame["ours"]]
        line = {
            "name": name,
            "title": capital(TABLES[name].title),
            "measured": f"{sum(map(bool, rows['entries']))} of {len(rows)}",
            "runs": sum(map(len, frame["entries"])),
            "says": _says(frame),
        }
        tables[TABLES[name].number is not None].append(line)
    return {
        "title": "Second-order message passing, measured again",
        "summary": f"{pluralize(len(judged), 'claim')} of the paper. {capital(parts)}.",
        "rule": RULE,
        "claims": judged,
        "tables": [("The tables of the paper", tables[True]), ("Our own tables", tables[False])],
    }


def _says(frame: pd.DataFrame) -> str:
    r"""Returns what the pairs of a table say, in a sentence."""
    pairs = frame[(frame["host"] != "") & ~frame["ours"]]
    if not len(pairs):
        return "No pair is measured yet."
    what = "control" if TABLES[frame["table"].iloc[0]].difference != "FOG - host" else "pair"
    counts = pairs["verdict"].value_counts()
    parts = joined([f"{verdict} in {count}" for verdict, count in counts.items()])
    rates = dict(zip(frame["network"], frame["lr"], strict=True))
    unequal = (pairs["lr"] != pairs["host"].map(rates)).sum()
    note = f" Learning rates are unequal in {unequal}." if unequal else ""
    return f"{pluralize(len(pairs), what)}: FOG is {parts}.{note}"


# --- a table ---


def _table_page(
    name: str, frame: pd.DataFrame, judged: Sequence[Judgement], results: Path
) -> dict[str, Any]:
    groups = list(frame.groupby("data", sort=False))
    parts = [
        _part(own, table, data if len(groups) > 1 else "")
        for (data, own), table in zip(groups, paper_tables(frame), strict=True)
    ]
    printed, title = TABLES[name].number, capital(TABLES[name].title)
    return {
        "title": f"Table {printed}: {title}" if printed else f"{title} (not in the paper)",
        "parts_": parts,
        "summary": _says(frame),
        "claims": [one for one in judged if one.table == name],
        "more": rates_tables(results) if name == "zinc" else [],
    }


def _part(frame: pd.DataFrame, table: Table, title: str) -> Part:
    r"""Returns a table with the plots of its networks and all their runs."""
    figures = [effect_figure(frame), results_figure(frame)]
    if any(frame["entries"]):
        figures.append(curves_figure(frame))
    runs = _run_table([entry for own in frame["entries"] for entry in own])
    shown = [figure for figure in figures if figure is not None]
    return {"title": title, "table": table, "figures": shown, "runs": runs}


def _run_table(entries: Sequence[LedgerEntry]) -> Table:
    header = ["network", "seed", "validation", "test", "best epoch", "epochs", "s/epoch"]
    header += ["commit", "command"]
    rows = []
    for entry in entries:
        result, metric = entry.result, METRICS[entry.result["metric"]]
        test = result["test"]
        cells = [entry.label, str(entry.seed), metric.number(result["val"]["best"]["items"])]
        cells += [metric.number(test["best"]["items"]) if test else NONE]
        cells += [str(result["best_epoch"]), str(result["epochs"])]
        cells += [f"{result['seconds_per_epoch']:.2f}"]
        rows.append([*cells, str(result.get("commit") or NONE)[:8], str(result["command"])])
    note = "Validation and test: at the best validation epoch, over all items."
    return Table("All runs, and the command that repeats each", header, rows, [note])


# --- runs and comparisons ---


def _runs_page(entries: Sequence[LedgerEntry], title: str) -> dict[str, Any]:
    r"""Returns the page that compares runs, with a part for each dataset and metric."""
    groups: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.data, entry.result["metric"]), []).append(entry)
    parts, says = [], []
    for (data, _), own in groups.items():
        frame = networks_frame(own, "last", "batches")
        says += [sentence_of(frame)] if (frame["host"] != "").any() else []
        parts.append(_networks(frame, data if len(groups) > 1 else ""))
    summary = " ".join(says) or f"{pluralize(len(entries), 'run')}."
    return {"title": title, "parts_": parts, "summary": summary, "claims": [], "more": []}


def _networks(frame: pd.DataFrame, title: str) -> Part:
    r"""Returns the part of networks that are no rows of a table."""
    metric, cells = METRICS[frame["metric"].iloc[0]], networks_table(frame)
    notes = [f"{capital(metric.direction)}; ± is the standard deviation over seeds (or folds)."]
    if (frame["paired_over"] == "fold").any():
        notes.append("Folds share training data, so their intervals are too narrow.")
    name = f"{frame['data'].iloc[0]}: {metric.axis}"
    table = Table(name, list(cells), cells.to_numpy().tolist(), notes)
    return _part(frame, table, title)


def _comparison(
    frame: pd.DataFrame, notes: Sequence[str] = (), about: Mapping[str, Any] | None = None
) -> Part:
    lines = [line for line in frame.itertuples() if line.host]
    hosts = joined(list(dict.fromkeys(line.host for line in lines)))
    verdicts = [(o.verdict, f"{o.network} against {o.host}: {o.verdict}") for o in lines]
    title = f"{hosts}, with and without FOG, on {frame['data'].iloc[0]}"
    return _networks(frame, title) | {
        "sentence": sentence_of(frame),
        "verdicts": verdicts,
        "notes": notes,
        "about": statistics_rows(dict(about or {})),
    }
