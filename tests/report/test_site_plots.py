import json
from pathlib import Path

import pytest
from site_example import by_model, write_ledger

from fognn.paper import rows
from fognn.report.metric import METRICS
from fognn.report.site_measurements import read_measurements
from fognn.report.site_plots import results_figure

VALUES = {"GCN": [0.45, 0.46, 0.47], "GCN+FOG": [0.30, 0.31, 0.29]}


def test_paper_seeds_and_means(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn"], 3, by_model(VALUES), ours=False)
    write_ledger(tmp_path, "zinc", ["gcn+fog"], 1, by_model(VALUES), ours=False)
    lines = read_measurements(tmp_path).tables["zinc"]
    made = results_figure(lines, METRICS["mae"], "results")
    content = json.loads(made.json)
    paper, host, fog, means = content["data"]
    assert paper["x"] == [row.mean for row in rows(table=3)]
    assert paper["error_x"]["array"] == [row.sd for row in rows(table=3)]
    assert host["x"] == VALUES["GCN"]
    assert fog["x"] == VALUES["GCN+FOG"][:1]
    assert fog["customdata"] == ["runs/zinc/gcn%2Bfog-seed0.html"]
    # Only three seeds have an interval: 4.3027 is the table's t for 2 and 95 %.
    assert means["x"] == pytest.approx([0.46])
    assert means["error_x"]["array"] == pytest.approx([4.302653 * 0.01 / 3**0.5], abs=1e-6)
    assert content["layout"]["xaxis"]["title"]["text"] == "test MAE (less is better)"
    assert "one of our runs" in made.caption
    assert "95 % interval" in made.caption


def test_nothing_measured_shows_the_paper(tmp_path: Path) -> None:
    lines = read_measurements(tmp_path).tables["cluster"]
    made = results_figure(lines, METRICS["balanced_accuracy"], "results")
    (paper,) = json.loads(made.json)["data"]
    assert len(paper["x"]) == 11
    assert "more is better" in made.caption
    assert "interval" not in made.caption


def test_folds_are_a_validation_figure(tmp_path: Path) -> None:
    write_ledger(tmp_path, "limits", ["gin-imdb-multi"])
    lines = [
        line
        for line in read_measurements(tmp_path).tables["limits"]
        if line.paper.dataset == "IMDB-MULTI"
    ]
    made = results_figure(lines, METRICS["accuracy"], "results")
    title = json.loads(made.json)["layout"]["xaxis"]["title"]["text"]
    assert title == "validation accuracy (%) (more is better)"
