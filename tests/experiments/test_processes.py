import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fognn.experiments.processes import cores, end, last_line, send, spawn, with_threads
from fognn.training import Config


def test_cores_are_those_that_the_process_may_use() -> None:
    mine = os.sched_getaffinity(0)
    assert cores() == len(mine)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, mine)


@pytest.mark.parametrize("asked", [None, "1", "7"])
@pytest.mark.parametrize(("own", "threads"), [(None, "1"), (3, "3")])
def test_a_worker_has_one_thread_or_those_of_its_run(
    asked: str | None,
    own: int | None,
    threads: str,
    tiny_config: Callable[..., Config],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if asked is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    started: list[dict[str, str]] = []

    class Started:
        stdin = io.BytesIO()

        def __init__(self, command: list[str], env: dict[str, str], **_: Any) -> None:
            started.append(env)

    monkeypatch.setattr(subprocess, "Popen", Started)
    config = with_threads(tiny_config(machine__threads=own))
    spawn({"job": "train", "config": config.to_dict()}, None, None)
    assert [started[0][f"{name}_NUM_THREADS"] for name in ("OMP", "MKL")] == [threads] * 2


@pytest.mark.parametrize(
    ("own", "ranks", "share", "threads"),
    [(None, 1, 1, 1), (None, 1, 4, 4), (3, 1, 4, 3), (None, 4, 2, 1)],
)
def test_a_run_has_its_share_of_threads(
    own: int | None,
    ranks: int,
    share: int,
    threads: int,
    tiny_config: Callable[..., Config],
) -> None:
    config = tiny_config(machine__threads=own, machine__ranks=ranks)
    assert with_threads(config, share).machine.threads == threads
    assert with_threads(config, share).identity() == config.identity()


def test_the_end_takes_the_whole_session_along() -> None:
    program = (
        "import subprocess; print(subprocess.Popen(['sleep', '100']).pid, flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    end(process)
    assert process.returncode == -9
    deadline = time.monotonic() + 10
    while is_alive(grandchild):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    end(process)  # a second time is no error
    assert process.stdout.closed


def test_a_word_to_a_dead_process_is_no_error() -> None:
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    process.wait()
    send(process, "go")
    end(process)


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("\n \n", ""), ("one\ntwo\n\n", "two"), ("a\x85b\u2028c\n", "a\x85b\u2028c")],
)
def test_last_line(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "log").write_text(text, encoding="utf-8")
    assert last_line(tmp_path / "log") == line


def test_last_line_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"bad \xff byte\n")
    assert last_line(tmp_path / "log") == "bad \N{REPLACEMENT CHARACTER} byte"


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is more than a dead entry of the table."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
