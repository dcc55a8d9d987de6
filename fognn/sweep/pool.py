r"""Jobs, the interface of the pools that train them, and the summary of a sweep."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fognn.training import Config
from fognn.training.progress import duration

__all__ = ["Job", "Outcome", "Pool", "Summary"]


@dataclass(frozen=True)
class Job:
    r"""A run to train, or to go on with.

    Args:
        key: What it is called in the ledger and in messages.
        config: The run.
        folder: Its folder.
    """

    key: str
    config: Config
    folder: Path


@dataclass(frozen=True)
class Outcome:
    r"""How one attempt at a job ended.

    Args:
        job: The job.
        reason: Why it failed; empty if it is finished.
        log: The file with what the attempt printed, if it failed.
    """

    job: Job
    reason: str = ""
    log: Path | None = None


class Pool(Protocol):
    r"""A place where runs run: the processes of this machine, or a cluster."""

    @property
    def free(self) -> bool:
        r"""Whether it takes another job now."""

    def start(self, job: Job) -> None:
        r"""Takes a job."""

    def running(self) -> list[Job]:
        r"""The jobs that it has taken and not given back, each where it was before."""

    def wait(self, seconds: float) -> list[Outcome]:
        r"""The attempts that ended, after at most so many seconds."""

    def stop(self) -> list[Outcome]:
        r"""Lets every run save what it has, and waits for that; no job is left."""

    def close(self) -> None:
        r"""Ends whatever is left, at once."""


@dataclass(frozen=True)
class Summary:
    r"""What a sweep did. As text, it is what a user reads at the end.

    Args:
        trained: The runs that were finished now.
        skipped: Those that were finished before.
        failed: Those that failed twice.
        seconds: How long it took.
    """

    trained: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[Outcome, ...]
    seconds: float

    def __str__(self) -> str:
        total = len(self.trained) + len(self.skipped) + len(self.failed)
        done = total - len(self.failed)
        lines = [
            f"{done} of {total} runs are finished: {len(self.skipped)} were before, "
            f"{len(self.trained)} now, in {duration(self.seconds)}"
        ]
        for outcome in self.failed:
            lines.append(f"failed twice: {outcome.job.key}: {outcome.reason}")
            if outcome.log is not None:
                lines.append(f"  what it printed: {outcome.log}")
        if self.failed:
            lines.append("the same command tries those again, from their last checkpoints")
        return "\n".join(lines)
