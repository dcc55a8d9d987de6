r"""What a run shows on standard error, and signals that stop it."""

import signal
import sys
import threading
from datetime import timedelta
from types import FrameType
from typing import Any

from fognn.training.config import Config


def show(text: str, quiet: bool = False) -> None:
    r"""Prints a line on standard error, unless it is quiet."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def show_epoch(config: Config, row: dict[str, Any], quiet: bool) -> None:
    r"""Shows the end of an epoch, of which ``row`` is the row of ``metrics.csv``."""
    training, epoch = config.training, row["epoch"]
    seconds = row["train_seconds"] + row["val_seconds"]
    # With a plateau, the training usually stops long before the maximum number of epochs.
    most = "at most " if training.schedule == "plateau" else ""
    left = most + duration(seconds * (training.epochs - epoch))
    metric, score = training.metric.replace("_", " "), row[f"val_{training.metric}_items"]
    show(
        f"epoch {epoch}/{training.epochs}: loss {row['train_loss']:.4f}, val {metric} {score:.4f}, "
        f"lr {row['lr']:.1e}, {seconds:.1f} s, {left} left",
        quiet,
    )


def duration(seconds: float) -> str:
    r"""Formats a duration as ``1:02:03``."""
    return str(timedelta(seconds=round(seconds)))


class StopSignals:
    r"""Context manager in which the first SIGINT or SIGTERM sets :attr:`asked`; a second has its
    usual effect. It does nothing outside the main thread, which alone can handle signals."""

    def __enter__(self) -> "StopSignals":
        self.asked = False
        main = threading.current_thread() is threading.main_thread()
        caught = (signal.SIGINT, signal.SIGTERM) if main else ()
        self.before = {number: signal.signal(number, self._remember) for number in caught}
        return self

    def __exit__(self, *_: object) -> None:
        while self.before:
            signal.signal(*self.before.popitem())

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.__exit__()
