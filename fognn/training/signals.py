r"""SIGINT (Ctrl-C) and SIGTERM as a flag that the loop checks after each step."""

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["StopSignals"]


class StopSignals:
    r"""Context manager that catches the first SIGINT or SIGTERM and sets a flag. A second signal
    has its usual effect. Outside the main thread, which alone can handle signals, it does nothing.

    Attributes:
        asked (bool): Whether a signal was caught.
    """

    def __init__(self) -> None:
        self.asked = False
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}
