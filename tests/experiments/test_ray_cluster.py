import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_runs import metrics

from fognn.experiments.ledger import Ledger
from fognn.experiments.pool import Job
from fognn.experiments.ray_cluster import RayPool, files_of, put_files, run_task
from fognn.experiments.reproduce import reproduce
from fognn.experiments.tables import TableRun
from fognn.training import Result, Stopped, fit

Plan = Callable[..., list[TableRun]]


def request(job: Job, **changes: Any) -> dict[str, Any]:
    marker = job.folder.parent / ".shared-1"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    return {
        "key": job.key,
        "config": job.config.to_dict(),
        "folder": str(job.folder),
        "command": "fognn again",
        "marker": str(marker),
        "shared": None,
        "session": "test",
        "files": {},
    } | changes


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the machine of a task."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.mark.parametrize("shared", [None, True])
def test_a_task_that_sees_the_folder(
    tmp_path: Path, machine: Path, tiny_job: Callable[..., Job], shared: bool | None
) -> None:
    job = tiny_job(tmp_path / "runs")
    answer = run_task(request(job, shared=shared))
    assert answer == {"reason": "", "log": "", "files": {}}
    assert Result.read(job.folder).command == "fognn again"
    assert not machine.exists()


@pytest.mark.parametrize("changes", [{"shared": False}, {"marker": "/not/seen"}])
def test_a_task_that_does_not(
    tmp_path: Path, machine: Path, tiny_job: Callable[..., Job], changes: dict[str, Any]
) -> None:
    job = tiny_job(tmp_path / "runs")
    answer = run_task(request(job, **changes))
    assert answer["reason"] == ""
    assert not job.folder.exists()
    assert list(machine.rglob("*")) == [], "nothing is left there"
    put_files(answer["files"], job.folder)
    assert files_of(job.folder) == answer["files"]
    alone = fit(job.config, tmp_path / "alone", quiet=True)
    assert metrics(job.folder) == metrics(alone.folder)


def test_a_half_done_run_is_sent_along(
    tmp_path: Path, machine: Path, tiny_job: Callable[..., Job]
) -> None:
    job = tiny_job(tmp_path / "runs", epochs=4)
    fit(job.config, tmp_path / "alone", quiet=True)
    with pytest.MonkeyPatch.context() as patch:  # it is stopped after its second batch
        patch.setattr("fognn.training.loop.StopSignals", _Asked)
        with pytest.raises(Stopped):
            fit(job.config, job.folder, quiet=True)
    answer = run_task(request(job, shared=False, files=files_of(job.folder)))
    put_files(answer["files"], job.folder)
    assert "resumes after epoch 0" in (job.folder / "log.txt").read_text()
    assert metrics(job.folder) == metrics(tmp_path / "alone")


class _Asked:
    asked = True

    def __enter__(self) -> "_Asked":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_a_task_that_should_see_the_folder_and_does_not(
    tmp_path: Path, tiny_job: Callable[..., Job]
) -> None:
    answer = run_task(request(tiny_job(tmp_path), shared=True, marker="/not/seen"))
    assert answer["reason"].startswith(f"shared must be False, {os.uname().nodename} has no ")


def test_a_task_that_fails(tmp_path: Path, machine: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path / "runs", epochs=50, training__lr=1e30)
    answer = run_task(request(job, shared=False))
    assert answer["reason"].startswith("TrainingError: the ")
    assert "Traceback" in answer["log"]
    assert "log.txt" in answer["files"], "the next attempt resumes from there"


@settings(max_examples=25)  # each file is synced to the disk
@given(
    st.dictionaries(
        st.from_regex(r"(fold-[1-9]/)?[a-z]{1,8}\.(csv|json|ckpt)", fullmatch=True),
        st.binary(max_size=64),
    )
)
def test_files_there_and_back(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        put_files(files, Path(folder) / "run")
        (Path(folder) / "run").mkdir(exist_ok=True)
        (Path(folder) / "run" / ".lock").touch()
        assert files_of(Path(folder) / "run") == files
    assert files_of(Path(folder) / "not there") == {}


def test_the_result_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (names.append(Path(b).name), real(a, b)))
    put_files({"result.json": b"", "a": b"", "z": b""}, tmp_path)
    assert names == ["a", "z", "result.json"]


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'fognn\[cluster\]'"):
        RayPool("local")


