import os
from collections.abc import Callable

import pytest
import torch

from fognn.sweep.pace import Pace, Split, fastest_split, folds_of, measure, paces
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
    good, bad = paces(
        [tiny_config(), tiny_config(data__name="TSP", data__folder="/nowhere")], 1, 0.2
    )
    assert isinstance(good, Pace)
    assert good.train_batches == 2
    assert isinstance(bad, str)
    assert "Error" in bad
    assert "/nowhere" in bad


def machine_of(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(
    ("cores", "runs", "tried"),
    [
        (1, 5, [(1, 1)]),
        (2, 5, [(1, 2), (2, 1)]),
        (2, 1, [(1, 2)]),
        (12, 99, [(1, 12), (2, 6), (4, 3), (8, 1), (12, 1)]),
        (8, 3, [(1, 8), (2, 4), (3, 2)]),
    ],
)
def test_what_is_tried(
    monkeypatch: pytest.MonkeyPatch,
    tiny_config: Callable[..., Config],
    cores: int,
    runs: int,
    tried: list[tuple[int, int]],
) -> None:
    machine_of(cores, monkeypatch)
    calls: list[tuple[int, int]] = []

    def measured(configs: list[Config], threads: int) -> list[Pace | str]:
        calls.append((len(configs), threads))
        return [Pace(0.1, 0.1, 1, 1)] * len(configs)

    fastest_split(tiny_config(), runs, measured)
    assert calls == tried


@pytest.mark.parametrize(("speedup", "best"), [(1.2, (2, 1)), (1.9, (1, 2))])
def test_the_fastest_is_first(
    monkeypatch: pytest.MonkeyPatch,
    tiny_config: Callable[..., Config],
    speedup: float,
    best: tuple[int, int],
) -> None:
    machine_of(2, monkeypatch)

    def measured(configs: list[Config], threads: int) -> list[Pace | str]:
        # Two runs at a time get in each other's way a little.
        seconds = 0.1 / speedup if threads == 2 else 0.12
        return [Pace(seconds, 0.0, 1, 1)] * len(configs)

    found = fastest_split(tiny_config(), 10, measured)
    assert (found[0].workers, found[0].threads) == best
    assert found[0].rate == pytest.approx(max(2 / 0.12, speedup / 0.1))
    assert found[0].rate > found[1].rate


def test_as_many_as_fit_into_the_memory(
    monkeypatch: pytest.MonkeyPatch, tiny_config: Callable[..., Config]
) -> None:
    machine_of(8, monkeypatch)

    def measured(configs: list[Config], threads: int) -> list[Pace | str]:
        if len(configs) > 2:
            return ["killed"] * len(configs)
        return [Pace(0.1, 0.0, 1, 1)] * len(configs)

    assert [found.workers for found in fastest_split(tiny_config(), 99, measured)] == [2, 1]


def test_a_run_that_cannot_run(tiny_config: Callable[..., Config]) -> None:
    with pytest.raises(TrainingError, match="could not be measured: FileError: no such file"):
        fastest_split(tiny_config(), 9, lambda configs, threads: ["FileError: no such file"])


def test_it_reads_well() -> None:
    assert str(Split(2, 1, 24.06)) == "2 x 1 threads: 24.1 steps/s"
