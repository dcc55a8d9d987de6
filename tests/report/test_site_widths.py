import json
from pathlib import Path

import pytest
from site_example import write_ledger

from fognn.report.metric import METRICS
from fognn.report.site_measurements import read_measurements
from fognn.report.site_widths import widths_figure

MAE = METRICS["mae"]


def test_paper_runs_and_hosts(tmp_path: Path) -> None:
    entries = write_ledger(tmp_path, "widths", None, 2)
    hosts = write_ledger(tmp_path, "zinc", ["gcn"], 2, ours=False)
    found = read_measurements(tmp_path)
    made = widths_figure(found.tables["widths"], found.tables["zinc"], MAE, "widths")
    assert made is not None
    traces = {trace["name"]: trace for trace in json.loads(made.json)["data"]}
    assert len(traces) == 7  # the host of GatedGCN-E+FOG was not measured
    paper = traces["GCN+FOG, the paper, mean ± s.d."]
    assert paper["x"] == [102809, 77278, 50547, 25847]
    assert paper["y"] == [0.307, 0.322, 0.337, 0.352]
    points = traces["GCN+FOG, one seed"]
    own = [entry.result["test"]["last"]["batches"] for entry in entries if entry.model == "gcn+fog"]
    assert sorted(points["y"]) == sorted(own)
    means = traces["GCN+FOG, mean, 95 % interval"]
    assert means["x"] == paper["x"]
    assert all(width > 0 for width in means["error_y"]["array"])
    mean = sum(entry.result["test"]["last"]["batches"] for entry in hosts) / 2
    assert traces["GCN without FOG"]["y"] == pytest.approx([mean, mean])


def test_some_widths_and_one_seed(tmp_path: Path) -> None:
    write_ledger(tmp_path, "widths", ["gcn+fog-c76"])
    found = read_measurements(tmp_path)
    made = widths_figure(found.tables["widths"], found.tables["zinc"], MAE, "widths")
    assert made is not None
    names = [trace["name"] for trace in json.loads(made.json)["data"]]
    assert "GCN+FOG, mean" in names
    assert not any("interval" in name for name in names)


def test_without_runs_there_is_no_plot(tmp_path: Path) -> None:
    found = read_measurements(tmp_path)
    assert widths_figure(found.tables["widths"], found.tables["zinc"], MAE, "widths") is None
