r"""Jobs, the interface of the pools that train them, and the summary of a sweep."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fognn.training import Config
from fognn.training.progress import duration

__all__ = ["Job", "Outcome", "Pool", "Summary"]


@dataclass(frozen=True)
class Job:
    r"""A run to train or to resume.

    Args:
        key (str): Its key in the ledger, also used in messages.
        config (Config): The run.
        folder (Path): The run folder.
    """

    key: str
    config: Config
    folder: Path


@dataclass(frozen=True)
class Outcome:
    r"""The outcome of an attempt at a job.

    Args:
        job (Job): The job.
        reason (str, optional): The reason why it failed; empty if it finished.
            (default: :obj:`""`)
        log (Path, optional): The file with the output of a failed attempt.
            (default: :obj:`None`)
    """

    job: Job
    reason: str = ""
    log: Path | None = None


class Pool(Protocol):
    r"""The interface of pools, which train runs in processes of this machine or on a cluster."""

    @property
    def free(self) -> bool:
        r"""Whether another job can be started now."""

    def start(self, job: Job) -> None:
        r"""Starts a job."""

    def running(self) -> list[Job]:
        r"""Returns the started jobs whose outcome :meth:`wait` has not returned, in a stable
        order."""

    def wait(self, seconds: float) -> list[Outcome]:
        r"""Waits for at most ``seconds``; returns the outcomes of the jobs that ended."""

    def stop(self) -> list[Outcome]:
        r"""Interrupts all jobs, waits until they have saved their state, and returns their
        outcomes."""

    def close(self) -> None:
        r"""Ends all jobs at once."""


@dataclass(frozen=True)
class Summary:
    r"""The result of a sweep; ``str(summary)`` is a report for users.

    Args:
        trained (tuple): Keys of the runs that finished in this sweep.
        skipped (tuple): Keys of the runs that had finished before.
        failed (tuple): Outcomes of the runs that failed twice.
        seconds (float): The time of the sweep.
    """

    trained: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[Outcome, ...]
    seconds: float

    def __str__(self) -> str:
        total = len(self.trained) + len(self.skipped) + len(self.failed)
        done = total - len(self.failed)
        lines = [
            f"{done} of {total} runs are finished: {len(self.skipped)} skipped, "
            f"{len(self.trained)} trained in {duration(self.seconds)}"
        ]
        for outcome in self.failed:
            lines.append(f"failed twice: {outcome.job.key}: {outcome.reason}")
            if outcome.log is not None:
                lines.append(f"  its output: {outcome.log}")
        if self.failed:
            lines.append("the same command resumes the failed runs from their last checkpoints")
        return "\n".join(lines)
