"""Commands of fognn in forked processes, so that a trial does not import torch anew."""

import importlib
import os
import pkgutil
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

import fognn
from fognn.training.environment import cores

__all__ = ["Child", "Ended", "command", "fork", "import_all", "judge", "run", "start", "wait"]

HANG = 60.0  # seconds without any progress
MEMORY = 10 * 2**30  # bytes of address space of a trial, of which importing torch takes four
_POLL = 0.005


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: a signal), output, and whether it hung."""

    code: int
    out: str
    err: str
    hung: bool = False
    seconds: float = 0.0


@dataclass
class Child:
    """A forked process that leads a session of its own, and the files of its output."""

    pid: int
    out: Path
    err: Path
    begin: float = field(default_factory=time.monotonic)
    code: int | None = None

    def poll(self) -> int | None:
        """The exit code if it has ended, negative for a signal."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def kill(self) -> int:
        """Kills its whole session; returns the exit code."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # before setsid
            os.kill(self.pid, signal.SIGKILL)
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def ended(self, code: int, hung: bool = False) -> Ended:
        texts = (p.read_text(encoding="utf-8", errors="replace") for p in (self.out, self.err))
        return Ended(code, *texts, hung, time.monotonic() - self.begin)


def import_all() -> None:
    """Imports all that a command could import, with one thread: then fork() is safe and fast."""
    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(fognn.__path__, "fognn."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("rdkit.Chem", "PIL.Image", "safetensors.torch", "huggingface_hub", "yaml"):
        importlib.import_module(name)


def fork(
    work: Callable[[], int | None],
    folder: Path,
    output: Path,
    environment: Mapping[str, str] | None = None,
    memory: int = MEMORY,
) -> Child:
    """Starts ``work`` in a forked process.

    Args:
        work: Its return value is the exit code; :obj:`None` is 0.
        folder: The working folder.
        output: The folder of ``out.txt`` and ``err.txt``, outside ``folder``.
        environment: Variables to set.
        memory: The largest address space, in bytes.
    """
    output.mkdir(parents=True, exist_ok=True)
    out, err = output / "out.txt", output / "err.txt"
    out.write_bytes(b"")
    err.write_bytes(b"")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(pid, out, err)
    code = 1
    try:
        os.setsid()
        for number, path, mode in ((0, "/dev/null", os.O_RDONLY), (1, out, os.O_WRONLY)):
            os.dup2(os.open(path, mode), number)
        os.dup2(os.open(err, os.O_WRONLY), 2)
        # pytest has put its own in their place.
        sys.stdout = os.fdopen(1, "w", closefd=False, encoding="utf-8", errors="backslashreplace")
        sys.stderr = os.fdopen(2, "w", closefd=False, encoding="utf-8", errors="backslashreplace")
        torch.set_num_threads(1)  # threads of the parent, such as pytest, are not there
        os.chdir(folder)
        os.environ.update(environment or {})
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = work() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def command(arguments: Sequence[str]) -> Callable[[], None]:
    def work() -> None:
        from fognn.cli import main

        sys.argv = ["fognn", *arguments]
        main()

    return work


def start(
    arguments: Sequence[str],
    folder: Path,
    output: Path,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Starts ``fognn ARGUMENTS`` in a forked process; see :func:`fork`."""
    return fork(command(arguments), folder, output, environment)


def wait(child: Child, progress: Callable[[], object] | None = None, hang: float = HANG) -> Ended:
    """Waits for a process; kills it after ``hang`` seconds without progress, or as much longer as
    the machine has more processes to run than cores.

    Args:
        child: The process.
        progress: Its value changes when the process makes progress; output counts, too.
        hang: The longest time without progress.
    """
    last, since = None, time.monotonic()
    while (code := child.poll()) is None:
        time.sleep(_POLL)
        sizes = child.out.stat().st_size, child.err.stat().st_size
        now = (sizes, progress() if progress else None)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > hang * max(1.0, os.getloadavg()[0] / cores()):
            return child.ended(child.kill(), hung=True)
    return child.ended(code)


def run(
    arguments: Sequence[str],
    folder: Path,
    output: Path,
    environment: Mapping[str, str] | None = None,
    hang: float = HANG,
) -> Ended:
    """Runs ``fognn ARGUMENTS`` to its end; see :func:`start` and :func:`wait`."""
    return wait(start(arguments, folder, output, environment), hang=hang)


# Lines of libraries, and fognn's own progress and warnings.
_OTHER = re.compile(r"fognn: warning:|.*(?:Warning:|warnings\.warn)|\s|\[\d\d:\d\d:\d\d\]")


def judge(ended: Ended) -> str:
    """Returns ``"done"`` for exit code 0, ``"line"`` for one clear line and exit code 1, else what
    is wrong."""
    if ended.hung:
        return f"hangs: no progress for {HANG:.0f} seconds"
    if ended.code < 0:
        return f"killed by {signal.Signals(-ended.code).name}"
    if "Traceback (most recent call last)" in ended.err + ended.out:
        return "traceback: " + (ended.err.strip().splitlines() or [""])[-1][:200]
    if ended.code == 0:
        return "done"
    errors = [line for line in ended.err.splitlines() if line and not _OTHER.match(line)]
    if ended.code == 1 and errors and errors[-1].startswith("fognn: "):
        return "line"
    # A sweep goes on without the run that failed, and ends with a list of those.
    left_out = r".* failed at all learning rates and is left out"  # of a comparison
    failed = re.findall(rf"^(?:failed(?: twice)?: \S+|{left_out}): (.*)", ended.out, re.MULTILINE)
    if ended.code == 1 and failed and not any(re.match(r"exit code \d+$", why) for why in failed):
        return "line"
    return f"exit code {ended.code} without a clear line: {errors[-1:]}"
