import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from tiny_runs import metrics

from fognn.experiments.child import train_one, wait_for_lock
from fognn.experiments.pool import Job
from fognn.training import Result, TrainingError, fit

# A parent that knows nothing but to start a worker, and to wait.
PARENT = """
import json, sys, time
from fognn.experiments.processes import spawn
child = spawn(json.loads(sys.argv[1]), None, None)
print(child.pid, flush=True)
time.sleep(600)
"""


def until(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def worker_of_a_killed_parent(job: Job, begun: Callable[[], bool]) -> Iterator[int]:
    """Kills the parent of a worker with SIGKILL as soon as a condition holds."""
    content = job.config.with_values({"machine.threads": 1}).to_dict()
    request = {"job": "train", "config": content, "folder": str(job.folder)}
    command = [sys.executable, "-c", PARENT, json.dumps(request)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        until(begun)
        assert alive(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        yield child
    finally:
        parent.kill()
        if alive(child):
            os.killpg(child, signal.SIGKILL)
        parent.stdout.close()


def test_no_orphans(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path, epochs=100_000)
    folder = job.folder
    with worker_of_a_killed_parent(job, (folder / "metrics.csv").exists) as child:
        until(lambda: not alive(child), 30)
    # It did not just die: it saved its place, and its lock is free.
    assert "stopped in epoch" in (folder / "log.txt").read_text()
    wait_for_lock(folder, 0.0)
    with FileLock(folder / ".lock").acquire(timeout=0):
        pass


def test_a_worker_that_still_imports(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path, epochs=100_000)
    with worker_of_a_killed_parent(job, lambda: True) as child:
        until(lambda: not alive(child), 30)
    assert not job.folder.exists(), "it ended before it had begun"


def group(leader: int) -> set[int]:
    """The processes of a group that are alive."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(pgrp) == leader and state != "Z":
            found.add(int(path.parent.name))
    return found


@pytest.mark.slow
def test_ranks_end_with_their_worker(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path, epochs=100_000, machine__ranks=2)
    with worker_of_a_killed_parent(job, (job.folder / "metrics.csv").exists) as child:
        assert len(group(child)) >= 3
        until(lambda: not group(child), 60)


@contextmanager
def held(lock: Path, seconds: float) -> Iterator[None]:
    """Another process holds a lock for a while."""
    program = (
        "import sys, time; from filelock import FileLock\n"
        "with FileLock(sys.argv[1]):\n    print(flush=True)\n    time.sleep(float(sys.argv[2]))"
    )
    command = [sys.executable, "-c", program, str(lock), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Timeout):
            FileLock(lock).acquire(timeout=0)
        yield
        other.kill()


def test_a_lock_that_is_given_back_soon_is_waited_for(
    tmp_path: Path, tiny_job: Callable[..., Job]
) -> None:
    job = tiny_job(tmp_path)
    job.folder.mkdir(parents=True)
    with held(job.folder / ".lock", 1):
        train_one(job.config.to_dict(), job.folder, "fognn again")
    assert Result.read(job.folder).command == "fognn again"
    assert len(metrics(job.folder)) == 2


def test_who_holds_it_longer_is_left_alone(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path)
    job.folder.mkdir(parents=True)
    with held(job.folder / ".lock", 600):
        wait_for_lock(job.folder, 0.3)
        with pytest.raises(TrainingError, match="is in use: another process trains in it"):
            fit(job.config, job.folder, quiet=True)


def test_a_stale_lock_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lock").write_text("4711")  # what a killed process may have left
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    wait_for_lock(tmp_path)
    wait_for_lock(tmp_path / "not there")


# A worker that does not look at signals, or has the usual handler, and has a process of its own, as
# a run with ranks.
STUBBORN = """
import signal, subprocess, sys, time
from fognn.utils import parent
parent.GRACE = 0.2
parent.Parent()
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("handler", ["ignores", "default"])
def test_a_step_that_does_not_end(handler: str) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", STUBBORN, handler],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(b"{}\n")
        worker.stdin.flush()
        rank = int(worker.stdout.readline())
        assert alive(rank)
        worker.stdin.close()  # as the kernel does when the parent ends
        assert worker.wait(60) == -signal.SIGKILL
        until(lambda: not alive(rank))
    finally:
        worker.kill()
        worker.stdout.close()


def test_the_watch_does_not_wait_for_torch() -> None:
    program = "import sys, fognn.utils.parent; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
