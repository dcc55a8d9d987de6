r"""A worker process: trains one run, or measures its pace, and never outlives its parent.

It is started as ``python -m fognn.sweep.child``. The first line on its standard input says what to
do. The parent keeps the other end of that pipe open: when it is gone, however it ended, the kernel
closes the pipe, and the child saves its run and ends.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fognn.sweep.pace import measure
from fognn.training import Config, Stopped, fit

__all__ = ["main", "train_one", "wait_for_lock"]

# A run that was asked to stop finishes its step and writes a checkpoint.
GRACE = 30.0


def main() -> int:
    r"""Does what the first line of standard input says; returns the exit code."""
    lines = _lines()
    request = json.loads(next(lines))
    go = threading.Event()
    threading.Thread(target=_watch, args=(lines, go), daemon=True).start()
    try:
        _work(request, go)
    except Stopped as stop:
        print(stop, file=sys.stderr)
        return 130
    except Exception as error:
        # The last line is the reason that the parent reports; the stack stays in the log.
        traceback.print_exc()
        print(" ".join(f"{type(error).__name__}: {error}".split()), file=sys.stderr)
        return 1
    return 0


def train_one(content: dict[str, Any], folder: Path, command: str | None = None) -> None:
    r"""Trains a run, goes on with it, or finds it finished.

    Args:
        content: The configuration.
        folder: Its folder.
        command: How to repeat it, as in :func:`~fognn.training.fit`.
    """
    wait_for_lock(folder)
    fit(Config.from_dict(content), folder, command, quiet=True)


def wait_for_lock(folder: Path, seconds: float = GRACE) -> None:
    r"""Waits while a process of an earlier sweep still saves the run.

    The lock is the kernel's: the one of a dead process is free, whatever files it left. Who holds
    it longer is another sweep; :func:`~fognn.training.fit` then says so.
    """
    if not (folder / ".lock").exists():
        return
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=seconds, poll_interval=0.2)
    except Timeout:
        return
    lock.release()


def _work(request: dict[str, Any], go: threading.Event) -> None:
    if request["job"] == "train":
        train_one(request["config"], Path(request["folder"]))
        return
    # Whatever a library prints goes to the log, so that the parent reads only our two lines.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def ready() -> None:
        print("ready", file=answers)
        go.wait()

    pace = measure(Config.from_dict(request["config"]), request["seconds"], ready)
    print(json.dumps(vars(pace)), file=answers)


def _lines() -> Iterator[str]:
    # Not sys.stdin: a thread that waits in it holds a lock that the end of the process needs.
    rest = b""
    while part := os.read(0, 1 << 16):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in whole)


def _watch(lines: Iterator[str], go: threading.Event) -> None:
    for _ in lines:
        go.set()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
