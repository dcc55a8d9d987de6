"""Training and evaluation of few-shot networks."""

import math
import os
import signal
import statistics
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_images import tiny_images, write_cifar
from tiny_runs import metrics, open_split

from fognn.training import Config, Result, evaluate, fit, load, loop
from fognn.utils.errors import Stopped

EPISODES, QUERIES = 6, 3


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cifar(tmp_path_factory.mktemp("data"), images=3)


def config(data: Path, **values: Any) -> Config:
    usual = {"data__n_query": QUERIES, "data__episodes": EPISODES, "training__steps": 3}
    return tiny_images(data, "gnn+fog", **(usual | values))


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return fit(config(data), tmp_path_factory.mktemp("runs") / "run", quiet=True)


@pytest.mark.parametrize("step", [2, 5])
def test_a_run_that_was_stopped_at_any_iteration_ends_the_same(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Result, step: int
) -> None:
    original, seen = loop.forward_batch, iter(range(1, 100))

    def answer(*args: Any) -> Any:
        if next(seen) == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "forward_batch", answer)
        with pytest.raises(Stopped, match=f"epoch {(step - 1) // 3 + 1}; to resume"):
            fit(config(data), tmp_path / "run", quiet=True)
    result = fit(config(data), tmp_path / "run", quiet=True)
    assert result.test == whole.test
    for name in ("last", "best"):
        one, other = (load(run.folder, name).state_dict() for run in (result, whole))
        assert all(torch.equal(one[key], other[key]) for key in other)
    untimed = [
        [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in metrics(r.folder)]
        for r in (result, whole)
    ]
    assert untimed[0] == untimed[1]


def test_the_interval_is_over_episodes(data: Path, whole: Result) -> None:
    net = load(whole.folder, "best")
    rights = []
    for tasks in open_split(config(data), "test"):
        for i in range(len(tasks.support)):
            with torch.no_grad():
                out = net(
                    tasks.support[i : i + 1], tasks.support_labels[i : i + 1], tasks.query[[i]]
                )
            right = out[0].argmax(1) == tasks.query_labels[i]
            rights.append(100 * float(right.double().mean()))
    assert len(rights) == EPISODES
    assert whole.test is not None
    best = whole.test["best"]
    assert best["items"] == pytest.approx(statistics.fmean(rights), abs=1e-4)
    expected = 1.96 * statistics.stdev(rights) / math.sqrt(EPISODES)
    assert best["interval"] == pytest.approx(expected)
    assert whole.metrics["test/accuracy/best/interval"] == best["interval"]
    assert f"± {best['interval']:.2f} %" in str(whole)
    found = evaluate(whole.folder, batch_size=1)
    assert found["accuracy_interval"] == pytest.approx(expected)
    assert found["accuracy_items"] == pytest.approx(best["items"])
