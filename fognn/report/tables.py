r"""The tables of results: the commands ``fognn table`` and ``fognn models``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fognn.experiments.differences import (
    METRICS,
    NONE,
    Difference,
    difference_of,
    joined,
    pluralize,
)
from fognn.experiments.ledger import COMPARE, ledger_of, readable
from fognn.experiments.results import networks_frame, table_frame
from fognn.experiments.rows import TABLES, get_row, name_of, rows
from fognn.experiments.search import choices_of, chosen_entries
from fognn.experiments.tables import label_of
from fognn.models import list_models
from fognn.report.claims import claims_table, read_frames
from fognn.report.forms import FORMS, Table, text_table
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
    if table in ("claims", "rates", "compare") and minus is not None:
        raise ValueError(f"table: minus needs a table of rows, got table {table!r}")
    if table == "claims":
        found = [claims_table(read_frames(results))]
    elif table == "rates":
        found = rates_tables(results)
    elif table == "compare":
        found = [comparisons_table(read_comparisons(results))]
    else:
        frame = table_frame(table, results, at, over, minus)
        difference = TABLES[table].difference if minus is None else f"row - {minus}"
        if form == "csv":
            return _table_csv(frame, difference)
        found = paper_tables(frame, difference)
    return "\n\n".join(one.to(form) for one in found)


def paper_tables(frame: pd.DataFrame, difference: str | None = None) -> list[Table]:
    r"""Returns a table for each dataset of a table of the paper, or of our own."""
    about = TABLES[frame["table"].iloc[0]]
    difference = difference or about.difference
    found = []
    for data, part in frame.groupby("data", sort=False):
        lines: list[Any] = list(part.itertuples())
        changes = dict.fromkeys(line.changed for line in lines if line.changed)
        numbers = {changed: f"[{number}]" for number, changed in enumerate(changes, 1)}
        header, cells = _cells(lines, numbers, difference)
        metric = METRICS[lines[0].metric]
        figures = f"{data}: {metric.axis}, {metric.direction}"
        title = f"{figures}; not in the paper."
        if about.number is not None:
            title = f"Table {about.number} of the paper, {figures}."
        notes = _notes(lines, numbers, difference)
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


# --- the notes below a table ---

_EPOCHS = {"last": "the last epoch", "best": "the epoch with the best validation metric"}
_AVERAGES = {
    "batches": "averaged over batches, as in the public benchmark",
    "items": "over all items at once",
}
# Where the paper's equations are not what its figures, or its parameter counts, say.
_VARIANTS = {
    "GCN": "The paper's figures of GCN are quoted from the public benchmark, which takes the mean "
    "over neighbours; GCN+FOG has the symmetric norm of the paper's equation here, and is compared "
    "with GCN of the same norm where that was run. Which norm the printed GCN+FOG has is not "
    "decided.",
    "GraphSAGE": "GraphSAGE takes the maximum over neighbours, as the parameter counts say and "
    "the paper's equation does not.",
}
_FOLDS = (
    "Here: on the held-out folds at the best epoch of their mean curve, over all items, as in the "
    "paper; that epoch was chosen on these folds, so the figure is optimistic. Held out: at the "
    "last epoch, which nothing chose. Folds share their training graphs, so an interval over folds "
    "is too narrow."
)
_EPISODES = (
    "±, with one seed: the 95 % interval over the test episodes, the paper's form, which says "
    "nothing about other seeds. Parameters are those of the whole network; the paper counts its "
    "graph part."
)


def _notes(
    lines: Sequence[Any], numbers: Mapping[tuple[str, ...], str], difference: str
) -> list[str]:
    r"""Returns sentences: which figure is shown, over what, what is ours, and what limits it."""
    measured = [line for line in lines if line.entries]
    if not measured:
        return [f"Nothing is measured yet: see fognn reproduce {lines[0].table} --help."]
    papers = [get_row(line.row) for line in lines]
    notes = []
    tested = [line.figure for line in measured if line.figure.startswith("test")]
    if tested:
        _, at, over = tested[0].split(".")
        notes.append(f"Here: on the test split at {_EPOCHS[at]}, {_AVERAGES[over]}.")
    fractions = sorted({paper.fraction for paper in papers if paper.fraction})
    if fractions:
        parts = joined([f"{100 * fraction:g} %" for fraction in fractions])
        notes.append(f"Trained and tested on the first {parts} of each split.")
    if any(line.folds for line in measured):
        notes.append(_FOLDS)
    else:
        notes.append("±: s.d. over seeds; one seed has none, and a difference may be chance.")
    if any(paper.few_shot for paper in papers):
        notes.append(_EPISODES)
    paired = [line for line in lines if line.host]
    if paired:
        notes.append(
            f"{difference}: mean difference over the runs that both have, with a 95 % interval by "
            "Student's t."
        )
    rates = {line.network: line.lr for line in lines}
    unequal = [
        f"{line.network} {line.lr:g} and {rates[line.host]:g}"
        for line in paired
        if line.lr != rates[line.host]
    ]
    if unequal:
        notes.append(
            "These pairs have unequal learning rates, so that their difference has more than one "
            f"cause: {'; '.join(unequal)}."
        )
    of_the_paper = any(paper.table is not None for paper in papers)
    ours = "†: ours, not in the paper: a variant, or other settings."
    if any(line.ours for line in lines):
        notes.append(ours if of_the_paper else "†: other settings than the row's.")
    hosts = {paper.model.removesuffix("+FOG") for paper in papers if of_the_paper}
    notes += [text for name, text in _VARIANTS.items() if name in hosts]
    if any(line.off for line in lines):
        notes.append("!: more than 3 printed s.d., or 5 %, away from the paper; docs/results.md.")
    return [*notes, *(f"{number}: {', '.join(changed)}." for changed, number in numbers.items())]


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
        lines: dict[str, Any] = {line.network: line for line in frame.itertuples()}
        pairs = [(lines[line.host], line) for line in lines.values() if line.host]
        cells += [[name, *_compared(host, fog)] for host, fog in pairs]
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
