r"""Progress of a run: rich's bars in a terminal, otherwise one line for each epoch."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fognn.training.config import Config

__all__ = ["Display", "RunProgress", "duration"]


class Display:
    r"""Bars and lines on standard error: bars in a terminal, which are removed at the end.

    Args:
        quiet (bool, optional): If set to :obj:`True`, shows nothing. (default: :obj:`False`)
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.bars: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self.bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self.bars.start()

    def note(self, text: str) -> None:
        r"""Prints a line."""
        if self.bars is not None:
            self.bars.console.print(text, markup=False, highlight=False)
        elif not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        r"""Removes the bars."""
        if self.bars is not None:
            self.bars.stop()


class RunProgress(Display):
    r"""Shows a run on standard error.

    Args:
        config (Config): The run.
        batches (int): Number of batches in an epoch.
        done (int): Number of epochs that are already trained.
        quiet (bool, optional): If set to :obj:`True`, shows nothing. (default: :obj:`False`)
    """

    def __init__(self, config: Config, batches: int, done: int, quiet: bool = False) -> None:
        super().__init__(quiet)
        self.config, self.done = config, done
        self.begin = time.monotonic()
        # With a plateau, the training usually stops long before the maximum number of epochs.
        self.most = "at most " if config.training.schedule == "plateau" else ""
        if self.bars is not None:
            name = f"{config.model.name}, {self.most}"
            self.epochs = self.bars.add_task(
                name.rstrip(", "), total=config.training.epochs, completed=done, note=""
            )
            self.steps = self.bars.add_task("epoch", total=batches, note="")

    def epoch(self, number: int, first: int) -> None:
        r"""Shows the start of an epoch.

        Args:
            number (int): The epoch, from 1.
            first (int): Its first batch, from 0; not 0 in a resumed epoch.
        """
        if self.bars is not None:
            self.bars.reset(self.steps, completed=first, description=f"epoch {number}", note="")

    def step(self, loss: float) -> None:
        r"""Shows the end of a batch."""
        if self.bars is not None:
            self.bars.update(self.steps, advance=1, note=f"loss {loss:.4f}")

    def end(self, row: dict[str, Any]) -> None:
        r"""Shows the end of an epoch.

        Args:
            row (dict): Its row of ``metrics.csv``.
        """
        metric = self.config.training.metric
        score = f"val {metric.replace('_', ' ')} {row[f'val_{metric}_items']:.4f}"
        text = f"loss {row['train_loss']:.4f}, {score}, lr {row['lr']:.1e}"
        if self.bars is not None:
            self.bars.update(self.epochs, advance=1, note=text)
        elif not self.quiet:
            epochs = self.config.training.epochs
            here = row["epoch"] - self.done
            left = (time.monotonic() - self.begin) / here * (epochs - row["epoch"])
            seconds = row["train_seconds"] + row["val_seconds"]
            self.note(
                f"epoch {row['epoch']}/{epochs}: {text}, {seconds:.1f} s, "
                f"{self.most}{duration(left)} left"
            )


def duration(seconds: float) -> str:
    r"""Formats a duration as ``1 h 02 min``, ``3 min 20 s`` or ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole} s"
