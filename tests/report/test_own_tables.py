"""Tables of our own, and figures of few-shot learning, in tables and on the site."""

import csv
import dataclasses
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import entry

from fognn.experiments.ledger import Ledger
from fognn.experiments.rows import rows_of
from fognn.experiments.tables import TABLES, plan
from fognn.report.measurements import read_measurements
from fognn.report.site import build_site
from fognn.report.site.build import _MENU
from fognn.report.site.pages import overview_context, table_context
from fognn.report.tables import report_table

OWN = ("omniglot", "cifar-fs")


def add(
    results: Path, table: str, model: str, figures: list[float], interval: float | None = 0.31
) -> None:
    """Adds runs whose test accuracy at the best epoch over items is that of ``figures``."""
    ledger = Ledger(results / f"{table}.jsonl")
    for run, figure in zip(plan(table, [model], len(figures)), figures, strict=True):
        own = entry(run, figure - 0.003, parameters=123456)
        for at in ("last", "best"):
            own.result["test"][at]["interval"] = interval
        ledger.add(own)


def lines(text: str) -> dict[str, list[str]]:
    """The rows of a Markdown table, by their first cell."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


def one_line(text: str) -> str:
    return " ".join(text.split())


# --- fognn table ---


@pytest.mark.parametrize("table", OWN)
def test_no_word_of_the_paper_in_a_table_of_our_own(tmp_path: Path, table: str) -> None:
    add(tmp_path, table, "gnn-1shot", [97.12])
    add(tmp_path, table, "gnn+fog-1shot", [97.5])
    shown = report_table(table, tmp_path, "markdown")
    data = rows_of(table)[0].dataset
    assert shown.startswith(f"**{data}: accuracy (%), higher is better; not in the paper.**")
    found = lines(shown.partition("\n\n**")[0])
    assert found["network"] == ["parameters", "here", "seeds", "FOG - host", "epochs", "s/epoch"]
    assert found["GNN, 1-shot"][:3] == ["123,456", "97.12 ± 0.31", "1"]
    assert found["GNN+FOG, 1-shot"][3] == "+0.38, 1 seed: no interval"
    assert found["FOG, 1-shot"][:3] == ["–", "not run", "0"]
    text = one_line(shown)
    assert "Not measured by the row's protocol: FOG, 1-shot." in text
    assert "the epoch with the best validation metric, over all items at once" in text
    assert "±, with one seed: the 95 % interval over the test episodes, the paper's form" in text
    assert "no s.d. over seeds" in text
    assert "†" not in text
    assert "!" not in text


def test_a_published_figure_stands_below_the_table(tmp_path: Path) -> None:
    text = "GNN, 1-shot is published at 99.20 by Garcia and Bruna (ICLR 2018)"
    assert f"{text}." in one_line(report_table("omniglot", tmp_path))
    add(tmp_path, "omniglot", "gnn-1shot", [98.9])
    shown = report_table("omniglot", tmp_path, "markdown")
    assert f"{text}; the difference here is -0.30." in one_line(shown)
    assert "99.20" not in "".join(lines(shown)["GNN, 1-shot"])
    assert "published" not in report_table("cifar-fs", tmp_path)


def test_several_seeds_have_a_spread(tmp_path: Path) -> None:
    add(tmp_path, "omniglot", "gnn-1shot", [97.0, 98.0])
    shown = report_table("omniglot", tmp_path, "markdown")
    assert lines(shown)["GNN, 1-shot"][1:3] == ["97.50 ± 0.71", "2"]
    assert "±: s.d. over seeds." in one_line(shown)
    assert "95 % interval over" not in one_line(shown)
    add(tmp_path, "omniglot", "fog-1shot", [96.0])
    both = one_line(report_table("omniglot", tmp_path, "markdown"))
    assert "±, with several seeds: s.d. over seeds." in both
    assert "±, with one seed: the 95 % interval" in both
    assert "One seed gives no s.d." not in both


def test_the_papers_few_shot_table_shows_the_best_epoch_too(tmp_path: Path) -> None:
    add(tmp_path, "few-shot", "gnn-1shot", [50.0])
    add(tmp_path, "few-shot", "gnn+fog-1shot", [51.0])
    add(tmp_path, "few-shot", "gnn+fog-1shot-all", [52.0])
    shown = report_table("few-shot", tmp_path, "markdown")
    found = lines(shown.partition("\n\n**")[0])
    assert found["GNN, 1-shot"][1:5] == ["50.33 ± 0.36", "50.00 ± 0.31", "1", "-0.33"]
    # Its host has no such reading.
    assert found["GNN+FOG, 1-shot (neighbours=all) †"][5] == "+2.00, 1 seed: no interval"
    other = lines(report_table("few-shot", tmp_path, "markdown", "last", "batches"))
    assert other["GNN, 1-shot"][2] == "50.00", "no interval of an average over batches"


def test_without_an_interval_nothing_is_said_of_one(tmp_path: Path) -> None:
    add(tmp_path, "omniglot", "gnn-1shot", [97.0], None)
    shown = report_table("omniglot", tmp_path, "markdown")
    assert lines(shown)["GNN, 1-shot"][1] == "97.00"
    assert "no s.d., no interval" in one_line(shown)
    assert "test episodes" not in one_line(shown)


def test_other_settings_are_marked(tmp_path: Path) -> None:
    (run,) = plan("omniglot", ["gnn-1shot"], epochs=3)
    Ledger(tmp_path / "omniglot.jsonl").add(entry(run, 90.0, parameters=1))
    shown = report_table("omniglot", tmp_path, "markdown")
    assert "GNN, 1-shot [1] †" in lines(shown)
    text = one_line(shown)
    assert "†: other settings than the row's." in text
    assert "[1]: training.epochs=3." in text


def test_csv(tmp_path: Path) -> None:
    add(tmp_path, "cifar-fs", "gnn-5shot", [70.0])
    records = list(csv.DictReader(io.StringIO(report_table("cifar-fs", tmp_path, "csv"))))
    assert len(records) == 5
    (own,) = [record for record in records if record["mean"]]
    assert (own["network"], own["figure"], own["interval"]) == (
        "GNN, 5-shot", "test.best.items", "0.31",
    )  # fmt: skip
    assert (own["paper_mean"], own["difference"], own["off"]) == ("", "", "")


# --- fognn report ---


def test_the_front_page_keeps_the_two_apart(tmp_path: Path) -> None:
    add(tmp_path, "omniglot", "gnn-1shot", [97.0, 98.0])
    made = overview_context(read_measurements(tmp_path))
    assert sum(line["rows"] for line in made["tables"]) == 72
    assert sum(line["measured"] for line in made["tables"]) == 0
    assert made["made"] == "", "nothing that the claims rest on"
    assert [line["name"] for line in made["own_tables"]] == [*OWN, "controls", "modern"]
    assert (made["own_tables"][0]["measured"], made["own_tables"][0]["rows"]) == (1, 3)
    assert all(claim["table"] not in OWN for claim in made["claims"] + made["waiting"])


def test_the_page_of_a_table(tmp_path: Path) -> None:
    empty = table_context("omniglot", read_measurements(tmp_path))
    assert empty["summary"] == "Not measured yet."
    assert empty["figures"] == []
    add(tmp_path, "omniglot", "gnn-1shot", [97.0])
    add(tmp_path, "omniglot", "gnn+fog-1shot", [98.0])
    made = table_context("omniglot", read_measurements(tmp_path))
    assert made["title"] == "Few-shot learning on Omniglot: not in the paper"
    assert "best validation accuracy" in made["how"]
    assert "of the paper" not in made["summary"]
    (part,) = made["datasets"]
    assert "paper" not in part["header"]
    gnn = next(row for row in part["rows"] if row["name"] == "GNN")
    assert len(part["header"]) == len(gnn["cells"]) + 2
    assert gnn["cells"][1].text == "97.000 ± 0.310"
    assert any("Garcia and Bruna" in note for note in part["notes"])
    assert "with one seed, the 95 % interval over the test episodes" in made["how"]
    assert any("says nothing about other seeds" in note for note in part["notes"])
    assert not any("the paper, mean" in figure.json for figure in made["figures"])
    assert [pair["title"] for pair in part["curves"]] == ["GNN, 1-shot and GNN+FOG, 1-shot"]


def test_the_site(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for table in (*OWN, "few-shot"):
        add(results, table, "gnn-1shot", [97.0])
    build_site(results, tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text()
    for table in OWN:
        assert f'<a href="{table}.html">' in index
        text = (tmp_path / "site" / f"{table}.html").read_text()
        assert f'href="runs/{table}/gnn-1shot-seed0.html"' in text
        run = (tmp_path / "site" / "runs" / table / "gnn-1shot-seed0.html").read_text()
        assert "accuracy 97.000 % ± 0.310 (95 % interval over the test episodes)" in run
        assert "data.n_query" in run
        assert "None" not in re.sub(r"<[^>]*>", "", text)


# --- docs ---


def test_the_docs_can_show_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook: dict[str, Any] = runpy.run_path(
        str(Path(__file__).parents[2] / "docs" / "hooks" / "refresh_tables.py")
    )
    add(tmp_path / "results", "cifar-fs", "gnn-1shot", [60.0])
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("x\n")
    page = tmp_path / "docs" / "few_shot.md"
    page.write_text("before\n\n<!-- fognn table cifar-fs --markdown -->\n<!-- end -->\n\nafter\n")
    monkeypatch.setitem(hook["main"].__globals__, "ROOT", tmp_path)
    for _ in range(2):
        hook["main"]()
        table = report_table("cifar-fs", tmp_path / "results", "markdown")
        marker = "<!-- fognn table cifar-fs --markdown -->"
        assert page.read_text() == f"before\n\n{marker}\n{table}\n<!-- end -->\n\nafter\n"


def test_a_line_of_another_table_is_not_one_of_ours(tmp_path: Path) -> None:
    (run,) = plan("cifar-fs", ["gnn-1shot"])
    wrong = dataclasses.replace(entry(run, 60.0, parameters=1), row="omniglot/gnn-1shot")
    ledger = Ledger(tmp_path / "cifar-fs.jsonl")
    ledger.add(wrong)
    with pytest.warns(UserWarning, match=r"row must be one of the table 'cifar-fs', got 'omniglot"):
        assert ledger.entries() == []


def test_every_table_is_in_the_menu() -> None:
    assert set(_MENU) == {"index", *TABLES}
