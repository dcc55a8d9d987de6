import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from tiny_runs import metrics

from fognn.experiments.local import LocalPool, Running, log_of, remove_logs
from fognn.experiments.pool import Job, Outcome
from fognn.training import Result, fit


def all_of(pool: LocalPool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while pool.running():
        outcomes += pool.wait(60)
    return outcomes


def until_begun(pool: LocalPool, job: Job) -> list[Outcome]:
    """Waits for the first epoch of a run; gives what ended meanwhile."""
    outcomes: list[Outcome] = []
    deadline = time.monotonic() + 90
    while not (job.folder / "metrics.csv").exists():
        outcomes += pool.wait(0.02)
        assert time.monotonic() < deadline
    return outcomes


def test_workers_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="workers must be a positive int, got 0"):
        LocalPool(0)


def test_a_killed_run_and_one_that_fails(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path / "runs", epochs=100_000)
    wrong = tiny_job(tmp_path / "wrong", epochs=50, training__lr=1e30)
    pool = LocalPool(2)
    try:
        pool.start(job)
        pool.start(wrong)
        assert not pool.free
        assert pool.running() == [job, wrong]
        outcomes = until_begun(pool, job)
        slot = pool.slots[0]
        assert slot is not None
        os.kill(slot.process.pid, signal.SIGKILL)
        outcomes += all_of(pool)
    finally:
        pool.close()
    found = {outcome.job.folder: outcome for outcome in outcomes}
    killed, diverged = found[job.folder], found[wrong.folder]
    assert killed.reason.startswith("killed by SIGKILL")
    assert "out of memory" in killed.reason
    assert diverged.reason.startswith("TrainingError: the ")
    assert diverged.log == wrong.folder.with_name(f"{wrong.folder.name}.log")
    assert "Traceback" in diverged.log.read_text()
    # The kernel gave the lock back.
    with FileLock(job.folder / ".lock").acquire(timeout=0):
        pass


def test_a_failed_run_without_output(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job, log = tiny_job(tmp_path / "runs"), tmp_path / "empty.log"
    log.touch()  # as on a full disk
    process = subprocess.Popen(["false"])
    process.wait()
    reason = Running(job, process, log).outcome().reason
    assert reason.startswith("exit code 1, and its output could not be written: check that ")
    assert "empty.log is not full" in reason


@pytest.mark.slow
def test_killed_and_stopped_it_resumes(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    alone = tiny_job(tmp_path / "alone", epochs=300, machine__threads=1)
    fit(alone.config, alone.folder, quiet=True)
    job = tiny_job(tmp_path / "runs", epochs=300)
    pool = LocalPool(2)
    try:
        pool.start(job)
        until_begun(pool, job)
        slot = pool.slots[0]
        assert slot is not None
        os.kill(slot.process.pid, signal.SIGKILL)
        all_of(pool)
        before = len(metrics(job.folder))
        pool.start(job)
        while len(metrics(job.folder)) == before:
            assert pool.wait(0.02) == []
        (stopped,) = pool.stop()
        assert stopped.reason.startswith("stopped in epoch")
        assert pool.running() == []
        pool.start(job)
        assert all_of(pool) == [Outcome(job)]
    finally:
        pool.close()
    assert (job.folder / "log.txt").read_text().count("resumes after epoch") == 2
    assert metrics(job.folder) == metrics(alone.folder), "as if nothing had happened"


@pytest.mark.slow
def test_many_runs_few_workers(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    jobs = [tiny_job(tmp_path / str(number)) for number in range(4)]
    queue = list(jobs)
    pool = LocalPool(2)
    done: list[Outcome] = []
    while queue or pool.running():
        while queue and pool.free:
            pool.start(queue.pop(0))
        assert len(pool.running()) <= 2
        done += pool.wait(60)
    assert {outcome.job.folder for outcome in done} == {job.folder for job in jobs}
    for job in jobs:
        assert Result.read(job.folder).threads == 1
        assert not job.folder.with_name(f"{job.folder.name}.log").exists()


@pytest.mark.slow
def test_the_log_of_an_interrupted_run_is_removed(
    tmp_path: Path, tiny_job: Callable[..., Job]
) -> None:
    job = tiny_job(tmp_path)
    log_of(job.folder).parent.mkdir(parents=True, exist_ok=True)
    log_of(job.folder).write_text("stopped in epoch 1\n")
    pool = LocalPool(1)
    try:
        pool.start(job)
        assert all_of(pool) == [Outcome(job)]
    finally:
        pool.close()
    assert not log_of(job.folder).exists()


def test_logs_of_killed_sweeps(tmp_path: Path) -> None:
    def run(name: str, text: str, *files: str) -> Path:
        for file in files:
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / file).touch()
        log = log_of(tmp_path / name)
        log.write_text(text)
        return log

    failed = "Traceback (most recent call last):\nTrainingError: the loss\n"
    kept = [
        run("failed-seed0", failed, "config.yaml"),
        run("notes-seed-of-mine", "written by the user\n"),
        run("mine", ""),
    ]
    removed = [
        run("finished-seed0", failed, "config.yaml", "result.json"),
        run("interrupted-seed0", "stopped in epoch 3\n", "config.yaml"),
        run("killed-seed0", "", "config.yaml"),
        run("killed-lr0.003-seed0", "a warning\n", "config.yaml"),
        run("not-begun-seed0", ""),
    ]
    written = run("running-seed0", "", "config.yaml")
    with open(written, "ab") as file:
        command = ["sh", "-c", "echo; read line"]
        fcntl.flock(file, fcntl.LOCK_SH)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file)
    remove_logs(tmp_path)
    assert sorted(tmp_path.glob("*.log")) == sorted([*kept, written])
    assert not any(log.exists() for log in removed)
    process.communicate(b"\n")
    remove_logs(tmp_path)
    assert sorted(tmp_path.glob("*.log")) == sorted(kept)
    remove_logs(tmp_path / "not there")
