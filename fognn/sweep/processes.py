r"""Worker processes of this machine, seen from their parent: see :mod:`fognn.sweep.child`."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from fognn.training import Config

__all__ = ["Process", "cores", "end", "last_line", "send", "share_of", "spawn", "with_threads"]

Process = subprocess.Popen[bytes]


def cores() -> int:
    r"""The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_of(workers: int) -> int:
    r"""The threads of each of so many runs at a time: the cores, shared evenly.

    A smaller ``OMP_NUM_THREADS`` is respected, as torch does: where something else runs beside,
    more threads than cores wait for each other, and a step takes ten times as long and more.
    """
    threads = max(1, cores() // workers)
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # "2,1": a number a level
    return min(threads, int(asked)) if asked.isdecimal() and int(asked) else threads


def with_threads(config: Config, threads: int) -> Config:
    r"""The run with its share of threads, where its user asked for no number."""
    if config.machine.threads is not None:
        return config
    return config.with_values({"machine.threads": max(1, threads // config.machine.ranks)})


def spawn(request: dict[str, Any], threads: int, stdout: Any, stderr: Any) -> Process:
    r"""Starts a worker process.

    It has a session of its own: Ctrl-C reaches only the parent, which knows what to do about it.

    Args:
        request: What it shall do.
        threads: Its threads; torch looks at the environment when it is imported.
        stdout, stderr: As of :class:`subprocess.Popen`.
    """
    share = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "fognn.sweep.child"],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env=os.environ | share,
        start_new_session=True,
    )
    send(process, json.dumps(request))
    return process


def send(process: Process, line: str) -> None:
    r"""Writes a line to a worker process. If it has ended, its exit code says why."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


def end(process: Process) -> None:
    r"""Ends a worker process at once, if it has not ended, and closes its pipes."""
    if process.poll() is None:
        # The whole session: a run may have ranks of its own.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()


def last_line(path: Path) -> str:
    r"""The last line of a file that says something."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