@pytest.fixture
def ray() -> Iterator[Any]:
    module = pytest.importorskip("ray", reason="needs the extra 'cluster'")
    yield module
    module.shutdown()


@pytest.mark.slow
def test_local(tmp_path: Path, ray: Any, tiny_plan: Plan) -> None:
    planned = tiny_plan(2) + tiny_plan(1, 50, training__lr=1e30)
    summary = reproduce(planned, tmp_path / "runs", tmp_path, workers=2, ray="local", quiet=True)
    assert sorted(summary.trained) == sorted(run.key for run in planned[:2])
    (failed,) = summary.failed
    assert failed.reason.startswith("TrainingError: the ")
    assert failed.log is not None
    assert "Traceback" in failed.log.read_text()
    assert not ray.is_initialized()
    assert list((tmp_path / "runs").rglob(".shared-*")) == []
    for run in planned[:2]:
        assert Result.read(run.folder(tmp_path / "runs")).threads == 1


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_stopped_it_resumes(tmp_path: Path, ray: Any, tiny_job: Any, shared: bool) -> None:
    job = tiny_job(tmp_path / "runs", epochs=100_000)
    pool = RayPool("local", 1, shared)
    try:
        pool.start(job)
        assert pool.wait(25) == []
        (outcome,) = pool.stop()
    finally:
        pool.close()
    assert outcome.reason.startswith("stopped in epoch")
    assert (job.folder / "last.ckpt").exists()
    assert not (job.folder / "result.json").exists()


@pytest.fixture
def cluster(ray: Any) -> Iterator[Any]:
    """A real cluster on the loopback: a head that trains nothing, and two machines of one core."""
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
@pytest.mark.parametrize("shared", [True, False])
def test_a_machine_is_lost(tmp_path: Path, cluster: Any, tiny_plan: Plan, shared: bool) -> None:
    planned = tiny_plan(4, 150, machine__threads=1)
    runs = tmp_path / "runs"
    lost: list[float] = []

    # Without shared storage a run is in the temporary folder of its machine, that is, of this one.
    where, pattern = (runs, "*/*") if shared else (Path(tempfile.gettempdir()), "fognn-*/*/*")
    others = set(where.glob(f"{pattern}/metrics.csv"))

    def begun() -> int:
        return len(set(where.glob(f"{pattern}/metrics.csv")) - others)

    def lose() -> None:
        deadline = time.monotonic() + 120
        while begun() < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        cluster.remove_node(cluster.machines[0], allow_graceful=False)
        lost.append(time.monotonic())

    thread = threading.Thread(target=lose)
    thread.start()
    summary = reproduce(
        planned, runs, tmp_path / "results", ray=cluster.address, shared=shared, quiet=True
    )
    ended = time.monotonic()
    thread.join()
    assert lost
    assert lost[0] < ended - 3, "it was lost in the middle"
    keys = [run.key for run in planned]
    assert sorted(summary.trained) == sorted(keys), str(summary)
    # Nothing is lost, and nothing is there twice.
    ledger = (tmp_path / "results" / "cluster.jsonl").read_text().splitlines()
    assert len(ledger) == len(keys)
    entries = Ledger(tmp_path / "results" / "cluster.jsonl").entries()
    assert sorted(entry.key for entry in entries) == sorted(keys)
    logs = [(run.folder(runs) / "log.txt").read_text() for run in planned]
    assert all(log.count("gcn on CLUSTER, seed") == 1 for log in logs)
    if shared:
        again = [log for log in logs if "resumes after epoch" in log]
        assert again, "the lost run resumed from its last checkpoint"
        assert "resumes after epoch 0" not in again[0]
    # A run that moved to another machine is the run that it would have been.
    for run in planned:
        alone = fit(run.config, tmp_path / "alone" / run.name, quiet=True)
        assert metrics(run.folder(runs)) == metrics(alone.folder)
