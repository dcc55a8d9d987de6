r"""A process that ends when its parent ends: ``python -m fognn.utils.parent MODULE`` calls
``MODULE.main(parent)``.

The parent keeps the other end of standard input open. When it ends, in any way, the kernel closes
the pipe. This module imports neither torch nor MODULE before it watches the pipe, because those
imports take seconds.
"""

import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["Parent"]

# Seconds for a run whose parent has ended to finish its step and to write a checkpoint. An
# evaluation may take longer; then the checkpoint is that of the last epoch.
GRACE = 10.0


class Parent:
    r"""The parent of this process.

    A run that handles SIGTERM saves its state, and is killed if that takes longer than 10 seconds.
    Before it does, this process is killed at once.
    """

    def __init__(self) -> None:
        lines = _lines()
        self.request: dict[str, Any] = json.loads(next(lines, "{}"))
        r"""The first line of standard input."""
        self.go = threading.Event()
        r"""Set when the parent sends a second line."""
        threading.Thread(target=self._watch, args=(lines,), daemon=True).start()

    def _watch(self, lines: Iterator[str]) -> None:
        for _ in lines:
            self.go.set()
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(GRACE)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)  # with the processes of its ranks
        os._exit(1)


def _lines() -> Iterator[str]:
    # Not sys.stdin: a thread that reads from it holds a lock, which blocks the interpreter's exit.
    rest = b""
    while part := os.read(0, 1 << 16):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in whole)


if __name__ == "__main__":
    parent = Parent()
    sys.exit(importlib.import_module(sys.argv[1]).main(parent))
