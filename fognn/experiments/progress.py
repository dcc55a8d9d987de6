r"""Progress of a sweep: rich's bars in a terminal, otherwise lines."""

import time
from pathlib import Path

from rich.progress import TaskID

from fognn.experiments.pool import Job
from fognn.training.progress import Display
from fognn.training.run_folder import read_metrics

__all__ = ["SweepProgress", "state_of"]

# Seconds between two updates from the files of the runs: in a terminal, and otherwise.
_EVERY = (1.0, 60.0)


class SweepProgress(Display):
    r"""Shows a sweep on standard error.

    Args:
        total (int): Number of runs.
        done (int): Number of runs that are finished already.
        quiet (bool, optional): If set to :obj:`True`, shows nothing. (default: :obj:`False`)
    """

    def __init__(self, total: int, done: int, quiet: bool = False) -> None:
        super().__init__(quiet)
        self.total, self.done = total, done
        self.looked = time.monotonic()
        self.lines: dict[str, TaskID] = {}
        if self.bars is not None:
            self.all = self.bars.add_task("runs", total=total, completed=done, note="")

    def begin(self, job: Job) -> None:
        r"""Shows that a run starts or is resumed."""
        if self.bars is None:
            self.note(f"{job.key}: {state_of(job)[1]}")

    def finish(self, job: Job, text: str) -> None:
        r"""Shows that a run has finished.

        Args:
            job (Job): The run.
            text (str): Its result.
        """
        self.done += 1
        self.note(f"[{self.done}/{self.total}] {job.key}: {text}")
        if self.bars is not None:
            self.bars.update(self.all, completed=self.done)

    def look(self, running: list[Job]) -> None:
        r"""Shows the state of the runs. It reads their files at most once per second, so it can be
        called often."""
        if self.quiet or time.monotonic() - self.looked < _EVERY[self.bars is None]:
            return
        self.looked = time.monotonic()
        if self.bars is None:
            for job in running:
                self.note(f"{job.key}: {state_of(job)[1]}")
            return
        for key in self.lines.keys() - {job.key for job in running}:
            self.bars.remove_task(self.lines.pop(key))
        for job in running:
            epoch, text = state_of(job)
            if job.key not in self.lines:
                total = job.config.training.epochs
                self.lines[job.key] = self.bars.add_task(f"  {job.key}", total=total, note="")
            self.bars.update(self.lines[job.key], completed=epoch, note=text)


def state_of(job: Job) -> tuple[int, str]:
    r"""Returns the last epoch of a run, and its state as text, from its folder."""
    folds = sorted(job.folder.glob("fold-*"), key=_number)
    folder = folds[-1] if folds else job.folder
    fold = f"fold {_number(folder)}, " if folds else ""
    if not (folder / "metrics.csv").exists():
        return 0, f"{fold}begins"
    row = read_metrics(folder)[-1]
    training = job.config.training
    most = "at most " if training.schedule == "plateau" else ""
    return row["epoch"], (
        f"{fold}epoch {row['epoch']} of {most}{training.epochs}, loss {row['train_loss']:.4f}, "
        f"val {training.metric.replace('_', ' ')} {row[f'val_{training.metric}_items']:.4f}, "
        f"lr {row['lr']:.1e}"
    )


def _number(fold: Path) -> int:
    return int(fold.name.removeprefix("fold-"))
