"""The content of the pages."""

from pathlib import Path
from typing import Any

import pytest
from site_example import by_model, write_ledger

from fognn.report.claims import claims
from fognn.report.measurements import read_measurements
from fognn.report.metric import METRICS
from fognn.report.site.pages import (
    cell,
    overview_context,
    plus_minus,
    table_context,
)
from fognn.report.site.run_page import run_context

# --- numbers ---


MAE = METRICS["mae"]


def test_what_is_not_there_has_a_dash_and_no_place_in_the_order() -> None:
    for missing in (cell(None, "x"), plus_minus(None, 1.0, MAE)):
        assert (missing.text, missing.order) == ("–", "")


def test_cells_are_sorted_by_all_digits() -> None:
    mean = plus_minus(0.30701234, 0.013, MAE)
    assert (mean.text, float(mean.order)) == ("0.3070 ± 0.0130", 0.30701234)
    assert plus_minus(0.3, None, MAE).text == "0.3000"


# --- overview ---


def test_nothing_measured(tmp_path: Path) -> None:
    made = overview_context(read_measurements(tmp_path))
    assert made["summary"] == f"Of {len(claims())} claims of the paper, 19 are not measured yet."
    assert made["claims"] == []
    assert made["made"] == ""
    assert [line["runs"] for line in made["tables"]] == [0] * 7
    assert made["waiting"][0]["rows"][0][4] == "not measured yet"


def test_claims_are_counted_and_shown(tmp_path: Path) -> None:
    values = {"GCN": [0.45, 0.46, 0.47], "GCN+FOG": [0.30, 0.31, 0.32]}
    values |= {"GIN": [0.40], "GIN+FOG": [0.38]}
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, by_model(values), ours=False)
    write_ledger(tmp_path, "zinc", ["gin", "gin+fog"], 1, by_model(values), ours=False)
    made = overview_context(read_measurements(tmp_path))
    shown = {claim["text"]: claim for claim in made["claims"]}
    helps = shown["On ZINC, FOG helps GCN"]
    assert (helps["kind"], helps["verdict"]) == ("holds", "Holds here.")
    assert helps["rows"] == [
        ["GCN+FOG", "GCN", "+0.1500", "[+0.1500, +0.1500]", "3 seeds", "+0.1520", "0.01, 0.001"]
    ]
    gin = shown["On ZINC, FOG makes GIN worse"]
    assert gin["kind"] == "against"
    figures = ["−0.0200", "–", "1 seed: no interval", "+0.0140"]
    assert gin["rows"] == [["GIN", "GIN+FOG", *figures, "0.001, 0.005"]]
    assert len(made["claims"]) + len(made["waiting"]) == len(claims())
    assert "1 holds here, 1 holds where measured" in made["summary"]
    assert "1 was seen the other way" in made["summary"]
    zinc = made["tables"][2]
    assert (zinc["measured"], zinc["rows"], zinc["runs"]) == (4, 13, 8)
    assert (zinc["most"], zinc["fewest"]) == (3, 0)
    assert made["made"].startswith("It rests on 8 finished runs (2026-11-16; 0.4 hours")
    assert "from commit 4ad1a90" in made["made"]


# --- tables ---


VALUES = {"GCN": [0.4, 0.5, 0.6], "GCN+FOG": [0.3, 0.3, 0.3], "GAT": [0.5]}


def context(results: Path, table: str = "zinc") -> dict[str, Any]:
    return table_context(table, read_measurements(results))


def cells(part: dict[str, Any], label: str) -> dict[str, Any]:
    (row,) = [row for row in part["rows"] if row["label"] == label]
    header = [name for name in part["header"][1:] if name != "seeds"]
    return dict(zip(header, row["cells"], strict=True))


def test_a_page_says_which_pairs_have_unequal_learning_rates(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 1, ours=False)
    (part,) = context(tmp_path)["datasets"]
    assert any("more than one cause: GCN+FOG 0.01 and 0.001." in note for note in part["notes"])
    change = {"training.lr": 0.01}
    write_ledger(tmp_path / "equal", "zinc", ["gcn", "gcn+fog"], 1, ours=False, values=change)
    (part,) = context(tmp_path / "equal")["datasets"]
    assert not any("learning rates" in note for note in part["notes"])


def test_measured_and_printed_stand_side_by_side(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, by_model(VALUES), ours=False)
    write_ledger(tmp_path, "zinc", ["gat"], 1, by_model(VALUES), ours=False)
    made = context(tmp_path)
    (part,) = made["datasets"]
    assert len(part["rows"]) == 13
    gcn, fog = cells(part, "GCN"), cells(part, "GCN+FOG")
    assert gcn["parameters"].text == "103,077"
    assert gcn["measured MAE"].text == "0.5000 ± 0.1000"
    assert gcn["paper"].text == "0.4590 ± 0.0060"
    assert gcn["difference"].text == "+0.0410"
    assert gcn["difference"].note == "more than 3 s.d. and 5 %"
    difference = fog["FOG\u00a0−\u00a0host"]
    assert (difference.text, difference.note) == ("−0.2000", "3 seeds")
    assert fog["95 % interval"].text == "[−0.4484, +0.0484]"
    assert gcn["FOG\u00a0−\u00a0host"].text == "–"
    gat = cells(part, "GAT")
    assert gat["measured MAE"].text == "0.5000"  # no s.d. of one seed
    assert cells(part, "GIN")["measured MAE"].text == "–"
    assert [len(row["runs"]) for row in part["rows"][:4]] == [0, 3, 3, 1]
    assert made["summary"].startswith("3 of 13 rows of the paper measured, 7 runs.")
    assert made["summary"].endswith(
        "1 of 1 host had a better result with FOG, and none a worse one. A 95 % interval over "
        "three seeds or more excludes 0 for none of the better results and for none of the worse "
        "ones."
    )
    assert any(note.startswith("One seed has no interval") for note in part["notes"])
    names = [figure.name for figure in made["figures"]]
    assert len(set(names)) == len(names)


