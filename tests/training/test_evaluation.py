import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import molecules, open_split, tiny

from fognn.data.graph_files import write_graphs
from fognn.experiments import protocol
from fognn.training import Result, evaluate, fit, load
from fognn.training.config import Config
from fognn.training.run_folder import State

EVERY = [(split, at) for split in ("val", "test") for at in ("best", "last")]


def check(result: Result, folder: Path, split: str, at: str, **rest: Any) -> None:
    """Evaluation gives what stands in result.json, to the last bit."""
    scores = getattr(Result.read(folder), split)[at]
    found = evaluate(folder, split, at, threads=1, **rest)
    expected = {k if k == "loss" else f"{result.metric}_{k}": v for k, v in scores.items()}
    assert {"loss", f"{result.metric}_batches", f"{result.metric}_items"} <= expected.keys()
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert found.keys() - expected.keys() <= {"accuracy_interval", f"{result.metric}_majority"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Result:
    # Five graphs to validate on, in two batches: the means over batches and over items differ.
    config = tiny(data__fraction=0.005, training__batch_size=3, training__lr=0.05)
    with pytest.MonkeyPatch.context() as patch:
        # Which of so few epochs is the best depends on the processor's rounding.
        patch.setattr(State, "is_best", lambda self, metric: len(self.history) <= 2)
        return fit(config, tmp_path_factory.mktemp("runs") / "cluster", quiet=True)


@pytest.mark.parametrize(("split", "at"), EVERY)
def test_as_the_result_says_on_nodes(cluster: Result, split: str, at: str) -> None:
    check(cluster, cluster.folder, split, at)


def test_by_default_the_best_network_on_the_test_split(cluster: Result) -> None:
    assert evaluate(cluster.folder) == evaluate(cluster.folder, "test", "best")
    assert evaluate(cluster.folder / "last.ckpt") == evaluate(cluster.folder, "test", "last")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("runs")
    write_graphs(folder / "graphs.npz", molecules(60))
    values = {"training.epochs": 3, "training.batch_size": 4, "model.channels": 8}
    config = protocol(str(folder / "graphs.npz"), "gcn", 0, values | {"machine.threads": 1})
    return fit(config, folder / "run", quiet=True)


@pytest.mark.parametrize(("split", "at"), EVERY)
def test_as_the_result_says_on_graphs(own: Result, split: str, at: str) -> None:
    check(own, own.folder, split, at)
    scores = getattr(own, split)[at]
    assert scores["batches"] != scores["items"], "six graphs are a batch of four and one of two"


def test_the_training_split_by_hand(own: Result) -> None:
    net = load(own.folder)
    config = Config.read(own.folder / "config.yaml")
    errors = []
    with torch.no_grad():
        for batch in open_split(config, "train"):
            out = net(batch.x, batch.edge_index, batch.edge_attr, batch.batch, batch.num_graphs)
            errors.append((out.squeeze(1) - batch.y).abs().numpy())
    found = evaluate(own.folder, "train")
    assert found["mae_items"] == pytest.approx(float(np.concatenate(errors).mean()), rel=1e-5)
    batches = statistics.fmean(float(error.mean()) for error in errors)
    assert found["mae_batches"] == pytest.approx(batches, rel=1e-5)


def test_wrong_arguments(cluster: Result, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="split must be one of train, val, test, got 'dev'"):
        evaluate(cluster.folder, "dev")
    with pytest.raises(ValueError, match=r"checkpoint must be .*best.*last.* got 'first'"):
        evaluate(cluster.folder, checkpoint="first")
    with pytest.raises(ValueError, match=r"machine\.device: .* got 'tpu'"):
        evaluate(cluster.folder, device="tpu")
    with pytest.raises(ValueError, match=r"machine\.threads: .* got 0"):
        evaluate(cluster.folder, threads=0)
    with pytest.raises(ValueError, match="run must be a run folder or a checkpoint"):
        evaluate(tmp_path)
