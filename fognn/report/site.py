r"""The site made of the ledgers, the page that compares run folders, and that of ``fognn compare``:
folders that open from disk, without a server and without the internet."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import sentence_of
from fognn.experiments.ledger import LedgerEntry, ledger_of, readable, run_entry
from fognn.experiments.results import compare_frame
from fognn.experiments.search import Choice
from fognn.experiments.tables import TABLES
from fognn.experiments.wording import CLAIMS, METRICS, NONE, joined, pluralize
from fognn.report.claims import RULE, Judgement, judge
from fognn.report.pages import check_output, write_pages
from fognn.report.plots import Figure, cost_figure, curves_figure, effect_figure, results_figure
from fognn.report.runs import finding, network_rows, runs_frame, settings_of
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
    results = readable(results)
    check_output(output)
    if not results.is_dir():
        raise ValueError(f"results must be a folder with ledgers, there is no folder {results}")
    return write_pages(output, _site(results))


def _site(results: Path) -> Iterator[Page]:
    tables = {name: read_table(name, results) for name in TABLES}
    frames = {name: frame for name, (frame, _) in tables.items()}
    comparisons = read_comparisons(results)
    others = ledger_of("runs", results).entries()
    menu = {"index": "Overview"} | {name: _short(name) for name in TABLES}
    menu |= {"compare": "Other data"} if comparisons else {}
    menu |= {"runs": "Other runs"} if others else {}
    judged = judge(frames)
    yield "index", "index", {"menu": menu} | _overview(frames, judged)
    for name, (frame, entries) in tables.items():
        yield name, "table", {"menu": menu} | _table(name, frame, entries, judged, results)
    if comparisons:
        title, parts = "FOG on other data", []
        for number, (runs, choices) in enumerate(comparisons.values()):
            frame = compare_frame(runs)
            part = _comparison(number, frame, sentence_of(frame))
            parts.append(part | {"searches": _searches(choices), "notes": []})
        table = comparisons_table(comparisons)
        context = _compare_context(title, parts) | {"menu": menu, "table": table}
        yield "compare", "compare", context
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
    parts = []
    for number, answer in enumerate(answers):
        part = _comparison(number, answer.frame, answer.sentence)
        parts.append(part | {"searches": _searches(answer.choices), "notes": answer.notes})
    if not title:
        title = parts[0]["title"] if len(parts) == 1 else "Does FOG help?"
    return write_pages(output, [("index", "compare", _compare_context(title, parts))])


def _compare_context(title: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    figures = [figure for part in parts for figure in part["figures"]]
    return {"title": title, "parts_": parts, "figures": figures, "table": None}


# --- the front page ---


def _overview(frames: Mapping[str, pd.DataFrame], judged: Sequence[Judgement]) -> dict[str, Any]:
    counts = {verdict: [j for j in judged if j.verdict == verdict] for verdict in CLAIMS}
    parts = [f"{CLAIMS[verdict]}: {len(own)}" for verdict, own in counts.items() if own]
    total = pluralize(len(judged), "claim")
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
        "summary": f"{total} of the paper. {capital('; '.join(parts[::-1]))}.",
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
    parts = [f"{verdict} in {count}" for verdict, count in counts.items()]
    return f"{pluralize(len(pairs), what)}: FOG is {', '.join(parts)}."


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
    parts: list[dict[str, Any]] = []
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
    printed, title = TABLES[name].number, capital(TABLES[name].title)
    more = rates_tables(results) if name == "zinc" else []
    return {
        "title": f"Table {printed}: {title}" if printed else f"{title} (not in the paper)",
        "summary": _says(frame),
        "claims": [_claim(one) for one in judged if one.claim.table == name],
        "parts_": parts,
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


def _runs(entries: Sequence[LedgerEntry], title: str) -> dict[str, Any]:
    r"""The page that compares runs, with a part for each dataset and metric."""
    groups: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.data, entry.result["metric"]), []).append(entry)
    parts, says = [], []
    for number, ((data, _), own) in enumerate(groups.items()):
        frame = runs_frame(own)
        says += [finding(line, frame) for line in frame.itertuples() if line.host]
        part = _frame_part(frame, data, number)
        parts.append(part | {"title": data if len(groups) > 1 else ""})
    return {
        "title": title,
        "summary": " ".join(says) or f"{pluralize(len(entries), 'run')}.",
        "claims": [],
        "parts_": parts,
        "more": [],
        "figures": [figure for part in parts for figure in part["figures"]],
    }


def _frame_part(frame: pd.DataFrame, data: str, number: int) -> dict[str, Any]:
    r"""Plots and tables of networks that are no rows of a table."""
    metric = METRICS[frame["metric"].iloc[0]]
    names = [
        f"{line.network} ({line.note})" if getattr(line, "note", "") else line.network
        for line in frame.itertuples()
    ]
    networks = dict(zip(names, frame["entries"], strict=True))
    figures = [
        effect_figure(frame, f"effect-{number}"),
        results_figure(frame, f"results-{number}"),
        curves_figure({"all": networks}, metric, f"curves-{number}"),
    ]
    header, rows = network_rows(frame)
    notes = [f"{capital(metric.direction)}; ± is the standard deviation over seeds (or folds)."]
    if (frame["paired_over"] == "fold").any():
        notes.append("Folds share training data, so their intervals are too narrow.")
    entries = [entry for own in frame["entries"] for entry in own]
    settings = [settings_of(own[0]) for own in frame["entries"]]
    keys = dict.fromkeys(key for own in settings for key in own)
    values = [[key, *(own.get(key, NONE) for own in settings)] for key in keys]
    return {
        "table": Table(f"{data}: {metric.axis}", header, rows, notes),
        "figures": [figure for figure in figures if figure is not None],
        "runs": _run_table(entries),
        "settings": (["setting", *names], values),
    }


# --- comparisons ---


def _comparison(number: int, frame: pd.DataFrame, sentence: str) -> dict[str, Any]:
    data = frame["data"].iloc[0] if len(frame) else "no runs"
    hosts = joined(list(dict.fromkeys(frame[frame["host"] != ""]["host"])))
    verdicts = [
        (line.verdict, f"{line.network} against {line.host}: {line.verdict}")
        for line in frame.itertuples()
        if line.host
    ]
    part = _frame_part(frame, data, number)
    title = f"{hosts}, with and without FOG, on {data}"
    return part | {"title": title, "sentence": sentence, "verdicts": verdicts}


def _searches(choices: Sequence[Choice]) -> Table | None:
    if not choices:
        return None
    rates = sorted({trial.lr for choice in choices for trial in choice.tried}, reverse=True)
    rows = []
    for choice in choices:
        metric = METRICS[choice.metric]
        scores = {
            trial.lr: "failed" if trial.score is None else metric.number(trial.score)
            for trial in choice.tried
        }
        cells = [scores.get(rate, "") + " *" * (rate == choice.lr) for rate in rates]
        rows.append([choice.label, *cells])
    note = (
        "Each network tried the same learning rates with the first seed. The one with the best "
        "validation metric at its best epoch, marked with a star, was taken for all seeds. The "
        "test split was not used."
    )
    title = f"Validation {METRICS[choices[0].metric].axis} of each learning rate"
    return Table(title, ["network", *(f"{rate:g}" for rate in rates)], rows, [note])
