from collections.abc import Callable

import pytest
import torch

from fognn.sweep.pace import Pace, folds_of, measure, paces
from fognn.training import Config
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
    # A step with gradients takes longer than one without; neither takes a second.
    assert 0 < pace.val_step < pace.train_step < 1


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
