r"""A worker process, which trains a run, or measures its speed, and ends when its parent ends.

It is started by :func:`fognn.experiments.processes.spawn`, and reads its request from the first
line of
standard input, see :mod:`fognn.utils.parent`.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fognn.experiments.entry_checks import COMPARE
from fognn.experiments.pace import measure
from fognn.training import Config, Stopped, fit
from fognn.utils.memory import MemoryLimitError
from fognn.utils.own_code import import_asked
from fognn.utils.parent import Parent

__all__ = ["main", "reason_of", "train_one", "wait_for_lock"]

# Seconds to wait for the lock of an interrupted run.
GRACE = 30.0


def main(parent: Parent) -> int:
    r"""Executes the request of the parent; returns the exit code."""
    try:
        import_asked()
        _work(parent)
    except Stopped as stop:
        print(stop, file=sys.stderr)
        return 130
    except Exception as error:
        # The parent reports the last line as the reason; the traceback stays in the log.
        traceback.print_exc()
        print(reason_of(error, parent.request.get("key", "")), file=sys.stderr)
        return 1
    return 0


def reason_of(error: BaseException, key: str) -> str:
    r"""Returns one line that says why a run of a sweep failed, with the options of the sweep.

    Args:
        error (BaseException): The cause.
        key (str): The key of the run.
    """
    text = str(error)
    if isinstance(error, MemoryLimitError):
        text = error.in_comparison if key.startswith(COMPARE) else error.in_sweep
    return " ".join(f"{type(error).__name__}: {text}".split())


def train_one(content: dict[str, Any], folder: Path, command: str | None = None) -> None:
    r"""Trains a run, resumes an interrupted one, or finds a finished one.

    Args:
        content (dict): The configuration, see :meth:`fognn.training.Config.to_dict`.
        folder (Path): The run folder.
        command (str, optional): The command that repeats the run, as in
            :func:`~fognn.training.fit`. (default: :obj:`None`)
    """
    wait_for_lock(folder)
    fit(Config.from_dict(content), folder, command=command, quiet=True)


def wait_for_lock(folder: Path, seconds: float = GRACE) -> None:
    r"""Waits while a process of an earlier sweep still saves the state of the run.

    The kernel releases the lock of a process that ends. If the lock is held for longer, another
    sweep uses the folder, and :func:`~fognn.training.fit` raises.

    Args:
        folder (Path): The run folder.
        seconds (float, optional): The longest time to wait. (default: :obj:`30.0`)
    """
    if not (folder / ".lock").exists():
        return
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=seconds, poll_interval=0.2)
    except Timeout:
        return
    lock.release()


def _work(parent: Parent) -> None:
    request = parent.request
    if request["job"] == "train":
        train_one(request["config"], Path(request["folder"]))
        return
    # Output of libraries is redirected to the log, so that the parent reads only our two lines.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def ready() -> None:
        print("ready", file=answers)
        parent.go.wait()

    pace = measure(Config.from_dict(request["config"]), request["seconds"], ready)
    print(json.dumps(vars(pace)), file=answers)
