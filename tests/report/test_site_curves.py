import dataclasses
import json
from typing import Any

import pytest
from site_example import make_entry

from fognn.paper.ledger import LedgerEntry
from fognn.paper.tables import plan
from fognn.report.metric import METRICS
from fognn.report.site_curves import loss_figures, run_figures

MAE = METRICS["mae"]


def entry(seed: int, epochs: int = 4, **curve: list[Any]) -> LedgerEntry:
    made = make_entry(plan("zinc", ["gcn"], [seed], ours=False)[0], 0.4, epochs)
    return dataclasses.replace(made, curve=made.curve | curve)


def test_seeds_are_thin_and_their_mean_is_thick_as_far_as_all_go() -> None:
    one = entry(0, 3, train_loss=[3.0, 2.0, 1.0])
    two = entry(1, 2, train_loss=[1.0, None])
    training, validation = loss_figures({"GCN": [one, two]}, MAE, "curves")
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
    training, _ = loss_figures({"GCN": [entry(0)], "GCN+FOG": [entry(1)]}, MAE, "curves")
    one, other = json.loads(training.json)["data"]
    assert (one["name"], other["name"]) == ("GCN", "GCN+FOG")
    # Told apart by colour and by dashes.
    assert one["line"]["color"] != other["line"]["color"]
    assert one["line"]["dash"] != other["line"]["dash"]
    assert "thick" not in training.caption


@pytest.mark.parametrize(("last", "kind"), [(0.1, "log"), (50.0, None)])
def test_a_first_loss_of_thousands_does_not_hide_the_rest(last: float, kind: str | None) -> None:
    training, _ = loss_figures({"GCN": [entry(0, train_loss=[900.0, 80.0, last])]}, MAE, "curves")
    axis = json.loads(training.json)["layout"]["yaxis"]
    assert axis.get("type") == kind
    assert ("log scale" in axis["title"]["text"]) == (kind == "log")


@pytest.mark.parametrize(("first", "dtick"), [(900.0, "D2"), (1e5, 1), (1e19, 3)])
def test_a_loss_that_overflowed_leaves_room_for_ticks(first: float, dtick: object) -> None:
    losses = [first, None, 1.0]
    _, validation = loss_figures({"GCN": [entry(0, val_loss=losses)]}, MAE, "curves")
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
