import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fognn.report.run_folder import read_run

MakeRun = Callable[..., Path]


def test_finished(make_run: MakeRun) -> None:
    run = read_run(make_run("a", "gcn+fog", [20.0, 45.0, 40.0], (44.0, 43.9, 41.0, 40.9), seed=3))
    assert (run.model, run.data, run.seed, run.epochs, run.best_epoch) == (
        "gcn+fog", "CLUSTER", 3, 3, 2,
    )  # fmt: skip
    assert run.metric.label == "balanced accuracy"
    assert run.curve("val") == [20.0, 45.0, 40.0]
    assert run.curve("train") == [21.0, 46.0, 41.0]
    assert run.curve("val", "batches") == pytest.approx([19.9, 44.9, 39.9])
    assert run.loss("val") == pytest.approx([v + 0.1 for v in run.loss("train")])
    assert [run.test(when, over) for when in ("best", "last") for over in ("items", "batches")] == [
        44.0, 43.9, 41.0, 40.9,
    ]  # fmt: skip
    assert run.seconds_per_epoch == 2.0
    assert run.config["training"]["lr"] == 0.01


@pytest.mark.parametrize(("metric", "best"), [("accuracy", 2), ("f1", 2), ("mae", 1)])
def test_running(make_run: MakeRun, metric: str, best: int) -> None:
    folder = make_run("a", "gcn", [0.2, 0.5, 0.4, 0.5], metric=metric, finished=False)
    run = read_run(folder)
    assert run.result is None
    assert run.test("best", "items") is None
    assert run.best_epoch == best  # the first of those that are as good
    assert run.seconds_per_epoch == 2.0
    assert run.metric_name == metric


def test_the_time_is_the_median(make_run: MakeRun) -> None:
    folder = make_run("a", "gcn", [1.0, 2.0, 3.0], finished=False)
    file = folder / "metrics.csv"
    # The first epoch of a run is often a slow one.
    file.write_text(file.read_text().replace("1.5,0.5", "90.0,0.5", 1))
    assert read_run(folder).seconds_per_epoch == 2.0


def test_no_epoch_yet(make_run: MakeRun) -> None:
    run = read_run(make_run("a", "gcn", [], finished=False))
    assert (run.epochs, run.best_epoch, run.seconds_per_epoch) == (0, None, None)


def test_not_measured(make_run: MakeRun) -> None:
    run = read_run(make_run("a", "gcn", [math.nan, 2.0, math.inf], finished=False))
    assert run.best_epoch == 2
    assert math.isnan(run.curve("val")[0])
    file = run.folder / "metrics.csv"
    file.write_text(re.sub(r"2\.0,1\.5,0\.5", ",1.5,0.5", file.read_text()))
    assert read_run(run.folder).best_epoch is None


def test_test_split_that_was_not_looked_at(make_run: MakeRun) -> None:
    assert read_run(make_run("a", "gcn", [1.0])).test("best", "items") is None
    run = read_run(make_run("b", "gcn", [1.0], (math.nan, 1.0, 1.0, 1.0)))
    assert run.test("best", "items") is None
    assert run.test("best", "batches") == 1.0


def test_columns_of_a_later_version_do_no_harm(make_run: MakeRun) -> None:
    folder = make_run("a", "gcn", [1.0, 2.0], finished=False)
    lines = (folder / "metrics.csv").read_text().splitlines()
    (folder / "metrics.csv").write_text(
        "\n".join(f"{line},{7 * i}" for i, line in enumerate(lines))
    )
    assert read_run(folder).epochs == 2


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("nothing", "file"):
        with pytest.raises(ValueError, match=f"{name} must be the folder of a run, there is no"):
            read_run(tmp_path / name)
