import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fognn.sweep.processes import cores, end, last_line, send, share_of, with_threads
from fognn.training import Config


def test_cores_are_those_that_the_process_may_use() -> None:
    mine = os.sched_getaffinity(0)
    assert cores() == len(mine)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, mine)


@pytest.mark.parametrize(
    ("asked", "workers", "threads"),
    [
        (None, 1, 8),
        (None, 3, 2),
        (None, 20, 1),
        ("1", 1, 1),
        ("3", 2, 3),
        ("3", 4, 2),
        ("2,1", 1, 2),
        ("0", 1, 8),
        ("many", 1, 8),
        ("", 1, 8),
    ],
)
def test_the_cores_are_shared_and_the_environment_is_respected(
    asked: str | None, workers: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    if asked is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert share_of(workers) == threads


@pytest.mark.parametrize(
    ("own", "ranks", "share", "threads"), [(None, 1, 4, 4), (3, 1, 4, 3), (None, 4, 2, 1)]
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
