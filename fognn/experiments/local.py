r"""Runs on this machine, each in its own process, several at a time."""

import fcntl
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from fognn.experiments.pool import Job, Outcome
from fognn.experiments.processes import Process, end, last_line, spawn, with_threads
from fognn.utils import checks

__all__ = ["LocalPool", "log_of", "remove_logs"]

# Seconds for interrupted runs to finish a step, which can take seconds, and to write a checkpoint.
GRACE = 60.0
_POLL = 0.1


class LocalPool:
    r"""A pool of processes on this machine.

    Each run has its own process with one thread (see
    :func:`~fognn.experiments.processes.with_threads`), so a run that is killed, or that runs out of
    memory, does not affect the others. All processes end when this process ends, in any way.

    Args:
        workers (int): Number of runs at a time.
    """

    def __init__(self, workers: int) -> None:
        checks.positive_int("reproduce", "workers", workers)
        self.slots: list[Running | None] = [None] * workers

    @property
    def free(self) -> bool:
        return None in self.slots

    def start(self, job: Job) -> None:
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        log = log_of(job.folder)
        request = {
            "job": "train",
            "key": job.key,
            "config": with_threads(job.config).to_dict(),
            "folder": str(job.folder),
        }
        with open(log, "ab") as output:
            # The process inherits the lock, and keeps it until it ends.
            fcntl.flock(output, fcntl.LOCK_SH)
            process = spawn(request, stdout=output, stderr=output)
        self.slots[self.slots.index(None)] = Running(job, process, log)

    def running(self) -> list[Job]:
        return [slot.job for slot in self.slots if slot is not None]

    def wait(self, seconds: float) -> list[Outcome]:
        deadline = time.monotonic() + seconds
        while True:
            ended = self._ended()
            if ended or time.monotonic() >= deadline:
                return ended
            time.sleep(_POLL)

    def stop(self) -> list[Outcome]:
        for slot in self.slots:
            if slot is not None:
                slot.process.terminate()
        outcomes = []
        deadline = time.monotonic() + GRACE
        while self.running() and time.monotonic() < deadline:
            outcomes += self.wait(_POLL)
        self.close()
        return outcomes

    def close(self) -> None:
        for number, slot in enumerate(self.slots):
            if slot is not None:
                end(slot.process)
                self.slots[number] = None

    def _ended(self) -> list[Outcome]:
        outcomes = []
        for number, slot in enumerate(self.slots):
            if slot is not None and slot.process.poll() is not None:
                outcomes.append(slot.outcome())
                end(slot.process)
                self.slots[number] = None
        return outcomes


def log_of(folder: Path) -> Path:
    r"""Returns the file with the output of a run's process. It is removed when the run finishes, or
    is interrupted; if the sweep was killed, by the next one."""
    # Not inside the run folder, which must be empty when a run starts.
    return folder.with_name(f"{folder.name}.log")


def remove_logs(folder: Path) -> None:
    r"""Removes the logs that killed sweeps left beside the run folders in a folder: those of
    finished runs, and those without an error. A log that a process writes is kept.

    Args:
        folder (Path): The folder of the run folders.
    """
    for log in folder.glob("*-seed*.log"):
        run = log.with_suffix("")
        with open(log, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # a process writes it
                continue
            text = file.read()
            if (run / "result.json").exists() or (
                b"Traceback" not in text and ((run / "config.yaml").exists() or not text)
            ):
                log.unlink(missing_ok=True)


@dataclass
class Running:
    r"""A run of the pool: its process, and the file of its output."""

    job: Job
    process: Process
    log: Path

    def outcome(self) -> Outcome:
        code = self.process.returncode
        if code == 0:
            self.log.unlink(missing_ok=True)
            return Outcome(self.job)
        if code < 0:
            reason = f"killed by {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                reason += ", by a user or because the machine ran out of memory"
        else:
            reason = last_line(self.log) or (
                f"exit code {code}, and its output could not be written: check that the disk of "
                f"{self.log} is not full"
            )
        return Outcome(self.job, reason, self.log)
