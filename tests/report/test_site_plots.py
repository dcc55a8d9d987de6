"""The plots of the site."""

import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from site_example import by_model, make_entry, write_ledger

from fognn.experiments import rows
from fognn.experiments.ledger import Ledger, LedgerEntry
from fognn.experiments.tables import plan
from fognn.report.measurements import read_measurements
from fognn.report.metric import METRICS
from fognn.report.site.curves import compared_figures, run_figures
from fognn.report.site.figures import (
    COLOURS,
    axis,
    colour,
    error_bars,
    figure,
    graph_objects,
    hover,
    log_scale,
    mean_bars,
    paper_marks,
    rows_axis,
    rows_height,
    run_points,
    window,
)
from fognn.report.site.plots import effect_figure, results_figure, time_figure, widths_figure
from fognn.report.style import colours

MAE = METRICS["mae"]


# --- figure ---


def test_a_figure_is_safe_inside_a_script_element() -> None:
    trace = graph_objects().Scatter(x=[1], y=[2], text=["</script><script>alert(1)</script>"])
    made = figure("name", "caption", [trace], 300, xaxis=axis("x"))
    assert "<" not in made.json
    content = json.loads(made.json)
    assert content["data"][0]["text"] == ["</script><script>alert(1)</script>"]
    assert content["layout"]["xaxis"]["title"]["text"] == "x"


def test_all_colours_are_the_pages() -> None:
    made = figure("name", "caption", [], 300, xaxis=axis("x"), yaxis=axis("y"))
    named = set(re.findall(r"var\(--([a-z0-9-]+)\)", made.json + json.dumps(COLOURS)))
    assert named
    for dark in (False, True):
        assert named <= set(re.findall(r"--([a-z0-9-]+):", colours(dark)))


@pytest.mark.parametrize(
    ("model", "kind"),
    [("FOG", "FOG alone"), ("GCN", "host"), ("GCN+FOG", "with FOG"), ("GNN", "host")],
)
def test_colours_say_where_fog_is(model: str, kind: str) -> None:
    assert colour(model) == kind
    assert kind in COLOURS


finite = st.floats(-1e6, 1e6)


@settings(max_examples=50)
@given(st.lists(finite, min_size=1), st.lists(st.one_of(st.none(), st.tuples(finite, finite))))
def test_a_window_shows_all_values(
    values: list[float], intervals: list[tuple[float, float] | None]
) -> None:
    low, high = window(values, intervals)
    assert low < min(values) <= max(values) < high


def test_a_window_shows_intervals_that_leave_room_for_the_values() -> None:
    assert window([0.0, 1.0], [(-0.5, 1.5)])[0] < -0.5
    low, high = window([0.0, 1.0], [(-50, 50), None])
    assert (low, high) == pytest.approx((-0.08, 1.08))


def test_a_scale_is_logarithmic_only_if_it_must_and_can() -> None:
    assert log_scale([1.0, None, 100.0])
    assert not log_scale([1.0, 20.0])
    assert not log_scale([-1.0, 100.0])
    assert not log_scale([None])


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=r"report needs plotly.*fognn\[report\]"):
        graph_objects()


# --- marks ---


