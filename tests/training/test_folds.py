import signal
import statistics
from pathlib import Path
from typing import Any

import pytest
from fognn.training.folds import fit_folds
from tiny_runs import metrics

from fognn.experiments import protocol
from fognn.training import Config, Result, Stopped, fit, loop
from fognn.training.run_folder import RunFolder, read_metrics, summarise

REST: dict[str, Any] = {"command": "command", "module": None, "again": False}
NAMES = [f"fold-{number}" for number in range(1, 11)]


def imdb(**values: Any) -> Config:
    usual = {"model.channels": 8, "training.epochs": 3, "training.lr": 1e-2, "machine.threads": 1}
    return protocol(
        "imdb-multi", "gcn", 0, usual | {key.replace("__", "."): v for key, v in values.items()}
    )


class StandIn:
    """Writes the files of a trained fold at once, from a table of validation scores.

    Args:
        table: A list of the scores of all epochs for each fold.
        test: Whether there is a test split.
        breaks: The fold at which it is interrupted.
    """

    def __init__(self, table: list[list[float]], test: bool = False, breaks: int = 0) -> None:
        self.table, self.test, self.breaks = table, test, breaks
        self.called: list[tuple[int, str]] = []

    def __call__(self, config: Config, folder: Path, **_: Any) -> Result:
        number = config.data.fold
        assert number is not None
        self.called.append((number, folder.name))
        if (folder / "result.json").exists():
            return Result.read(folder)
        if number == self.breaks:
            raise Stopped("stopped")
        history = [
            {
                "epoch": epoch,
                "lr": 0.01,
                "train_loss": 1.0 * epoch,
                "train_accuracy_batches": 1.0,
                "train_accuracy_items": 2.0,
                "val_loss": 10.0 * number + epoch,
                "val_accuracy_batches": score + 0.5,
                "val_accuracy_items": score,
                "train_seconds": 1.0 * number,
                "val_seconds": 0.0,
            }
            for epoch, score in enumerate(self.table[number - 1], 1)
        ]
        run = RunFolder(folder, config)
        run.write_metrics(history)
        run.close()
        scores = {"loss": 0.0, "batches": 1.0 * number, "items": 2.0 * number}
        test = {"last": scores, "best": scores} if self.test else None
        rest = {"stopped": "epochs", "parameters": 99, "device": "cpu", "ranks": 1}
        # The fold's own best epoch is another one than that of the mean.
        result = summarise(config, folder, "command", history, 1, test, commit="abc", **rest)
        result.save()
        return result


# The mean curve is 20, 45.5, 45.5, 30.
TABLE = [[20.0, 40.0 + n, 51.0 - n, 30.0] for n in range(1, 11)]


def test_the_best_epoch_is_that_of_the_mean_curve(tmp_path: Path) -> None:
    result = fit_folds(imdb(), tmp_path / "run", StandIn(TABLE), **REST)
    rows = read_metrics(tmp_path / "run")
    assert [row["val_accuracy_items"] for row in rows] == [20, 45.5, 45.5, 30]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    assert rows[1]["val_loss"] == 57, "the mean of 12, 22, ... 102"
    assert result.best_epoch == 2, "of equal epochs the first"
    assert result.val["best"] == {"loss": 57, "batches": 46, "items": 45.5}
    assert result.val["last"] == {"loss": 59, "batches": 30.5, "items": 30}
    assert result.test is None
    assert result.spread is not None
    assert result.spread["best"]["items"] == pytest.approx(statistics.stdev(range(1, 11)))
    assert result.spread["last"]["items"] == 0
    assert [entry["fold"] for entry in result.folds] == list(range(1, 11))
    assert result.folds[2]["val"]["best"] == {"loss": 32, "batches": 43.5, "items": 43}
    assert result.seconds_per_epoch == 5.5
    assert (result.parameters, result.commit, result.epochs) == (99, "abc", 4)
    assert Result.read(tmp_path / "run") == result
    assert len((tmp_path / "run" / "log.txt").read_text().splitlines()) == 11


def test_the_mean_ends_with_the_first_fold(tmp_path: Path) -> None:
    table = [row[:2] if number == 4 else row for number, row in enumerate(TABLE)]
    result = fit_folds(imdb(), tmp_path / "run", StandIn(table), **REST)
    assert result.epochs == 2
    assert result.folds[4]["epochs"] == 2
    assert result.folds[0]["epochs"] == 4


