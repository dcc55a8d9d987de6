from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import SGD
from torch.optim.lr_scheduler import ReduceLROnPlateau

from fognn.experiments.estimate import PLATEAU, Estimate, Guess, estimate, fewest_epochs
from fognn.experiments.ledger import Ledger, ledger_entry
from fognn.experiments.pace import Pace
from fognn.experiments.tables import Planned
from fognn.training import Config, TrainingConfig, fit

PLATEAUS = {"training__schedule": "plateau", "training__patience": 0, "training__min_lr": 1e-4}


def no_steps(configs: list[Config]) -> list[Pace | str]:
    raise AssertionError("nothing is to be measured")


@given(
    lr=st.floats(1e-4, 1e-1),
    factor=st.sampled_from([0.1, 0.5, 0.9]),
    patience=st.integers(0, 12),
    min_lr=st.floats(1e-6, 1e-2),
)
def test_the_fewest_epochs_are_those_of_torch(
    lr: float, factor: float, patience: int, min_lr: float
) -> None:
    training = TrainingConfig(
        "l1", "mae", epochs=10_000, lr=lr, factor=factor, patience=patience, min_lr=min_lr
    )
    adam = SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedule = ReduceLROnPlateau(adam, factor=factor, patience=patience)
    epochs = 0
    # The loop of fognn.training.loop, with a network that learns nothing.
    while not epochs or adam.param_groups[0]["lr"] >= min_lr:
        adam.step()
        schedule.step(1.0)
        epochs += 1
    assert fewest_epochs(training) == epochs


@pytest.mark.parametrize("values", [{"min_lr": 0.0}, {"factor": 1.0}, {"schedule": "step"}])
def test_a_rate_that_never_falls_below_its_end(values: dict[str, float]) -> None:
    assert fewest_epochs(TrainingConfig("l1", "mae", epochs=70, **values)) == 70


def test_the_whole(tmp_path: Path, tiny_plan: Callable[..., list[Planned]]) -> None:
    finished, begun, new, other = tiny_plan(4, 5)
    fit(finished.config, finished.folder(tmp_path / "runs"), quiet=True)
    folder = begun.folder(tmp_path / "runs")
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(begun.config.to_yaml())
    (folder / "metrics.csv").write_text("epoch,lr\n1,0.1\n2,0.1\n")
    before = sorted(tmp_path.rglob("*"))
    calls: list[int] = []

    def measured(configs: list[Config]) -> list[Pace | str]:
        calls.append(len(configs))
        return [Pace(1.0, 0.5, 8, 4) for _ in configs]

    found = estimate(
        [finished, begun, new, other], tmp_path / "runs", tmp_path / "results", 2, measured=measured
    )
    assert calls == [1], "seeds do not change the pace"
    assert [(g.done, g.epochs, g.seconds) for g in found.guesses] == [
        (0, None, 0.0),
        (2, 5, 30.0),
        (0, 5, 50.0),
        (0, 5, 50.0),
    ]
    # Worker 1: begun, other; worker 2: new.
    assert found.seconds == 80.0
    lines = str(found).split("\n")
    assert lines[0] == f"{finished.key}: finished"
    assert lines[1] == f"{begun.key}: 10.0 s per epoch, 5 epochs, 2 of them done, 30 s"
    assert lines[2] == f"{new.key}: 10.0 s per epoch, 5 epochs, 50 s"
    assert lines[4].startswith("4 runs, 3 of them to train, 2 at a time with 1 thread each: ")
    assert lines[4].endswith("1 min 20 s")
    assert len(lines) == 5, "all numbers of epochs are known"
    assert sorted(tmp_path.rglob("*")) == before, "it writes nothing"


def test_all_is_finished(tmp_path: Path, tiny_plan: Callable[..., list[Planned]]) -> None:
    (run,) = tiny_plan(1)
    fit(run.config, run.folder(tmp_path), quiet=True)
    assert estimate([run], tmp_path, tmp_path, "auto", measured=no_steps).seconds == 0


def test_a_plateau_is_assumed_or_known(
    tmp_path: Path, tiny_plan: Callable[..., list[Planned]]
) -> None:
    def measured(configs: list[Config]) -> list[Pace | str]:
        return [Pace(1.0, 0.0, 1, 1) for _ in configs]

    def guess(run: Planned) -> Guess:
        (found,) = estimate([run], tmp_path / "runs", tmp_path, 1, measured=measured).guesses
        return found

    first, second = tiny_plan(2, 40, **PLATEAUS)
    fewest = fewest_epochs(first.config.training)
    assert guess(second).source == "assumed"
    assert guess(second).epochs == PLATEAU * fewest
    assert "'perhaps': " in str(Estimate((guess(second),), 1, 1, 0.0))
    # A run of other graphs, or of another schedule, tells nothing.
    (few,) = tiny_plan(1, 3, **PLATEAUS)
    result = fit(few.config, few.folder(tmp_path / "runs"), quiet=True)
    Ledger(tmp_path / "cluster.jsonl").add(ledger_entry(few, result.folder))
    assert guess(second).source == "assumed"
    result = fit(first.config, first.folder(tmp_path / "runs"), quiet=True)
    Ledger(tmp_path / "cluster.jsonl").add(ledger_entry(first, result.folder))
    assert guess(second).source == "ledger"
    assert guess(second).epochs == result.epochs
    assert "median" in str(Estimate((guess(second),), 1, 1, 0.0))


def test_a_run_that_cannot_be_measured(
    tmp_path: Path, tiny_plan: Callable[..., list[Planned]]
) -> None:
    runs = tiny_plan(1) + tiny_plan(1, model__channels=8)

    def measured(configs: list[Config]) -> list[Pace | str]:
        return [Pace(1.0, 0.0, 1, 1), "FileError: no data"][: len(configs)]

    found = estimate(runs, tmp_path, tmp_path, 2, measured=measured)
    assert found.seconds == 2.0
    assert f"{runs[1].key}: cannot be measured: FileError: no data" in str(found)
    assert str(found).endswith("runs that cannot be measured")


def test_the_folder_of_another_run(tmp_path: Path, tiny_plan: Callable[..., list[Planned]]) -> None:
    one, two = tiny_plan(2)
    one.folder(tmp_path).mkdir(parents=True)
    (one.folder(tmp_path) / "config.yaml").write_text(two.config.to_yaml())
    with pytest.raises(ValueError, match="holds another run"):
        estimate([one], tmp_path, tmp_path, 1, measured=no_steps)
