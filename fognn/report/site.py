r"""The site made of the ledgers, the page that compares run folders, and that of ``fognn compare``:
folders that open from disk, without a server and without the internet."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.compare import sentence_of
from fognn.experiments.differences import Difference, difference_of, verdict_of
from fognn.experiments.ledger import LedgerEntry, run_entry
from fognn.experiments.results import compare_frame, runs_frame
from fognn.experiments.search import Choice
from fognn.experiments.tables import TABLES
from fognn.experiments.wording import CLAIMS, METRICS, NONE, joined, pluralize
from fognn.report.claims import RULE, Judgement, judge
from fognn.report.pages import check_output, write_pages
from fognn.report.plots import Figure, cost_figure, curves_figure, effect_figure, results_figure
from fognn.report.tables import (
    comparisons_table,
    paper_tables,
    rates_tables,
    read_comparisons,
    read_table,
)
from fognn.report.text import Table, capital, mebibytes

__all__ = ["build_run_report", "build_site", "write_comparisons"]

Page = tuple[str, str, dict[str, Any]]  # name, template, context
_SHORT = {"few-shot": "Few-shot", "cifar-fs": "CIFAR-FS"}
_UPPER = ("pattern", "cluster", "zinc", "tsp")
_CLAIM = ["better, says the paper", "than", "advantage here", "95 % interval", "pairs"]
_CLAIM += ["in the paper", "learning rates"]


def build_site(results: str | Path, output: str | Path) -> Path:
    r"""Writes the site, whole or not at all: a front page with the paper's claims, a page for each
    table, one for each comparison on other data, and one for the runs that are in no table.

    Args:
        results (str or Path): The folder with the ledgers, ``zinc.jsonl`` and the others. Nothing
            else is read.
        output (str or Path): The folder to write. It replaces an earlier report; a folder with
            other files raises a :class:`ValueError`.

    Returns:
        The front page.
    """
    results = Path(results)
    check_output(output)
    if not results.is_dir():
        raise ValueError(f"results must be a folder with ledgers, there is no folder {results}")
    return write_pages(output, _site(results))


def _site(results: Path) -> Iterator[Page]:
    tables = {name: read_table(name, results) for name in TABLES}
    frames = {name: frame for name, (frame, _) in tables.items()}
    comparisons = read_comparisons(results)
    others = _other_runs(results)
    menu = {"index": "Overview"} | {name: _short(name) for name in TABLES}
    menu |= {"compare": "Other data"} if comparisons else {}
    menu |= {"runs": "Other runs"} if others else {}
    judged = judge(frames)
    yield "index", "index", {"menu": menu} | _overview(frames, judged)
    for name, (frame, entries) in tables.items():
        yield name, "table", {"menu": menu} | _table(name, frame, entries, judged, results)
    if comparisons:
        parts = [_comparison(name, *own) for name, own in comparisons.items()]
        yield "compare", "compare", {"menu": menu} | _comparisons(parts, comparisons)
    if others:
        yield "runs", "table", {"menu": menu} | _runs(others, "Runs that are in no table")


def build_run_report(runs: Sequence[str | Path], output: str | Path) -> Path:
    r"""Writes a page that compares finished runs: their table, curves, settings and commands.

    Args:
        runs (sequence of str or Path): The run folders.
        output (str or Path): The folder to write, as in :func:`build_site`.
    """
    check_output(output)
    entries = [run_entry(Path(folder)) for folder in runs]
    labels = list(dict.fromkeys(entry.label for entry in entries))
    data = joined(list(dict.fromkeys(entry.data for entry in entries)))
    title = f"{joined(labels)} on {data}" if len(labels) < 4 else f"Runs on {data}"
    return write_pages(output, [("index", "table", _runs(entries, title))])


def write_comparisons(answers: Any, output: str | Path, title: str = "") -> Path:
    r"""Writes the page of one or several comparisons, side by side.

    Args:
        answers (CompareResult or list): Results of :func:`fognn.compare`.
        output (str or Path): The folder to write, as in :func:`build_site`.
        title (str, optional): The title. (default: the data and the hosts)

    Returns:
        The page.
    """
    answers = answers if isinstance(answers, list | tuple) else [answers]
    parts = [
        _part(number, answer.frame, answer.sentence, answer.choices, answer.notes, answer)
        for number, answer in enumerate(answers)
    ]
    if not title:
        title = parts[0]["title"] if len(parts) == 1 else "Does FOG help?"
    context = {"title": title, "parts": parts, "figures": [f for p in parts for f in p["figures"]]}
    return write_pages(output, [("index", "compare", context | {"table": None})])


# --- the front page ---


def _overview(frames: Mapping[str, pd.DataFrame], judged: Sequence[Judgement]) -> dict[str, Any]:
    counts = {verdict: [j for j in judged if j.verdict == verdict] for verdict in CLAIMS}
    parts = [f"{len(own)} {CLAIMS[verdict]}" for verdict, own in counts.items() if own]
    tables = {True: [], False: []}  # type: dict[bool, list[dict[str, Any]]]
    for name, frame in frames.items():
        rows = frame[~frame["ours"]]
        measured = sum(map(bool, rows["entries"]))
        cells = {
            "name": name,
            "title": capital(TABLES[name].title),
            "measured": f"{measured} of {len(rows)}",
            "runs": sum(map(len, frame["entries"])),
            "says": _says(frame),
        }
        tables[TABLES[name].number is not None].append(cells)
    return {
        "title": "Second-order message passing, measured again",
        "summary": f"Of {pluralize(len(judged), 'claim')} of the paper: {', '.join(parts)}.",
        "rule": RULE,
        "claims": [_claim(one) for one in judged],
        "tables": [("The tables of the paper", tables[True]), ("Our own tables", tables[False])],
    }


def _claim(judged: Judgement) -> dict[str, Any]:
    return {
        "text": judged.claim.text,
        "quote": judged.claim.quote,
        "table": judged.claim.table,
        "kind": judged.verdict.replace(" ", "-"),
        "verdict": judged.text,
        "coverage": judged.coverage,
        "header": _CLAIM,
        "rows": [one.cells() for one in judged.comparisons],
    }


def _says(frame: pd.DataFrame) -> str:
    r"""What the pairs of a table say, in a sentence."""
    pairs = frame[(frame["host"] != "") & ~frame["ours"]]
    if not len(pairs):
        return "No pair is measured yet."
    counts = pairs["verdict"].value_counts()
    what = "control" if TABLES[frame["table"].iloc[0]].difference != "FOG - host" else "pair"
    parts = [f"FOG {verdict} in {count}" for verdict, count in counts.items()]
    return f"{pluralize(len(pairs), what)}: {', '.join(parts)}."


def _short(name: str) -> str:
    return name.upper() if name in _UPPER else _SHORT.get(name, capital(name))


# --- a table ---


def _table(
    name: str,
    frame: pd.DataFrame,
    entries: Sequence[LedgerEntry],
    judged: Sequence[Judgement],
    results: Path,
) -> dict[str, Any]:
    parts = []
    tables = paper_tables(frame, entries)
    for number, (data, own) in enumerate(frame.groupby("data", sort=False)):
        figures = [results_figure(own, f"results-{number}"), effect_figure(own, f"effect-{number}")]
        if name == "widths":
            figures.append(cost_figure(own, f"cost-{number}", "parameters", "parameters"))
        elif name != "controls":  # which has too many networks of nearly equal times
            unit = "seconds an epoch"
            figures.append(cost_figure(own, f"cost-{number}", "seconds_per_epoch", unit))
        figures.append(_curves(own, f"curves-{number}"))
        runs = [entry for own_entries in own["entries"] for entry in own_entries]
        part = {"title": data if len(tables) > 1 else "", "table": tables[number]}
        figures = [figure for figure in figures if figure is not None]
        parts.append(part | {"figures": figures, "runs": _run_table(runs)})
    number = TABLES[name].number
    title = capital(TABLES[name].title)
    more = rates_tables(results) if name == "zinc" else []
    return {
        "title": f"Table {number}: {title}" if number else f"{title} (not in the paper)",
        "summary": _says(frame),
        "claims": [_claim(one) for one in judged if one.claim.table == name],
        "parts": parts,
        "more": more,
        "figures": [figure for part in parts for figure in part["figures"]],
    }


def _curves(frame: pd.DataFrame, name: str) -> Figure | None:
    r"""Each network with FOG beside its host, or by itself where there is none."""
    lines = {line.network: line for line in frame.itertuples() if line.entries}
    if not lines:
        return None
    hosts = {line.host for line in lines.values()}
    groups = {}
    for label, line in lines.items():
        if line.host in lines:
            pair = {line.host: lines[line.host].entries, label: line.entries}
            groups[f"{line.host} and {label}"] = pair
        elif label not in hosts:
            groups[label] = {label: line.entries}
    pairs = dict(sorted(groups.items(), key=lambda item: -len(item[1])))  # pairs come first
    return curves_figure(pairs, METRICS[frame["metric"].iloc[0]], name)


def _run_table(entries: Sequence[LedgerEntry]) -> Table:
    header = ["network", "seed", "validation", "test", "best epoch", "epochs", "s/epoch"]
    header += ["memory", "commit", "command"]
    rows = []
    for entry in entries:
        result, metric = entry.result, METRICS[entry.result["metric"]]
        test = result["test"]
        cells = [entry.label, str(entry.seed), metric.number(result["val"]["best"]["items"])]
        cells += [metric.number(test["best"]["items"]) if test else NONE]
        cells += [str(result["best_epoch"]), str(result["epochs"])]
        cells += [f"{result['seconds_per_epoch']:.2f}", mebibytes(result.get("peak_memory"))]
        rows.append([*cells, str(result.get("commit") or NONE)[:8], str(result["command"])])
    note = "Validation and test: at the best validation epoch, over all items."
    return Table("All runs, and the command that repeats each", header, rows, [note])


# --- runs ---


def _other_runs(results: Path) -> list[LedgerEntry]:
    from fognn.experiments.ledger import ledger_of

    return ledger_of("runs", results).entries()


def _runs(entries: Sequence[LedgerEntry], title: str) -> dict[str, Any]:
    r"""The page that compares runs, with a part for each dataset and metric."""
    groups: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.data, entry.result["metric"]), []).append(entry)
    parts, says = [], []
    for number, ((data, kind), own) in enumerate(groups.items()):
        frame = runs_frame(own)
        says += [_finding(line) for line in frame.itertuples() if line.host]
        networks = {line.network: line.entries for line in frame.itertuples()}
        figures = [
            results_figure(frame, f"results-{number}"),
            effect_figure(frame, f"effect-{number}"),
            curves_figure({"all": networks}, METRICS[kind], f"curves-{number}"),
        ]
        parts.append(
            {
                "title": data if len(groups) > 1 else "",
                "table": _network_table(frame, f"{data}: {METRICS[kind].axis}"),
                "figures": [figure for figure in figures if figure is not None],
                "runs": _run_table(own),
                "settings": _settings(frame),
            }
        )
    return {
        "title": title,
        "summary": " ".join(says) or f"{pluralize(len(entries), 'run')}.",
        "claims": [],
        "parts": parts,
        "more": [],
        "figures": [figure for part in parts for figure in part["figures"]],
    }
