r"""Start and end of worker processes (see :mod:`fognn.sweep.child`) on this machine."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from fognn.training import Config
from fognn.training.environment import cores

__all__ = ["Process", "cores", "end", "last_line", "send", "share_of", "spawn", "with_threads"]

Process = subprocess.Popen[bytes]


def share_of(workers: int) -> int:
    r"""Returns the number of threads of each run: the cores, divided evenly.

    A smaller ``OMP_NUM_THREADS`` is respected, as in torch: if other programs use the machine, more
    threads than free cores make a step ten times as slow or worse.

    Args:
        workers (int): Number of runs at a time.
    """
    threads = max(1, cores() // workers)
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # "2,1": nested levels
    return min(threads, int(asked)) if asked.isdecimal() and int(asked) else threads


def with_threads(config: Config, threads: int) -> Config:
    r"""Returns the run with a number of threads, unless it has one.

    Args:
        config (Config): The run.
        threads (int): Number of threads of all its ranks together.
    """
    if config.machine.threads is not None:
        return config
    return config.with_values({"machine.threads": max(1, threads // config.machine.ranks)})


def spawn(request: dict[str, Any], threads: int, stdout: Any, stderr: Any) -> Process:
    r"""Starts a worker process.

    The process has its own session, so that Ctrl-C is sent to the parent only.

    Args:
        request (dict): The request, see :mod:`fognn.sweep.child`.
        threads (int): Number of threads, set in the environment, which torch reads on import.
        stdout (file): As in :class:`subprocess.Popen`.
        stderr (file): As in :class:`subprocess.Popen`.
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
    r"""Writes a line to a worker process; does nothing if the process has ended."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


def end(process: Process) -> None:
    r"""Kills a worker process, unless it has ended, and closes its pipes."""
    if process.poll() is None:
        # The whole process group, because a run can have several ranks.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()


def last_line(path: Path) -> str:
    r"""Returns the last line of a file that is not empty."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
