import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import entry, fold_entry

from fognn.paper import rows
from fognn.paper.ledger import Ledger
from fognn.paper.search import Choices, choices_file, choose, grid
from fognn.paper.tables import TABLES, plan
from fognn.report.result_table import FORMS, report_table


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
    for row in rows(table=TABLES[table].number):
        assert row.model in text
        assert f"{row.mean:.2f}"[:-1] in text
    if form != "csv":
        assert f"Table {TABLES[table].number} of the paper" in text
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
    assert "Rows are of 1 to 3 seeds." in text
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
        ledger.add(entry(trial, 0.4, val={"best": {"items": 0.5 - 0.01 * k}}))
    before = report_table("zinc", tmp_path, "markdown")
    # 12 trials, of which one is the row's own; the paper's row is not twice in the table.
    assert before.count("| GIN") == 12 + 1
    Choices(choices_file(tmp_path, "zinc")).add(choose(row, ledger.entries()))
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
    with pytest.raises(ValueError, match=r"report_table: table must be one of .*'zink'"):
        report_table("zink", tmp_path)
    with pytest.raises(ValueError, match="at must be one of 'last', 'best', got 'first'"):
        report_table("zinc", tmp_path, at="first")
    add(tmp_path, "zinc", "gin", [0.4])
    file = tmp_path / "zinc.jsonl"
    file.write_text(file.read_text() + "{}\n")
    with pytest.raises(ValueError, match=r"zinc\.jsonl, line 2: must be"):
        report_table("zinc", tmp_path)


def test_it_reads_only_the_ledger(tmp_path: Path) -> None:
    add(tmp_path, "zinc", "gin", [0.4])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    report_table("zinc", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before
    assert json.loads((tmp_path / "zinc.jsonl").read_text())["key"] == "zinc/gin-seed0"
