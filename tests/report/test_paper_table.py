"""A table of the paper beside the measurement, and its notes."""

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import entry, fold_entry

from fognn.experiments.comparison import TableLine, compare
from fognn.experiments.ledger import Ledger, LedgerEntry
from fognn.experiments.rows import rows, rows_of
from fognn.experiments.search import choices_of, choose, grid
from fognn.experiments.tables import TABLES, plan
from fognn.report.metric import metric_of
from fognn.report.tables.notes import commits_of, notes_of, numbers_of
from fognn.report.tables.paper_table import FORMS, report_table

# --- result table ---


def add(results: Path, table: str, model: str, figures: list[float], **options: Any) -> None:
    ledger = Ledger(results / f"{table}.jsonl")
    for run, figure in zip(plan(table, [model], len(figures), **options), figures, strict=True):
        ledger.add(entry(run, figure))


def cells(text: str, label: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    found = [line for line in text.split("\n") if line.startswith(f"| {label} |")]
    assert len(found) == 1, text
    return found[0].strip("| ").split(" | ")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("form", FORMS)
def test_an_empty_ledger_shows_the_paper(tmp_path: Path, table: str, form: str) -> None:
    text = report_table(table, tmp_path, form)
    number = TABLES[table].number
    for row in rows_of(table):
        assert row.model in text
        assert row.mean is None or f"{row.mean:.2f}"[:-1] in text
    if form != "csv":
        assert (f"Table {number} of the paper" in text) == (number is not None)
        assert "Nothing is measured yet" in text
    assert not list(tmp_path.iterdir())


def test_a_table(tmp_path: Path) -> None:
    add(tmp_path, "zinc", "gcn", [0.46, 0.44])
    add(tmp_path, "zinc", "gcn+fog", [0.30, 0.32, 0.31])
    add(tmp_path, "zinc", "graphsage-mean", [0.42])
    add(tmp_path, "zinc", "graphsage+fog-mean", [0.35])
    text = report_table("zinc", tmp_path, "markdown")
    assert "**Table 3 of the paper, ZINC: MAE, lower is better.**" in text
    assert cells(text, "GCN") == [
        "GCN", "103,077", "0.459 ± 0.006", "0.450 ± 0.014", "2", "-0.009", "–", "2", "1.50",
    ]  # fmt: skip
    assert cells(text, "GCN+FOG")[2:7] == [
        "0.307 ± 0.013", "0.310 ± 0.010", "3", "+0.003", "-0.140 [-0.394, +0.114], 2 seeds",
    ]  # fmt: skip
    assert cells(text, "GraphSAGE (aggr=mean) †")[2:7] == ["–", "0.420", "1", "–", "–"]
    assert cells(text, "GraphSAGE+FOG (aggr=mean) †")[6] == "-0.070, 1 seed: no interval"
    assert cells(text, "GIN") == ["GIN", "–", "0.387 ± 0.015", "not run", "0", *"––––"]
    assert "Rows are of 1 to 3 seeds." in " ".join(text.split())
    assert report_table("zinc", tmp_path).startswith("Table 3 of the paper, ZINC: MAE")


def test_the_paper_against_itself(tmp_path: Path) -> None:
    """Runs that give exactly the printed means are nowhere off; others are."""
    for run in plan("zinc", ours=False):
        Ledger(tmp_path / "zinc.jsonl").add(entry(run, run.paper.mean))
    assert "!" not in report_table("zinc", tmp_path)
    add(tmp_path, "zinc", "gin", [0.41])
    text = report_table("zinc", tmp_path, "markdown")
    assert cells(text, "GIN")[5] == "+0.023 !"
    assert cells(text, "GIN+FOG")[6] == "-0.009, 1 seed: no interval"


@pytest.mark.parametrize(
    ("at", "over", "wanted"),
    [("last", "batches", "0.400"), ("last", "items", "0.401"), ("best", "batches", "0.402"),
     ("best", "items", "0.403")],
)  # fmt: skip
def test_which_figure(tmp_path: Path, at: str, over: str, wanted: str) -> None:
    add(tmp_path, "zinc", "gin", [0.4])
    assert cells(report_table("zinc", tmp_path, "markdown", at, over), "GIN")[3] == wanted
    records = csv.DictReader(io.StringIO(report_table("zinc", tmp_path, "csv", at, over)))
    record = next(line for line in records if line["network"] == "GIN")
    assert record["figure"] == f"test.{at}.{over}"
    assert f"{float(record['mean']):.3f}" == wanted


def test_two_datasets_are_two_tables(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "limits.jsonl")
    for run, best in zip(plan("limits", ["gin*imdb*"]), (48.0, 52.0), strict=True):
        ledger.add(fold_entry(run, [best - 1, best + 1], [40.0, 42.0]))
    add(tmp_path, "limits", "gin-zinc-without-node-features", [1.3])
    text = report_table("limits", tmp_path, "markdown")
    zinc, imdb = text.split("**Table 7 of the paper, IMDB-MULTI: accuracy (%), higher is better.**")
    assert "held out |" not in zinc
    assert "| here | held out | seeds |" in imdb
    assert cells(imdb, "GIN+FOG, IMDB-MULTI")[2:8] == [
        "47.933 ± 3.521", "52.000 ± 1.414", "41.000 ± 1.414", "1", "+4.067 !",
        "+4.000 [+4.000, +4.000], 2 folds",
    ]  # fmt: skip
    assert cells(zinc, "GIN, ZINC without node features")[3] == "1.300"


def test_a_search_does_not_fill_the_table(tmp_path: Path) -> None:
    row = plan("zinc", ["gin"])[0]
    ledger = Ledger(tmp_path / "zinc.jsonl")
    for k, trial in enumerate(grid(row)):
        own = entry(trial, 0.4)
        own.result["val"]["best"]["items"] = 0.5 - 0.01 * k
        ledger.add(own)
    before = report_table("zinc", tmp_path, "markdown")
    # 12 trials, of which one is the row's own; the paper's row is not twice in the table.
    assert before.count("| GIN") == 12 + 1
    choices_of("zinc", tmp_path).add(choose(row, ledger.entries()))
    after = report_table("zinc", tmp_path, "markdown")
    assert after.count("| GIN") == 2 + 1
    assert "[1]: training.lr=0.0005." in after
    assert cells(after, "GIN [1] †")[2:6] == ["0.387 ± 0.015", "0.400", "1", "+0.013"]
    assert "Not shown: 10 runs that a search tried and did not pick." in after


def test_csv_has_all_digits(tmp_path: Path) -> None:
    figures = [1 / 3, 2 / 3, 0.1]
    add(tmp_path, "zinc", "gcn", figures)
    add(tmp_path, "zinc", "gcn+fog", figures[::-1])
    lines = list(csv.DictReader(io.StringIO(report_table("zinc", tmp_path, "csv"))))
    assert [line["network"] for line in lines] == [row.model for row in rows(table=3)]
    gcn, fog = lines[1], lines[2]
    assert [float(value) for value in gcn["values"].split()] == figures
    assert float(gcn["mean"]) == pytest.approx(sum(figures) / 3, rel=1e-15)
    assert (gcn["seeds"], gcn["sd_over"], gcn["parameters"]) == ("0 1 2", "seeds", "103077")
    assert (gcn["paper_mean"], gcn["ours"], gcn["off"]) == ("0.459", "no", "3 s.d. and 5 %")
    assert float(gcn["difference"]) == pytest.approx(sum(figures) / 3 - 0.459, rel=1e-12)
    assert (gcn["fog_minus_host"], fog["pairs"]) == ("", "3 seeds")
    assert float(fog["low"]) < float(fog["fog_minus_host"]) < float(fog["high"])
    assert lines[0]["mean"] == lines[0]["figure"] == ""


def test_latex_is_a_table_for_each_dataset(tmp_path: Path) -> None:
    add(tmp_path, "limits", "gin-zinc-without-node-features", [1.3])
    text = report_table("limits", tmp_path, "latex")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert text.isascii()
    assert "1.277 $\\pm$ 0.016 & 1.300 & 1 & +0.023" in text


def test_errors_name_the_argument(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"report_table: form must be one of .*, got 'html'"):
        report_table("zinc", tmp_path, "html")
    with pytest.raises(ValueError, match=r"report_table: table must be .*'zink'"):
        report_table("zink", tmp_path)
    with pytest.raises(ValueError, match="at must be one of 'last', 'best', got 'first'"):
        report_table("zinc", tmp_path, at="first")
    add(tmp_path, "zinc", "gin", [0.4])
    file = tmp_path / "zinc.jsonl"
    file.write_text(file.read_text() + "{}\n")
    with pytest.warns(UserWarning, match=r"zinc\.jsonl, line 2: must be"):
        assert "| GIN | " in report_table("zinc", tmp_path, "markdown")


def test_it_reads_only_the_ledger(tmp_path: Path) -> None:
    add(tmp_path, "zinc", "gin", [0.4])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    report_table("zinc", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before
    assert json.loads((tmp_path / "zinc.jsonl").read_text())["key"] == "zinc/gin-seed0"


# --- result notes ---


def runs(table: str, model: str, count: int, **options: Any) -> list[LedgerEntry]:
    return [
        entry(run, 0.4 + 0.01 * k) for k, run in enumerate(plan(table, [model], count, **options))
    ]


def notes(entries: list[LedgerEntry], table: str = "zinc", hidden: int = 0, **figure: str) -> str:
    lines = lines_of(entries, table, **figure)
    at, over = figure.get("at", "last"), figure.get("over", "batches")
    return " ".join(notes_of(lines, at, over, hidden, numbers_of(lines), TABLES[table].difference))


def lines_of(entries: list[LedgerEntry], table: str = "zinc", **figure: str) -> list[TableLine]:
    lines = compare(table, entries, **figure)
    data = {line.paper.dataset for line in lines if line.entries}
    return [line for line in lines if not data or line.paper.dataset in data]


@pytest.mark.parametrize(
    ("table", "name", "good"),
    [("zinc", "MAE", "lower"), ("tsp", "F1", "higher"), ("few-shot", "accuracy (%)", "higher"),
     ("pattern", "balanced accuracy (%)", "higher")],
)  # fmt: skip
def test_metric(table: str, name: str, good: str) -> None:
    lines = compare(table, [])
    assert metric_of(lines[0]).axis == name
    assert metric_of(lines[0]).direction == f"{good} is better"


def test_nothing_measured() -> None:
    assert notes([]) == "Nothing is measured yet: see fognn reproduce zinc --help."


def test_the_notes_say_which_figure() -> None:
    text = notes(runs("zinc", "gin", 1))
    assert "on the test split at the last epoch, averaged over batches" in text
    text = notes(runs("zinc", "gin", 1), at="best", over="items")
    assert "at the epoch with the best validation metric, over all items at once" in text


def test_too_few_seeds_is_said() -> None:
    assert "Each row is of 1 seed: no s.d., no interval" in notes(runs("zinc", "gin", 1))
    text = notes(runs("zinc", "gin", 3))
    assert "Each row is of 3 seeds. ±: s.d. over seeds." in text
    assert "no interval" not in text
    text = notes(runs("zinc", "gin", 3) + runs("zinc", "gat", 1))
    assert "Rows are of 1 to 3 seeds." in text
    assert "One seed gives no s.d. and no interval." in text


def test_pairs() -> None:
    assert "FOG - host" not in notes(runs("zinc", "gin", 3))
    one = notes(runs("zinc", "gin", 1) + runs("zinc", "gin+fog", 1))
    assert "FOG - host: mean difference over the runs that both have." in one
    two = notes(runs("zinc", "gin", 2) + runs("zinc", "gin+fog", 2))
    assert "with a 95 % interval by Student's t." in two
    assert "have unequal learning rates" in two
    assert "more than one cause: GIN+FOG 0.005 and 0.001." in two
    equal = {"values": {"training.lr": 0.002}}
    same = runs("zinc", "gin", 2, **equal) + runs("zinc", "gin+fog", 2, **equal)
    assert "learning rates" not in notes(same)


def test_folds() -> None:
    planned = plan("limits", ["gin*imdb*"])
    text = notes([fold_entry(run, [40.0, 50.0], [30.0, 35.0]) for run in planned], "limits")
    assert "best epoch of their mean curve, over all items" in text
    assert "the figure is optimistic. Held out: at the last epoch" in text
    assert "on the test split" not in text
    assert "Each row is of 1 seed. ±: s.d. over 2 folds." in text
    assert "an interval over folds is too narrow" in text


def test_ours_and_missing() -> None:
    text = notes(runs("zinc", "gcn-sym", 1) + runs("zinc", "gin", 1, fraction=0.1))
    assert "†: ours" in text
    assert "[1]: data.fraction=0.1." in text
    assert "Not measured by the paper's protocol: FOG; GCN; GCN+FOG; GAT;" in text
    assert "figures of GCN are quoted from the public benchmark" in text
    assert "GraphSAGE takes the maximum over neighbours" in text
    whole = [own for run in plan("zinc", ours=False) for own in [entry(run, run.paper.mean)]]
    text = notes(whole)
    assert "†" not in text
    assert "Not measured" not in text
    assert "!" not in text
    # No word about networks that the table does not have.
    assert "GraphSAGE" not in notes(runs("limits", "gin-imdb-multi", 1), "limits")


def test_off_is_explained() -> None:
    assert "!: more than 3 printed s.d., or 5 %, away" in notes(runs("zinc", "gcn+fog", 1))


def test_a_search() -> None:
    own = runs("zinc", "gin", 1)
    assert "Not shown: 11 runs that a search tried and did not pick." in notes(own, hidden=11)
    assert "Not shown" not in notes(own)


def test_few_shot_counts_more_parameters() -> None:
    text = notes(runs("few-shot", "gnn-1shot", 1), "few-shot")
    assert "the paper counts its graph part" in text


def test_where_it_comes_from() -> None:
    first, second = runs("zinc", "gin", 2)
    text = notes([first, second])
    assert text.endswith("Commit 01234567; CPU Abacus 3000, 1 thread a run.")
    changed = second.result | {"commit": "fedcba9876 with changes, 0011223344", "threads": 2}
    text = notes([first, dataclasses.replace(second, result=changed)])
    assert "Commit 01234567, fedcba98 with changes and 00112233; " in text
    assert text.endswith("CPU Abacus 3000, 1 thread a run; CPU Abacus 3000, 2 threads a run.")
    unknown = second.result | {"commit": None}
    assert "and not known" in notes([first, dataclasses.replace(second, result=unknown)])


def test_each_commit_is_named_once() -> None:
    made = ["0123456789", "0123456789, fedcba9876 with changes", "fedcba9876", None]
    found = commits_of({"commit": commit} for commit in made)
    assert found == ["01234567", "fedcba98 with changes", "fedcba98", "not known"]


def test_numbers() -> None:
    entries = [
        *runs("zinc", "gin", 1),
        *runs("zinc", "gin", 1, epochs=3),
        *runs("zinc", "gat", 1, epochs=3),
        *runs("zinc", "gat", 1, fraction=0.5),
    ]
    assert numbers_of(lines_of(entries)) == {
        ("data.fraction=0.5",): "[1]",
        ("training.epochs=3",): "[2]",
    }