def test_a_test_fold_of_its_own(tmp_path: Path) -> None:
    config = imdb(data__holdout=True)
    result = fit_folds(config, tmp_path / "run", StandIn(TABLE, test=True), **REST)
    assert result.test is not None
    assert result.test["best"] == {"loss": 0, "batches": 5.5, "items": 11}
    assert result.spread is not None
    assert result.spread["best"]["items"] == pytest.approx(2 * statistics.stdev(range(1, 11)))


def test_interrupted_in_fold_3_it_goes_on(tmp_path: Path) -> None:
    first = StandIn(TABLE, breaks=3)
    with pytest.raises(Stopped):
        fit_folds(imdb(), tmp_path / "run", first, **REST)
    assert first.called == [(1, "fold-1"), (2, "fold-2"), (3, "fold-3")]
    assert not (tmp_path / "run" / "result.json").exists()
    result = fit_folds(imdb(), tmp_path / "run", StandIn(TABLE), **REST)
    whole = fit_folds(imdb(), tmp_path / "whole", StandIn(TABLE), **REST)
    others = {"folder", "peak_memory"}
    assert result.model_dump(exclude=others) == whole.model_dump(exclude=others)
    finished = StandIn(TABLE)
    assert fit_folds(imdb(), tmp_path / "run", finished, **REST) == result
    assert finished.called == [], "a finished run is read"


def test_ten_folds_of_imdb(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of it, on a few graphs, killed politely in fold 3 and gone on with."""
    values = {"data__fraction": 0.02, "data__folder": str(real_data), "training__epochs": 2}
    config = imdb(training__batch_size=16, **values)
    whole = fit(config, tmp_path / "whole", quiet=True)
    folders = sorted(path.name for path in (tmp_path / "whole").iterdir() if path.is_dir())
    assert folders == sorted(NAMES)
    curves = [metrics(tmp_path / "whole" / name) for name in NAMES]
    mean = metrics(tmp_path / "whole")
    assert len(mean) == 2
    for epoch, row in enumerate(mean):
        column = [float(curve[epoch]["val_accuracy_items"]) for curve in curves]
        assert float(row["val_accuracy_items"]) == pytest.approx(statistics.fmean(column))
    assert whole.epochs == 2
    assert len({curve[0]["train_loss"] for curve in curves}) == 10, "each fold has its own graphs"

    steps, original = iter(range(10**6)), loop.forward_batch
    batches = 2 * 2  # two batches an epoch, two epochs a fold

    def answer(*args: Any) -> Any:
        if next(steps) == 2 * batches + 1:
            signal.raise_signal(signal.SIGINT)
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "forward_batch", answer)
        with pytest.raises(Stopped, match=r"fold-3"):
            fit(config, tmp_path / "run", quiet=True)
    before = (tmp_path / "run" / "fold-1" / "result.json").stat().st_mtime_ns
    result = fit(config, tmp_path / "run", quiet=True)
    assert metrics(tmp_path / "run") == mean
    assert result.val == whole.val
    assert result.spread == whole.spread
    assert (tmp_path / "run" / "fold-1" / "result.json").stat().st_mtime_ns == before


def test_more_epochs(tmp_path: Path) -> None:
    short = [scores[:2] for scores in TABLE]

    def train(config: Config, folder: Path, **_: Any) -> Result:
        table = short if config.training.epochs == 2 else TABLE
        if (folder / "config.yaml").exists():  # StandIn reads a result that is there
            (folder / "result.json").unlink()
            (folder / "config.yaml").write_text(config.to_yaml())
        return StandIn(table)(config, folder)

    assert fit_folds(imdb(training__epochs=2), tmp_path / "run", train, **REST).epochs == 2
    result = fit_folds(imdb(training__epochs=4), tmp_path / "run", train, **REST)
    whole = fit_folds(imdb(training__epochs=4), tmp_path / "whole", StandIn(TABLE), **REST)
    others = {"folder", "peak_memory"}
    assert result.model_dump(exclude=others) == whole.model_dump(exclude=others)
    assert Config.read(tmp_path / "run" / "config.yaml") == imdb(training__epochs=4)
    with pytest.raises(ValueError, match=r"training\.epochs: 4 and 2"):
        fit_folds(imdb(training__epochs=2), tmp_path / "run", train, **REST)
