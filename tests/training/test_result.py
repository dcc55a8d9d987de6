import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import tiny

from fognn.training import Result
from fognn.training.run_folder import State, summarise

METRIC = "balanced_accuracy"
TEST = {
    "last": {"loss": 0.5, "batches": 60.0, "items": 61.25},
    "best": {"loss": 0.4, "batches": 70.0, "items": 71.5},
}


def row(epoch: int, seconds: float) -> dict[str, Any]:
    """A row whose numbers tell where they stand."""
    content: dict[str, Any] = {"epoch": epoch, "lr": 0.1}
    for place, split in ((100, "train"), (200, "val")):
        content[f"{split}_loss"] = place + epoch
        content[f"{split}_{METRIC}_batches"] = place + epoch + 0.25
        content[f"{split}_{METRIC}_items"] = place + epoch + 0.5
    return content | {"train_seconds": seconds, "val_seconds": 1.0}


def result(folder: Path, test: Any = TEST, **values: Any) -> Result:
    state = State([row(1, 9.0), row(2, 1.0), row(3, 2.0)], 2, "rate")
    rest = {"parameters": 1234567, "device": "cpu", "ranks": 2} | values
    return summarise(tiny(seed=5), folder, state, test, command="x", **rest)


def test_scores_are_those_of_their_epochs(tmp_path: Path) -> None:
    found = result(tmp_path)
    assert found.train == {
        "last": {"loss": 103, "batches": 103.25, "items": 103.5},
        "best": {"loss": 102, "batches": 102.25, "items": 102.5},
    }
    assert found.val == {
        "last": {"loss": 203, "batches": 203.25, "items": 203.5},
        "best": {"loss": 202, "batches": 202.25, "items": 202.5},
    }
    assert found.test == TEST
    assert (found.epochs, found.best_epoch, found.stopped) == (3, 2, "rate")


def test_roundtrip(tmp_path: Path) -> None:
    found = result(tmp_path)
    found.save()
    assert Result.read(tmp_path) == found
    assert Result.read(str(tmp_path)) == found
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    content = json.loads((tmp_path / "result.json").read_text())
    assert "folder" not in content, "a run folder may be moved"
    (tmp_path / "moved").mkdir()
    (tmp_path / "result.json").rename(tmp_path / "moved" / "result.json")
    assert Result.read(tmp_path / "moved").folder == tmp_path / "moved"


def test_no_result(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"{re.escape(str(tmp_path))} is not a finished run"):
        Result.read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epochs": "many"}, "epochs"),
        ({"best_epoch": 0}, "best_epoch"),
        ({"val": {"last": {}}}, "val: last"),
        ({"test": {"last": 3}}, "test.last"),
    ],
)
def test_a_result_with_wrong_values(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    result(tmp_path).save()
    path = tmp_path / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=rf"result\.json is not a valid result \({named}"):
        Result.read(tmp_path)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"result\.json is not a valid result \(.+\): remove it"):
        Result.read(tmp_path)


def test_metrics_are_one_flat_dict(tmp_path: Path) -> None:
    found = result(tmp_path).metrics
    assert found[f"test/{METRIC}"] == 71.5, "of the network that fognn.load gives"
    assert found["test/loss"] == 0.4
    for at, over in itertools.product(("last", "best"), ("batches", "items")):
        assert found[f"test/{METRIC}/{at}/{over}"] == TEST[at][over]
    assert (found[f"val/{METRIC}"], found[f"train/{METRIC}/last/items"]) == (202.5, 103.5)
    assert len(found) == 3 * 6
    assert not [name for name in result(tmp_path, test=None).metrics if name.startswith("test")]
