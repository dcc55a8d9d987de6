"""Runs over folds: the mean of their curves, and resuming."""

import statistics
from pathlib import Path
from typing import Any

import pytest

from fognn.experiments import protocol
from fognn.training import Config, Result, Stopped, fit, run
from fognn.training.run_folder import RunFolder, State, read_metrics, summarise

# The mean curve is 20, 45.5, 45.5, 30.
TABLE = [[20.0, 40.0 + n, 51.0 - n, 30.0] for n in range(1, 11)]


def imdb(**values: Any) -> Config:
    usual = {"model.channels": 8, "training.epochs": 4, "training.lr": 1e-2, "machine.threads": 1}
    return protocol(
        "imdb-multi", "gcn", 0, usual | {key.replace("__", "."): v for key, v in values.items()}
    )


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Writes the files of a trained fold at once, from a table of validation scores."""
    options: dict[str, Any] = {"table": TABLE, "test": False, "breaks": 0, "called": []}

    def on_ranks(config: Config, function: Any, folder: Path, **_: Any) -> Result:
        number = config.data.fold or 0
        options["called"].append(number)
        if number == options["breaks"]:
            raise Stopped("stopped")
        history = []
        for epoch, score in enumerate(options["table"][number - 1], 1):
            row = {"epoch": epoch, "lr": 0.01, "train_loss": 1.0, "val_loss": 10.0 * number + epoch}
            row |= {"train_accuracy_batches": 1.0, "train_accuracy_items": 2.0}
            row |= {"val_accuracy_batches": score + 0.5, "val_accuracy_items": score}
            history.append(row | {"train_seconds": 1.0 * number, "val_seconds": 0.0})
        with RunFolder(folder, config) as place:
            place.write_metrics(history)
        scores = {"loss": 0.0, "batches": 1.0 * number, "items": 2.0 * number}
        test = {"last": scores, "best": scores} if options["test"] else None
        rest = {"parameters": 99, "device": "cpu", "ranks": 1}
        state = State(history, 1, "epochs", ["abc"])
        # The fold's own best epoch is another one than that of the mean.
        result = summarise(config, folder, state, test, command="x", **rest)
        result.save()
        return result

    monkeypatch.setattr(run, "on_ranks", on_ranks)
    monkeypatch.setattr(run, "untrained_model", lambda *_: None)
    return options


def test_the_best_epoch_is_that_of_the_mean_curve(tmp_path: Path, stand_in: dict[str, Any]) -> None:
    result = fit(imdb(), tmp_path / "run")
    rows = read_metrics(tmp_path / "run")
    assert [row["val_accuracy_items"] for row in rows] == [20, 45.5, 45.5, 30]
    assert rows[1]["val_loss"] == 57, "the mean of 12, 22, ... 102"
    assert result.best_epoch == 2, "of equal epochs the first"
    assert result.val["best"] == {"loss": 57, "batches": 46, "items": 45.5}
    assert result.val["last"] == {"loss": 59, "batches": 30.5, "items": 30}
    assert result.test is None
    assert result.spread is not None
    assert result.spread["best"]["items"] == pytest.approx(statistics.stdev(range(1, 11)))
    assert [entry["fold"] for entry in result.folds] == list(range(1, 11))
    assert result.folds[2]["val"]["best"] == {"loss": 32, "batches": 43.5, "items": 43}
    assert (result.parameters, result.commit, result.epochs) == (99, "abc", 4)
    assert Result.read(tmp_path / "run") == result


def test_the_mean_ends_with_the_first_fold_and_has_a_test_of_its_own(
    tmp_path: Path, stand_in: dict[str, Any]
) -> None:
    table = [row[:2] if number == 4 else row for number, row in enumerate(TABLE)]
    stand_in |= {"table": table, "test": True}
    result = fit(imdb(data__holdout=True), tmp_path / "run")
    assert (result.epochs, result.folds[4]["epochs"], result.folds[0]["epochs"]) == (2, 2, 4)
    assert result.test is not None
    assert result.test["best"] == {"loss": 0, "batches": 5.5, "items": 11}


def test_interrupted_in_fold_3_it_resumes(tmp_path: Path, stand_in: dict[str, Any]) -> None:
    stand_in["breaks"] = 3
    with pytest.raises(Stopped):
        fit(imdb(), tmp_path / "run")
    assert not (tmp_path / "run" / "result.json").exists()
    stand_in |= {"breaks": 0, "called": []}
    result = fit(imdb(), tmp_path / "run")
    assert stand_in["called"] == list(range(3, 11)), "the finished ones are read"
    whole = fit(imdb(), tmp_path / "whole")
    others = {"folder", "peak_memory", "command"}
    assert result.model_dump(exclude=others) == whole.model_dump(exclude=others)
    stand_in["called"] = []
    assert fit(imdb(), tmp_path / "run") == result
    assert stand_in["called"] == [], "a finished run is read"
