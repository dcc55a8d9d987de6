r"""Ctrl-C, and the polite kill, as a wish that the loop sees after a step."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["StopSignals"]


class StopSignals:
    r"""While it is entered, SIGINT and SIGTERM are remembered; a second one ends the process the
    usual way. Outside the main thread, which alone gets signals, it does nothing.

    Attributes:
        asked (bool): Whether a signal came.
    """

    def __init__(self) -> None:
        self.asked = False
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}
