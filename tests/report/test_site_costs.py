import dataclasses
import json
from pathlib import Path

from site_example import make_entry, write_ledger

from fognn.paper.ledger import Ledger
from fognn.paper.tables import plan
from fognn.report.metric import METRICS
from fognn.report.site_costs import time_figure
from fognn.report.site_measurements import read_measurements

MAE = METRICS["mae"]


def test_each_run_is_a_point_and_a_host_is_joined_with_its_fog(tmp_path: Path) -> None:
    entries = write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog", "fog"], 2, ours=False)
    made = time_figure(read_measurements(tmp_path).tables["zinc"], MAE, "time")
    assert made is not None
    traces = json.loads(made.json)["data"]
    points = [trace for trace in traces if trace["mode"] == "markers"]
    seconds = sorted(value for trace in points for value in trace["x"])
    assert seconds == sorted(entry.result["seconds_per_epoch"] for entry in entries)
    assert [trace["name"] for trace in points] == ["FOG", "GCN"]
    (join,) = [trace for trace in traces if trace["mode"] == "lines"]
    by_model = {
        model: [e.result["seconds_per_epoch"] for e in entries if e.model == model]
        for model in ("gcn", "gcn+fog")
    }
    assert join["x"] == [sum(own) / 2 for own in by_model.values()]
    # Open without FOG, full with it.
    gcn = points[1]["marker"]["color"]
    assert gcn == ["rgba(0,0,0,0)"] * 2 + ["var(--line-0)"] * 2
    assert "bottom left" in made.caption
    assert "cannot be compared" not in made.caption


def test_a_host_is_the_one_with_the_same_norm(tmp_path: Path) -> None:
    entries = write_ledger(tmp_path, "zinc", ["gcn", "gcn-sym", "gcn+fog"])
    made = time_figure(read_measurements(tmp_path).tables["zinc"], MAE, "time")
    assert made is not None
    (join,) = [trace for trace in json.loads(made.json)["data"] if trace["mode"] == "lines"]
    ends = {entry.key: entry.result["seconds_per_epoch"] for entry in entries}
    assert join["x"] == [ends["zinc/gcn-sym-seed0"], ends["zinc/gcn+fog-seed0"]]


def test_times_of_other_machines_are_said(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn"], ours=False)
    entry = make_entry(plan("zinc", ["gcn"], [1], ours=False)[0], 0.4)
    entry = dataclasses.replace(entry, result=entry.result | {"threads": 2})
    Ledger(tmp_path / "zinc.jsonl").add(entry)
    made = time_figure(read_measurements(tmp_path).tables["zinc"], MAE, "time")
    assert made is not None
    assert "their times cannot be compared" in made.caption


def test_without_runs_there_is_no_plot(tmp_path: Path) -> None:
    assert time_figure(read_measurements(tmp_path).tables["zinc"], MAE, "time") is None
