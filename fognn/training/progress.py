r"""Progress of a run on standard error: a bar in a terminal, otherwise one line for each epoch; and
signals that stop it."""

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from tqdm import tqdm

from fognn.training.config import Config


class RunProgress:
    r"""Shows a run on standard error, unless it is quiet, after so many epochs done."""

    def __init__(self, config: Config, batches: int, done: int, quiet: bool) -> None:
        self.config, self.done, self.quiet = config, done, quiet
        self.begin = time.monotonic()
        hidden = quiet or not sys.stderr.isatty()
        self.bar: Any = tqdm(total=batches, leave=False, disable=hidden)

    def note(self, text: str) -> None:
        if not self.quiet:
            tqdm.write(text, file=sys.stderr)

    def epoch(self, number: int) -> None:
        self.bar.reset()
        self.bar.set_description(f"epoch {number}/{self.config.training.epochs}")

    def step(self, loss: float) -> None:
        self.bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
        self.bar.update()

    def end(self, row: dict[str, Any]) -> None:
        r"""Shows the end of an epoch, of which ``row`` is the row of ``metrics.csv``."""
        training = self.config.training
        score = row[f"val_{training.metric}_items"]
        left = (time.monotonic() - self.begin) / (row["epoch"] - self.done)
        # With a plateau, the training usually stops long before the maximum number of epochs.
        most = "at most " if training.schedule == "plateau" else ""
        self.note(
            f"epoch {row['epoch']}/{training.epochs}: loss {row['train_loss']:.4f}, val "
            f"{training.metric.replace('_', ' ')} {score:.4f}, lr {row['lr']:.1e}, "
            f"{row['train_seconds'] + row['val_seconds']:.1f} s, "
            f"{most}{duration(left * (training.epochs - row['epoch']))} left"
        )

    def close(self) -> None:
        self.bar.close()


def duration(seconds: float) -> str:
    r"""Formats a duration as ``1 h 02 min``, ``3 min 20 s`` or ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole} s"


class StopSignals:
    r"""Context manager that catches the first SIGINT or SIGTERM and sets :attr:`asked`. A second
    signal has its usual effect. Outside the main thread, which alone can handle signals, it does
    nothing."""

    def __init__(self) -> None:
        self.asked = False
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.__exit__()
