"""The corpus of hostile and broken files: a few hundred kinds, generated and seeded."""

import contextlib
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from chaos.findings import Counts
from chaos.formats import FORMATS
from chaos.hostile_arrays import array_kinds
from chaos.hostile_code import code_kinds
from chaos.hostile_texts import text_kinds
from chaos.trials import Trial, chosen, command_trial, read_trials

__all__ = ["hostile_kinds", "hostile_trials"]

PART = "hostile"
Write = Callable[[Path, Path], None]


def _content(data: bytes) -> Write:
    return lambda path, canary: path.write_bytes(data) and None


def _special(make: Callable[[Path], None]) -> Write:
    def write(path: Path, canary: Path) -> None:
        path.unlink()
        make(path)

    return write


def _loop(path: Path) -> None:
    other = path.with_name("other" + path.suffix)
    path.symlink_to(other.name)
    other.symlink_to(path.name)


def _socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind(path.name[-90:])
        if path.name != path.name[-90:]:
            os.rename(path.name[-90:], path.name)
    finally:
        os.chdir(before)


_ANY: dict[str, Write] = {
    "missing": lambda path, canary: path.unlink(),
    "empty": _content(b""),
    "one byte": _content(b"\0"),
    "zeros": _content(bytes(100_000)),
    "blank lines": _content(b"\n" * 1000),
    "binary": _content(random.Random(0).randbytes(20_000)),
    "text": _content(b"Lorem ipsum, dolor sit amet.\n" * 40),
    "html": _content(b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n"),
    "git lfs pointer": _content(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
    "utf-16": _content("name: value\n{}\n1,2\n".encode("utf-16")),
    "a zip file's end": _content(b"PK\x05\x06" + bytes(18)),
    "a zip file's beginning": _content(b"PK\x03\x04" + bytes(60)),
    "fifo": _special(lambda path: os.mkfifo(path)),
    "link loop": _special(_loop),
    "dangling link": _special(lambda path: path.symlink_to("nowhere")),
    "folder": _special(lambda path: path.mkdir()),
    "socket": _special(_socket),
    "endless device": _special(lambda path: path.symlink_to("/dev/zero")),
    "empty device": _special(lambda path: path.symlink_to("/dev/null")),
    "link to itself through a folder": _special(lambda path: path.symlink_to(".")),
}


def _any_kinds() -> Iterator[Trial]:
    for name in FORMATS:
        for kind, write in _ANY.items():
            yield Trial(kind, name, write, exact=False)


def hostile_kinds() -> list[Trial]:
    """All kinds, each with a file format."""
    return [*code_kinds(), *array_kinds(), *text_kinds(), *_any_kinds()]


def hostile_trials(counts: Counts, folder: Path, seed: int, seconds: float) -> None:
    """Reads all kinds of files; then runs commands on them in random order, while there is time.

    Args:
        counts: Gets the outcomes.
        folder: A folder for the samples.
        seed: The seed of the order and of the commands.
        seconds: The time. All kinds are read in any case.
    """
    end = time.monotonic() + seconds
    rng = random.Random(seed)
    kinds = hostile_kinds()
    for first in range(0, len(kinds), 50):
        read_trials(counts, PART, kinds[first : first + 50], folder / "trial")
    # First those of the corpus proper, then the kinds that all formats have.
    own = [trial for trial in kinds if trial.kind not in _ANY]
    rest = [trial for trial in kinds if trial.kind in _ANY]
    for trial in [*rng.sample(own, len(own)), *rng.sample(rest, len(rest))]:
        if time.monotonic() > end:
            break
        command = chosen(rng, FORMATS[trial.format])
        if command is not None:
            command_trial(counts, f"{PART}, commands", trial, command, folder / "trial")