def test_rows_have_their_names_and_say_what_was_changed(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn-sym"])
    write_ledger(tmp_path, "zinc", ["gcn"], ours=False, fraction=0.1, epochs=3)
    lines = read_measurements(tmp_path).tables["zinc"][:5]
    made = json.loads(results_figure(lines, MAE, "results").json)["layout"]["yaxis"]
    texts = ["FOG", "GCN", "GCN<br>[2 settings changed]", "GCN<br>(norm=sym)", "GCN+FOG"]
    assert made["ticktext"] == texts
    assert made["tickvals"] == [0, -1, -2, -3, -4]
    low, high = made["range"]
    assert low < -4
    assert high > 0
    assert rows_axis(texts, room=0.5)["range"] == [low, high + 0.5]
    assert rows_height(40) > rows_height(20) > 0


def test_marks_stand_where_they_are_put() -> None:
    paper = paper_marks([0.3, 0.4], [0.01, None], [0.0, -1.0], ["a", "b"], "paper")
    assert paper.error_x.array == (0.01, 0)
    assert paper_marks([0.3], None, [0.0], ["a"], "paper").error_x.array is None
    points = run_points([(0.3, 0.0, "a", "a.html"), (0.4, -1.0, "b", "b.html")], "host", "seed")
    assert (points.x, points.y) == ((0.3, 0.4), (0.0, -1.0))
    assert points.customdata == ("a.html", "b.html")
    (means,) = mean_bars([(0.3, (0.2, 0.4), 0.0, "a")])
    assert means.error_x.array == pytest.approx([0.1])
    assert mean_bars([]) == []
    assert error_bars([None], "red")["array"] == [0]
    assert hover("%{x}") == "%{text}<br>%{x}<extra></extra>"


# --- plots ---


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
    assert content["layout"]["xaxis"]["title"]["text"] == "test MAE (lower is better)"
    assert "one of our runs" in made.caption
    assert "95 % interval" in made.caption


CONTROLS = {"GCN+FOG": [85.0, 85.1], "GCN": [85.6, 86.0]}


def test_a_control_has_its_name_and_rows_without_a_figure_are_left_out(tmp_path: Path) -> None:
    write_ledger(
        tmp_path, "controls", ["pattern-gcn-kron", "pattern-gcn-wider"], 2, by_model(CONTROLS)
    )
    lines = read_measurements(tmp_path).tables["controls"]
    pattern = [line for line in lines if line.paper.dataset == "PATTERN"]
    made = json.loads(results_figure(pattern, METRICS["balanced_accuracy"], "results").json)
    names = ["GCN+FOG<br>kron, 20 % of PATTERN", "GCN<br>wider, 20 % of PATTERN"]
    assert len(pattern) == 7
    assert made["layout"]["yaxis"]["ticktext"] == names
    # Nothing is printed, so the runs are in the middle of their rows.
    assert {place for trace in made["data"] for place in trace["y"]} == {0, -1}
    effect = effect_figure(pattern, METRICS["balanced_accuracy"], "effect")
    assert effect is not None
    assert json.loads(effect.json)["layout"]["yaxis"]["ticktext"] == names[1:]
    assert {place for trace in json.loads(effect.json)["data"] for place in trace["y"]} == {0}
    zinc = [line for line in lines if line.paper.dataset == "ZINC"]
    assert results_figure(zinc, MAE, "results") is None


def test_nothing_measured_shows_the_paper(tmp_path: Path) -> None:
    lines = read_measurements(tmp_path).tables["cluster"]
    made = results_figure(lines, METRICS["balanced_accuracy"], "results")
    (paper,) = json.loads(made.json)["data"]
    assert len(paper["x"]) == 11
    assert "higher is better" in made.caption
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
    assert title == "validation accuracy (%) (higher is better)"


# --- effect ---


PAIRS = {"GCN": [0.4, 0.5, 0.6], "GCN+FOG": [0.3, 0.3, 0.3], "GAT": [0.5], "GAT+FOG": [0.45]}


def test_seeds_are_subtracted_one_by_one(tmp_path: Path) -> None:
    write_ledger(tmp_path, "zinc", ["gcn", "gcn+fog"], 3, by_model(PAIRS), ours=False)
    write_ledger(tmp_path, "zinc", ["gat", "gat+fog"], 1, by_model(PAIRS), ours=False)
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
    assert "FOG helps left of the line at 0" in made.caption


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


# --- costs ---


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


def test_without_times_there_is_no_plot(tmp_path: Path) -> None:
    assert time_figure(read_measurements(tmp_path).tables["zinc"], MAE, "time") is None


# --- widths ---


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


def test_without_widths_there_is_no_plot(tmp_path: Path) -> None:
    found = read_measurements(tmp_path)
    assert widths_figure(found.tables["widths"], found.tables["zinc"], MAE, "widths") is None


# --- curves ---


def entry(seed: int, epochs: int = 4, **curve: list[Any]) -> LedgerEntry:
    made = make_entry(plan("zinc", ["gcn"], [seed], ours=False)[0], 0.4, epochs)
    return dataclasses.replace(made, curve=made.curve | curve)


def test_seeds_are_thin_and_their_mean_is_thick_as_far_as_all_go() -> None:
    one = entry(0, 3, train_loss=[3.0, 2.0, 1.0])
    two = entry(1, 2, train_loss=[1.0, None])
    training, validation = compared_figures({"GCN": [one, two]}, MAE, "curves")
    first, second, mean = json.loads(training.json)["data"]
    assert first["y"] == [3.0, 2.0, 1.0]
    assert second["y"] == [1.0, None]
    assert (mean["x"], mean["y"]) == ([1, 2], [2.0, None])
    assert mean["line"]["width"] > 2 * first["line"]["width"]
    assert [trace.get("showlegend", True) for trace in (first, second, mean)] == [
        False,
        False,
        True,
    ]
    assert json.loads(validation.json)["data"][0]["y"] == one.curve["val_loss"]
    assert json.loads(training.json)["layout"]["yaxis"]["title"]["text"] == "training L1 loss"
    assert training.name != validation.name
    assert "mean" in training.caption


def test_one_seed_each_has_no_mean() -> None:
    training, _ = compared_figures({"GCN": [entry(0)], "GCN+FOG": [entry(1)]}, MAE, "curves")
    one, other = json.loads(training.json)["data"]
    assert (one["name"], other["name"]) == ("GCN", "GCN+FOG")
    # Told apart by colour and by dashes.
    assert one["line"]["color"] != other["line"]["color"]
    assert one["line"]["dash"] != other["line"]["dash"]
    assert "thick" not in training.caption


@pytest.mark.parametrize(("last", "kind"), [(0.1, "log"), (50.0, None)])
def test_a_first_loss_of_thousands_does_not_hide_the_rest(last: float, kind: str | None) -> None:
    training, _ = compared_figures(
        {"GCN": [entry(0, train_loss=[900.0, 80.0, last])]}, MAE, "curves"
    )
    axis = json.loads(training.json)["layout"]["yaxis"]
    assert axis.get("type") == kind
    assert ("log scale" in axis["title"]["text"]) == (kind == "log")


@pytest.mark.parametrize(("first", "dtick"), [(900.0, "D2"), (1e5, 1), (1e19, 3)])
def test_a_loss_that_overflowed_leaves_room_for_ticks(first: float, dtick: object) -> None:
    losses = [first, None, 1.0]
    _, validation = compared_figures({"GCN": [entry(0, val_loss=losses)]}, MAE, "curves")
    assert json.loads(validation.json)["layout"]["yaxis"]["dtick"] == dtick


def test_a_run_has_its_loss_its_metric_and_its_rate() -> None:
    run = entry(0)
    loss, metric, rate = run_figures(run, MAE)
    training, validation = json.loads(loss.json)["data"]
    assert training["y"] == run.curve["train_loss"]
    assert validation["y"] == run.curve["val_loss"]
    ring = json.loads(metric.json)["data"][2]
    best = run.result["best_epoch"]
    assert (ring["x"], ring["y"]) == ([best], [run.curve["val"][best - 1]])
    assert json.loads(rate.json)["data"][0]["y"] == run.curve["lr"]
    assert json.loads(metric.json)["layout"]["yaxis"]["title"]["text"] == "MAE"
