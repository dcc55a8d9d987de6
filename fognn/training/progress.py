r"""What a user sees of a run: bars in a terminal, lines elsewhere, nothing if so asked."""

import sys
import time
from typing import Any

from tqdm import tqdm

from fognn.training.config import Config

__all__ = ["Progress", "duration"]


class Progress:
    r"""Shows a run on standard error.

    Args:
        config: The run.
        batches: Number of batches in an epoch.
        done: Number of epochs that were finished before.
        quiet: Show nothing.
    """

    def __init__(self, config: Config, batches: int, done: int, quiet: bool = False) -> None:
        self.config, self.batches, self.done = config, batches, done
        self.quiet = quiet
        self.bars = not quiet and sys.stderr.isatty()
        self.begin = time.monotonic()
        self.epochs: Any = None
        self.steps: Any = None
        if self.bars:
            # A plateau usually ends a training long before its last epoch.
            most = " (at most)" if config.training.schedule == "plateau" else ""
            self.epochs = tqdm(
                total=config.training.epochs,
                initial=done,
                desc=f"{config.model.name}{most}",
                unit="epoch",
                dynamic_ncols=True,
            )

    def epoch(self, number: int, first: int) -> None:
        r"""An epoch begins, with its batch number ``first``."""
        if self.bars:
            self.steps = tqdm(
                total=self.batches,
                initial=first,
                desc=f"epoch {number}",
                leave=False,
                dynamic_ncols=True,
            )

    def step(self, loss: float) -> None:
        r"""A batch is done."""
        if self.bars:
            # Text that nobody sees costs time: tqdm draws ten times a second.
            self.steps.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            self.steps.update()

    def end(self, row: dict[str, Any]) -> None:
        r"""An epoch is done."""
        metric = self.config.training.metric
        score = f"val {metric.replace('_', ' ')} {row[f'val_{metric}_items']:.4f}"
        text = f"loss {row['train_loss']:.4f}, {score}, rate {row['lr']:.1e}"
        if self.bars:
            self.steps.close()
            self.epochs.set_postfix_str(text)
            self.epochs.update()
        elif not self.quiet:
            epochs = self.config.training.epochs
            here = row["epoch"] - self.done
            left = (time.monotonic() - self.begin) / here * (epochs - row["epoch"])
            most = "at most " if self.config.training.schedule == "plateau" else ""
            seconds = row["train_seconds"] + row["val_seconds"]
            self.note(
                f"epoch {row['epoch']}/{epochs}: {text}, {seconds:.1f} s, "
                f"{most}{duration(left)} left"
            )

    def note(self, text: str) -> None:
        r"""Says something that is no number."""
        if self.bars:
            tqdm.write(text, file=sys.stderr)
        elif not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        for bar in (self.steps, self.epochs):
            if bar is not None:
                bar.close()


def duration(seconds: float) -> str:
    r"""A time as people say it: ``1 h 02 min``, ``3 min 20 s``, ``12 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole} s"
