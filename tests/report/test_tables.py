"""Tables in every form, and the claims of the paper, from the committed ledgers."""

import csv
import io
import re
from pathlib import Path

import pytest

from fognn.experiments.rows import TABLES
from fognn.report.claims import judge, read_frames
from fognn.report.forms import FORMS, Table
from fognn.report.tables import report_table

RESULTS = Path(__file__).parents[2] / "results"
TABLE = Table("A & B", ["a_b", "50 %"], [["x|y", "−1 ± 2"], ["<z>", "[0, 1]"]], ["One."], [1])


def test_a_table_as_text() -> None:
    assert TABLE.to("text").split("\n") == [
        "A & B", "", "a_b    50 %", "---  ------", "x|y  −1 ± 2", "<z>  [0, 1]", "", "One.",
    ]  # fmt: skip


def test_a_table_as_markdown() -> None:
    _, _, header, marks, *rows, _, notes = TABLE.to("markdown").split("\n")
    assert (header, marks) == (r"| a\_b | 50 % |", "| --- | ---: |")
    assert rows == [r"| x\|y | −1 ± 2 |", r"| \<z> | [0, 1] |"]
    assert notes == "One."


def test_a_table_as_latex() -> None:
    text = TABLE.to("latex")
    assert r"\caption{A \& B One.}" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"a\_b & 50 \% \\" in text
    assert r"x\textbar{}y & $-$1 $\pm$ 2 \\" in text
    assert text.count(r"\midrule") == 1


def test_a_table_as_csv() -> None:
    assert list(csv.reader(io.StringIO(TABLE.to("csv")))) == [TABLE.header, *TABLE.rows]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*TABLES, "claims", "rates", "compare"])
def test_every_table_in_every_form(name: str, form: str) -> None:
    text = report_table(name, RESULTS, form)
    assert len(text.splitlines()) > 3
    if form == "latex":
        assert not re.search(r"(?<!\\)[%#_]", text)


def test_unequal_learning_rates_are_named() -> None:
    text = " ".join(report_table("zinc", RESULTS).split())
    assert "GAT+FOG 0.01 and 0.001" in text
    assert "GAT+FOG 0.01" not in " ".join(report_table("pattern", RESULTS).split())


def test_a_row_is_subtracted_from_all_others() -> None:
    lines = report_table("controls", RESULTS, "csv", minus="zinc-gcn-wider").splitlines()
    found = {row["network"]: row for row in csv.DictReader(lines) if row["data"] == "ZINC"}
    deeper = found["GCN, deeper"]
    assert float(deeper["row_minus_zinc-gcn-wider"]) == pytest.approx(-0.048, abs=5e-4)
    assert found["GCN, wider"]["row_minus_zinc-gcn-wider"] == ""


def test_a_folder_without_ledgers(tmp_path: Path) -> None:
    text = report_table("zinc", tmp_path)
    assert text.count("not run") >= 13
    assert "Nothing is measured" in text
    assert {one.verdict for one in judge(read_frames(tmp_path))} == {"not measured"}


@pytest.fixture(scope="module")
def judged() -> dict[str, str]:
    return {one.text: one.here for one in judge(read_frames(RESULTS))}


def test_claims(judged: dict[str, str]) -> None:
    assert len(judged) == 19
    assert judged["On PATTERN, FOG makes GIN worse"] == "not measured yet"
    assert judged["On ZINC, FOG makes GIN worse"] == "inconclusive"
    assert "on 2 % of the data" in judged["On TSP, FOG helps every host"]
    assert "one seed" not in judged["On TSP, FOG helps every host"]


def test_a_claim_at_unequal_rates_does_not_just_hold(judged: dict[str, str]) -> None:
    for text, here in judged.items():
        if here.startswith("holds"):
            assert "unequal rates" in here, text
    assert judged["On ZINC, FOG helps GCN"].startswith("holds here")