def test_ours_is_marked(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn-sym"])
    write_ledger(tmp_path, "zinc", ["gcn"], ours=False, fraction=0.1)
    (part,) = context(tmp_path)["datasets"]
    ours = [(row["name"], list(row["own"])) for row in part["rows"] if row["ours"]]
    assert ours == [("GCN", ["data.fraction=0.1"]), ("GCN", ["norm=sym"])]
    assert any(note.startswith("Rows marked as ours") for note in part["notes"])


def test_a_table_that_was_not_measured_shows_the_paper(tmp_path: Path) -> None:
    made = context(tmp_path, "few-shot")
    assert made["summary"].startswith("Not measured yet")
    one, five = made["datasets"]
    assert (one["title"], five["title"]) == ("miniImageNet-5way-1shot", "miniImageNet-5way-5shot")
    assert [row["name"] for row in one["rows"]] == ["FOG", "GNN", "GNN+FOG"]
    assert one["curves"] == []
    assert len(made["figures"]) == 2


def test_the_papers_figure_1_is_shown_first(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog", "gatedgcn-e", "gatedgcn-e+fog", "fog"])
    (part,) = context(tmp_path)["datasets"]
    titles = {pair["title"]: pair["chosen"] for pair in part["curves"]}
    assert titles == {
        "FOG": False,
        "GCN and GCN+FOG": False,
        "GatedGCN-E and GatedGCN-E+FOG (the paper's figure 1)": True,
    }
    for pair in part["curves"]:
        assert len(pair["figures"]) == 2


def test_without_figure_1_a_pair_comes_before_a_network_alone(tmp_path: Path) -> None:
    write_ledger(tmp_path, "cluster", ["fog", "gcn", "gcn+fog"], ours=False)
    (part,) = context(tmp_path, "cluster")["datasets"]
    chosen = [pair["title"] for pair in part["curves"] if pair["chosen"]]
    assert chosen == ["GCN and GCN+FOG"]


@pytest.mark.parametrize(("table", "expected"), [("widths", True), ("zinc", False)])
def test_widths_have_no_hosts_but_a_plot_of_their_own(
    tmp_path: Path, table: str, expected: bool
) -> None:
    write_ledger(tmp_path, table, None, 1)
    made = context(tmp_path, table)
    assert any(figure.name == "widths-0" for figure in made["figures"]) == expected
    assert ("95 % interval" not in made["datasets"][0]["header"]) == expected


def test_folds_are_said_to_be_optimistic(tmp_path: Path) -> None:
    write_ledger(tmp_path, "limits", ["*-imdb-multi"], 1, ours=False)
    zinc, imdb = context(tmp_path, "limits")["datasets"]
    assert any("optimistic" in note for note in imdb["notes"])
    assert not any("optimistic" in note for note in zinc["notes"])
    assert "at the last epoch" in imdb["header"]
    assert cells(imdb, "GIN+FOG, IMDB-MULTI")["FOG\u00a0−\u00a0host"].note == "10 folds"


# --- runs ---


def test_a_run_says_all_that_is_known(tmp_path: Path) -> None:
    (entry,) = write_ledger(tmp_path, "zinc", ["gcn+fog"], ours=False)
    line = read_measurements(tmp_path).find("zinc/ZINC/GCN+FOG")
    made = run_context(f"{line.label} on {line.paper.dataset}", line.entries[0])
    assert made["title"] == "GCN+FOG on ZINC, seed 0"
    score = entry.result["test"]["last"]["batches"]
    assert made["summary"].startswith(f"MAE {score:.4f}, as in the table, after 60 epochs")
    assert "the learning rate fell below its minimum" in made["summary"]
    settings = dict(made["settings"])
    assert (settings["training.lr"], settings["model.h1"]) == ("0.01", "12")
    assert settings["data.fold"] == "–"
    facts = dict(made["facts"])
    assert facts["commit"] == entry.result["commit"]
    assert facts["torch"] == "2.13.0"
    rows = made["results"]["rows"]
    assert [row[0] for row in rows] == [
        *("training", "training", "validation", "validation", "test", "test"),
    ]
    assert rows[4] == [
        *("test", "last, 60", f"{entry.result['test']['last']['loss']:.5g}"),
        *(f"{score * 1.001:.5g}", f"{score:.5g}"),
    ]


def test_a_run_over_folds_shows_each(tmp_path: Path) -> None:
    write_ledger(tmp_path, "limits", ["gin-imdb-multi"], ours=False)
    line = read_measurements(tmp_path).find("limits/IMDB-MULTI/GIN")
    made = run_context(f"{line.label} on {line.paper.dataset}", line.entries[0])
    names = [row[0] for row in made["results"]["rows"]]
    assert names[:4] == ["training", "training", "validation", "validation"]
    assert names[4:] == [f"validation, fold {fold}" for fold in range(1, 11)]
    assert "accuracy" in made["summary"]
    assert " %" in made["summary"]
