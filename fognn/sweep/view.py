r"""What a user sees of a sweep: a bar and a line a run in a terminal, lines elsewhere."""

import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fognn.sweep.pool import Job
from fognn.training.run_folder import read_metrics

__all__ = ["View", "standing"]

# Elsewhere than in a terminal, a run says where it stands once a minute.
_EVERY = 60.0
_LINES = 16


class View:
    r"""Shows a sweep on standard error.

    Args:
        total: How many runs there are.
        done: How many of them are finished already.
        quiet: Show nothing.
    """

    def __init__(self, total: int, done: int, quiet: bool = False) -> None:
        self.total, self.done, self.quiet = total, done, quiet
        self.bars = not quiet and sys.stderr.isatty()
        self.bar: Any = None
        self.lines: list[Any] = []
        self.looked = time.monotonic()
        if self.bars:
            self.bar = tqdm(
                total=total, initial=done, desc="runs", unit="run", dynamic_ncols=True, position=0
            )

    def note(self, text: str) -> None:
        r"""Says something."""
        if self.bars:
            tqdm.write(text, file=sys.stderr)
        elif not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def begins(self, job: Job) -> None:
        r"""A run begins, or goes on."""
        if not self.bars:
            self.note(f"{job.key}: {standing(job) or 'begins'}")

    def finished(self, job: Job, text: str) -> None:
        r"""A run is finished."""
        self.done += 1
        self.note(f"[{self.done}/{self.total}] {job.key}: {text}")
        if self.bars:
            self.bar.update()

    def look(self, running: list[Job]) -> None:
        r"""Shows where the runs stand. It reads their files once a second, so call it at will."""
        every = 1.0 if self.bars else _EVERY
        if self.quiet or time.monotonic() - self.looked < every:
            return
        self.looked = time.monotonic()
        if not self.bars:
            for job in running:
                self.note(f"{job.key}: {standing(job) or 'begins'}")
            return
        for job, number in zip(running, range(_LINES), strict=False):
            if number == len(self.lines):
                self.lines.append(
                    tqdm(
                        total=0,
                        bar_format="{desc}",
                        position=number + 1,
                        leave=False,
                        dynamic_ncols=True,
                    )
                )
            self.lines[number].set_description_str(f"  {job.key}: {standing(job) or 'begins'}")
        for line in self.lines[len(running) :]:
            line.set_description_str("")
        self.bar.refresh()

    def close(self) -> None:
        for bar in [*self.lines, self.bar]:
            if bar is not None:
                bar.close()


def standing(job: Job) -> str:
    r"""Where a run stands, from its folder; nothing if it has no finished epoch."""
    folds = sorted(job.folder.glob("fold-*"), key=_number)
    folder = folds[-1] if folds else job.folder
    if not (folder / "metrics.csv").exists():
        return folder.name.replace("-", " ") if folds else ""
    row = read_metrics(folder)[-1]
    training = job.config.training
    most = "at most " if training.schedule == "plateau" else ""
    fold = f"fold {_number(folder)}, " if folds else ""
    return (
        f"{fold}epoch {row['epoch']} of {most}{training.epochs}, loss {row['train_loss']:.4f}, "
        f"val {training.metric.replace('_', ' ')} {row[f'val_{training.metric}_items']:.4f}, "
        f"rate {row['lr']:.1e}"
    )


def _number(fold: Path) -> int:
    return int(fold.name.removeprefix("fold-"))
