r"""Start and end of worker processes (see :mod:`fognn.experiments.child`) on this machine."""

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

__all__ = ["Process", "cores", "end", "last_line", "send", "spawn", "with_threads"]

Process = subprocess.Popen[bytes]


def with_threads(config: Config, threads: int = 1) -> Config:
    r"""Returns the run with a number of threads, unless it has one.

    The runs of a sweep have one thread each: on small graphs several runs with one thread do more
    steps than one run with several, and threads that wait for each other make a step ten times as
    slow on a machine whose cores other programs use.

    Args:
        config (Config): The run.
        threads (int, optional): Number of threads of all its ranks together. (default: :obj:`1`)
    """
    if config.machine.threads is not None:
        return config
    return config.with_values({"machine.threads": max(1, threads // config.machine.ranks)})


def spawn(request: dict[str, Any], stdout: Any, stderr: Any) -> Process:
    r"""Starts a worker process.

    The process has its own session, so that Ctrl-C is sent to the parent only. The number of
    threads of its run is set in the environment, too, which torch reads on import.

    Args:
        request (dict): The request, see :mod:`fognn.experiments.child`.
        stdout (file): As in :class:`subprocess.Popen`.
        stderr (file): As in :class:`subprocess.Popen`.
    """
    threads = str(request["config"]["machine"]["threads"])
    share = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    process = subprocess.Popen(
        [sys.executable, "-m", "fognn.utils.parent", "fognn.experiments.child"],
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
    r"""Returns the last line of a file that is not empty; an empty string if there is none."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
