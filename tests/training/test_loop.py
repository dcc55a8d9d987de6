import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, tiny

from fognn.training import Config, Stopped, TrainingError, fit, loop
from fognn.training.networks import read_checkpoint


def run(config: Config, folder: Path) -> list[dict[str, str]]:
    fit(config, folder, quiet=True)
    return metrics(folder)


# With dropout, and a learning rate that changes in each step.
FULL = {
    "model__dropout": 0.3,
    "training__optimizer": "adamw",
    "training__schedule": "cosine",
    "training__clip": 0.5,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The metrics of an undisturbed run."""
    return run(tiny(**FULL), tmp_path_factory.mktemp("whole"))


def test_what_a_run_leaves(tmp_path: Path) -> None:
    config = tiny()
    result = fit(config, tmp_path / "run", quiet=True)
    names = {path.name for path in result.folder.iterdir()} - {".lock"}
    assert names == {
        *("config.yaml", "metrics.csv", "last.ckpt", "best.ckpt", "result.json", "log.txt")
    }
    assert Config.read(result.folder / "config.yaml") == config
    rows = metrics(result.folder)
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert result.epochs == 3
    assert result.stopped == "epochs"
    assert result.val["last"]["items"] == float(rows[-1]["val_balanced_accuracy_items"])
    best = max(rows, key=lambda row: float(row["val_balanced_accuracy_items"]))
    assert result.best_epoch == int(best["epoch"])
    assert result.val["best"]["batches"] == float(best["val_balanced_accuracy_batches"])
    assert read_checkpoint(result.folder / "best.ckpt")["epoch"] == result.best_epoch
    assert result.test is not None
    assert set(result.test) == {"last", "best"}


def test_same_seed_same_bits(tmp_path: Path, whole: list[dict[str, str]]) -> None:
    assert run(tiny(**FULL), tmp_path / "run") == whole
    assert run(tiny(**FULL, seed=1), tmp_path / "other") != whole


def test_training_does_not_touch_the_callers_random_numbers(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(tiny(training__epochs=1), tmp_path / "run", quiet=True)
    assert torch.equal(torch.rand(3), expected)


def test_a_finished_run_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fit(tiny(), tmp_path / "run", quiet=True)
    monkeypatch.setattr(loop, "untrained_model", None)
    assert fit(tiny(), tmp_path / "run", quiet=True) == first


def test_a_wrong_setting_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no setting 'hh'"):
        fit(tiny(model__hh=3), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def interrupt(monkeypatch: pytest.MonkeyPatch, step: int, number: signal.Signals) -> None:
    """Sends a signal to this process during the given step, counted from 1."""
    steps = iter(range(1, 1000))
    original = loop.forward_batch

    def answer(*args: Any) -> Any:
        if next(steps) == step:
            os.kill(os.getpid(), number)
        return original(*args)

    monkeypatch.setattr(loop, "forward_batch", answer)


@pytest.mark.parametrize(
    ("step", "number"), [(1, signal.SIGINT), (3, signal.SIGTERM), (6, signal.SIGINT)]
)
def test_a_stopped_run_is_resumed_by_the_same_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole: list[dict[str, str]],
    step: int,
    number: signal.Signals,
) -> None:
    config = tiny(**FULL)
    with monkeypatch.context() as patch:
        interrupt(patch, step, number)
        with pytest.raises(Stopped, match=f"stopped in epoch {(step + 1) // 2}; to resume .*fognn"):
            fit(config, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run" / "result.json").exists()
    assert run(config, tmp_path / "run") == whole


def test_nan_stops_with_what_to_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = loop.loss_of
    steps = iter(range(1, 1000))

    def loss_of(*args: Any) -> Any:
        loss = original(*args)
        return loss * float("nan") if next(steps) == 4 else loss

    monkeypatch.setattr(loop, "loss_of", loss_of)
    with pytest.raises(TrainingError, match=r"epoch 2, batch 2, at a learning rate of 0\.001") as e:
        fit(tiny(), tmp_path / "run", quiet=True)
    assert "--lr 0.0001" in str(e.value)
    last = read_checkpoint(tmp_path / "run" / "last.ckpt")
    assert len(last["state"]["history"]) == 1
    assert all(torch.isfinite(value).all() for value in last["model"].values())
    assert "epoch 2, batch 2" in (tmp_path / "run" / "log.txt").read_text()


def failing(epochs: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation gives NaN in these epochs."""
    original = loop.evaluate_model
    calls = iter(range(1, 1000))

    def evaluate_model(*args: Any) -> dict[str, float]:
        scores = original(*args)
        return scores | {"loss": float("nan")} if next(calls) in epochs else scores

    monkeypatch.setattr(loop, "evaluate_model", evaluate_model)


def test_a_validation_that_fails_first_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on graphs without node features, whose batch statistics have almost no variance."""
    original, calls = loop.evaluate_model, iter(range(1, 1000))

    def evaluate_model(*args: Any) -> dict[str, float]:
        scores = original(*args)
        return dict.fromkeys(scores, float("nan")) if next(calls) == 1 else scores

    monkeypatch.setattr(loop, "evaluate_model", evaluate_model)
    result = fit(tiny(training__epochs=3), tmp_path / "run", quiet=True)
    rows = metrics(tmp_path / "run")
    best = max(rows[1:], key=lambda row: float(row["val_balanced_accuracy_items"]))
    assert result.best_epoch == int(best["epoch"]) > 1


def test_a_validation_that_always_fails_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(set(range(1, 100)), monkeypatch)
    with pytest.raises(TrainingError, match="the validation loss after epoch 11"):
        fit(tiny(training__epochs=50), tmp_path / "run", quiet=True)


def test_plateau_halves_the_rate_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A validation loss that never falls: patience 1, so the rate halves after every 2 bad epochs.
    scores = {"loss": 1.0, "batches": 50.0, "items": 50.0}
    monkeypatch.setattr(loop, "evaluate_model", lambda *_: dict(scores))
    values = {"training__patience": 1, "training__min_lr": 2e-4, "training__epochs": 99}
    result = fit(tiny(**values), tmp_path / "run", quiet=True)
    rates = [float(row["lr"]) for row in metrics(tmp_path / "run")]
    assert rates == [1e-3] * 3 + [5e-4] * 2 + [2.5e-4] * 2
    assert result.stopped == "rate"
    assert result.best_epoch == 1, "of equal epochs the first is the best"
