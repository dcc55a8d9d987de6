r"""What a sweep needs of a place where runs run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fognn.training import Config

__all__ = ["Job", "Outcome", "Pool"]


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
