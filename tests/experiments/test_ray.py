import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import metrics

from fognn.experiments.ledger import ledger_of
from fognn.experiments.reproduce import reproduce
from fognn.experiments.tables import TableRun
from fognn.experiments.workers import RayPool, files_of, put_files, train_on_ray
from fognn.training import Result, fit

Plan = Callable[..., list[TableRun]]


def task(run: TableRun, folder: Path, files: dict[str, bytes] | None) -> Any:
    return train_on_ray(run.config, folder, files, None)


def test_a_task_in_a_shared_folder(tmp_path: Path, tiny_plan: Plan) -> None:
    (run,) = tiny_plan(1)
    assert task(run, tmp_path / "run", None) == ("", {})
    assert Result.read(tmp_path / "run").command.startswith("fognn train cluster gcn --seed 0")


def test_a_task_sends_its_files_back(tmp_path: Path, tiny_plan: Plan) -> None:
    (run,) = tiny_plan(1)
    reason, files = task(run, tmp_path / "run", {})
    assert (reason, (tmp_path / "run").exists()) == ("", False)
    put_files(files, tmp_path / "run")
    assert files_of(tmp_path / "run") == files
    fit(run.config, tmp_path / "alone", quiet=True)
    assert metrics(tmp_path / "run") == metrics(tmp_path / "alone")
    # An unfinished run is sent along, and resumed.
    (longer,) = tiny_plan(1, 4)
    reason, files = task(
        longer, tmp_path / "other", {k: v for k, v in files.items() if k != "result.json"}
    )
    assert reason == ""
    assert b"resumes after epoch 2" in files["log.txt"]


def test_a_task_that_fails(tmp_path: Path, tiny_plan: Plan) -> None:
    (run,) = tiny_plan(1, 50, training__lr=1e30)
    reason, files = task(run, tmp_path / "run", {})
    assert reason.startswith("TrainingError: the ")
    assert "log.txt" in files, "the next attempt resumes from there"


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'fognn\[cluster\]'"):
        RayPool("local")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A real cluster on the loopback: a head that trains nothing, and two machines of one core."""
    ray = pytest.importorskip("ray", reason="needs the extra 'cluster'")
    from ray.cluster_utils import Cluster

    options = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
    try:
        found.machines = [found.add_node(num_cpus=1, **options) for _ in range(2)]
        found.wait_for_nodes()
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


@pytest.mark.slow
def test_local(tmp_path: Path, tiny_plan: Plan) -> None:
    ray = pytest.importorskip("ray", reason="needs the extra 'cluster'")
    planned = tiny_plan(2) + tiny_plan(1, 50, training__lr=1e30)
    summary = reproduce(planned, tmp_path / "runs", tmp_path, workers=2, ray="local", quiet=True)
    assert sorted(summary.trained) == sorted(run.key for run in planned[:2])
    (reason,) = summary.failed.values()
    assert reason.startswith("TrainingError: the ")
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_a_machine_is_lost(tmp_path: Path, cluster: Any, tiny_plan: Plan, shared: bool) -> None:
    planned, runs = tiny_plan(4, 150, machine__threads=1), tmp_path / "runs"

    def lose() -> None:
        time.sleep(25)
        cluster.remove_node(cluster.machines[0], allow_graceful=False)

    thread = threading.Thread(target=lose)
    thread.start()
    summary = reproduce(
        planned, runs, tmp_path / "results", ray=cluster.address, shared=shared, quiet=True
    )
    thread.join()
    keys = sorted(run.key for run in planned)
    assert sorted(summary.trained) == keys, str(summary)
    entries = ledger_of("cluster", tmp_path / "results").entries()
    assert sorted(own.key for own in entries) == keys, "nothing is lost, or there twice"
    # A run that moved to another machine is the run that it would have been.
    for run in planned:
        alone = fit(run.config, tmp_path / "alone" / run.key, quiet=True)
        assert metrics(run.folder(runs)) == metrics(alone.folder)
