import os
from collections.abc import Callable

import pytest
import torch

from fognn.experiments.pace import Pace, Workers, fastest_workers, folds_of, measure, paces
from fognn.training import Config, TrainingError
from fognn.training.data import open_split


def test_an_epoch_is_its_steps() -> None:
    assert Pace(0.5, 0.25, 10, 4).epoch == 6.0


def test_a_run_over_folds_is_many_trainings(tiny_config: Callable[..., Config]) -> None:
    config = tiny_config().with_values({"data.name": "IMDB-MULTI"})
    assert folds_of(config) == 10
    assert folds_of(config.with_values({"data.fold": 3})) == 1
    assert folds_of(tiny_config()) == 1


def test_measured_here(tiny_config: Callable[..., Config]) -> None:
    config, calls = tiny_config(machine__threads=1, machine__ranks=2), []
    threads = torch.get_num_threads()
    pace = measure(config, 0.2, lambda: calls.append(torch.get_num_threads()))
    assert calls == [1], "the warm-up is over, with the threads of the run"
    assert torch.get_num_threads() == threads
    assert pace.train_batches == len(open_split(config, "train")) == 2
    assert pace.val_batches == len(open_split(config, "val"))
    assert min(pace.val_step, pace.train_step) > 0


@pytest.mark.slow
def test_side_by_side_and_one_that_fails(tiny_config: Callable[..., Config]) -> None:
    good, bad = paces([tiny_config(), tiny_config(data__name="TSP", data__folder="/nowhere")], 0.2)
    assert isinstance(good, Pace)
    assert good.train_batches == 2
    assert isinstance(bad, str)
    assert "Error" in bad
    assert "/nowhere" in bad


def machine_of(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))


@pytest.mark.parametrize(
    ("cores", "runs", "tried"),
    [
        (1, 5, [1]),
        (2, 5, [1, 2]),
        (2, 1, [1]),
        (12, 99, [1, 2, 4, 8, 12]),
        (8, 3, [1, 2, 3]),
    ],
)
def test_what_is_tried(
    monkeypatch: pytest.MonkeyPatch,
    tiny_config: Callable[..., Config],
    cores: int,
    runs: int,
    tried: list[int],
) -> None:
    machine_of(cores, monkeypatch)
    calls: list[int] = []

    def measured(configs: list[Config]) -> list[Pace | str]:
        calls.append(len(configs))
        return [Pace(0.1, 0.1, 1, 1)] * len(configs)

    fastest_workers(tiny_config(), runs, measured)
    assert calls == tried


@pytest.mark.parametrize(("together", "best"), [(0.12, 2), (0.3, 1)])
def test_the_fastest_is_first(
    monkeypatch: pytest.MonkeyPatch,
    tiny_config: Callable[..., Config],
    together: float,
    best: int,
) -> None:
    machine_of(2, monkeypatch)

    def measured(configs: list[Config]) -> list[Pace | str]:
        # Two runs at a time get in each other's way, a little or, without free cores, a lot.
        return [Pace(0.1 if len(configs) == 1 else together, 0.0, 1, 1)] * len(configs)

    found = fastest_workers(tiny_config(), 10, measured)
    assert found[0].workers == best
    assert found[0].rate == pytest.approx(max(2 / together, 1 / 0.1))
    assert found[0].rate > found[1].rate


def test_as_many_as_fit_into_the_memory(
    monkeypatch: pytest.MonkeyPatch, tiny_config: Callable[..., Config]
) -> None:
    machine_of(8, monkeypatch)

    def measured(configs: list[Config]) -> list[Pace | str]:
        if len(configs) > 2:
            return ["killed"] * len(configs)
        return [Pace(0.1, 0.0, 1, 1)] * len(configs)

    assert [found.workers for found in fastest_workers(tiny_config(), 99, measured)] == [2, 1]


def test_a_run_that_cannot_run(tiny_config: Callable[..., Config]) -> None:
    with pytest.raises(TrainingError, match="could not be measured: FileError: no such file"):
        fastest_workers(tiny_config(), 9, lambda configs: ["FileError: no such file"])


def test_it_reads_well() -> None:
    assert str(Workers(2, 24.06)) == "2 at a time: 24.1 steps/s"
