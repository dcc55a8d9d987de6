import json
from pathlib import Path

import pytest
from site_example import by_model, write_ledger

from fognn.report.metric import METRICS
from fognn.report.site_effect import effect_figure
from fognn.report.site_measurements import read_measurements

VALUES = {"GCN": [0.4, 0.5, 0.6], "GCN+FOG": [0.3, 0.3, 0.3], "GAT": [0.5], "GAT+FOG": [0.45]}


def test_seeds_are_subtracted_one_by_one(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, by_model(VALUES), ours=False)
    write_ledger(tmp_path, "zinc", ["gat", "gat+fog"], 1, by_model(VALUES), ours=False)
    lines = read_measurements(tmp_path).tables["zinc"]
    made = effect_figure(lines, METRICS["mae"], "effect")
    assert made is not None
    content = json.loads(made.json)
    paper, points, means = content["data"]
    assert points["x"] == pytest.approx([-0.1, -0.2, -0.3, -0.05])
    assert paper["x"] == pytest.approx([0.307 - 0.459, 0.333 - 0.475])
    assert means["x"] == pytest.approx([-0.2])
    assert means["error_x"]["array"] == pytest.approx([4.302653 * 0.1 / 3**0.5], abs=1e-6)
    assert content["layout"]["yaxis"]["ticktext"] == ["GCN+FOG", "GAT+FOG"]
    assert content["layout"]["annotations"][0]["text"] == "← FOG helps"
    assert "left of the line at 0, FOG helps" in made.caption


def test_without_pairs_there_is_no_plot(tmp_path: Path) -> None:
    write_ledger(tmp_path, "cluster", ["gcn"], 2)
    lines = read_measurements(tmp_path).tables["cluster"]
    assert effect_figure(lines, METRICS["balanced_accuracy"], "effect") is None


def test_more_is_better_on_the_other_side(tmp_path: Path) -> None:
    write_ledger(tmp_path, "cluster", ["gcn", "gcn+fog"], ours=False)
    lines = read_measurements(tmp_path).tables["cluster"]
    made = effect_figure(lines, METRICS["balanced_accuracy"], "effect")
    assert made is not None
    assert json.loads(made.json)["layout"]["annotations"][0]["text"] == "FOG helps →"
    assert len(json.loads(made.json)["data"]) == 2  # one seed has no interval
    assert "interval" not in made.caption
