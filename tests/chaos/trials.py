"""Trials with a changed file: read by the library in batches, or by a command."""

import contextlib
import functools
import hashlib
import os
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.commands import Ended, fork, judge, run, wait
from chaos.findings import Counts
from chaos.formats import FORMATS, Format, arguments, digest, environment, prepare, sample
from fognn.utils.errors import FognnError

__all__ = ["Trial", "command_trial", "read_trials"]

MEMORY = 10 * 2**30  # bytes of address space, of which importing torch takes four
CANARY = "CANARY"  # hostile files try to write a file of this name


@dataclass(frozen=True)
class Trial:
    """A sample with a changed file.

    Args:
        kind: What was changed, for the counts.
        format: The name of the format.
        write: Changes the file, whose path it gets; the path of the canary is its second argument.
        exact: Whether a file with checksums must give the same result or a line.
    """

    kind: str
    format: str
    write: Callable[[Path, Path], None]
    exact: bool = True


def read_trials(counts: Counts, part: str, trials: Sequence[Trial], place: Path) -> None:
    """Reads each file in one forked process; if that dies or hangs, the rest in another one.

    Args:
        counts: Gets an outcome for each trial.
        part: The part of the campaign.
        trials: The trials.
        place: A folder for the samples, which is removed.
    """
    for trial in trials:
        prepare(trial.format)  # here, so that later processes have it, too
    left = list(trials)
    while left:
        verdicts = place / "verdicts.txt"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        verdicts.write_bytes(b"")
        work = functools.partial(_read_all, left, place, verdicts)
        child = fork(work, place, place / "output", memory=MEMORY)
        ended = wait(child, verdicts.stat)
        found = [line.split("\t", 1)[1] for line in verdicts.read_text().split("\n") if line]
        for trial, outcome in zip(left, found, strict=False):
            if outcome in ("same", "done", "line"):
                counts.add(part, f"{trial.format}: {trial.kind}", outcome)
            else:
                _keep(counts, part, trial, outcome, place, "")
        left = left[len(found) :]
        if left:  # the process ended in the middle of a trial
            how = judge(ended)
            how = "ended" if how in ("done", "line") else how
            _keep(counts, part, left[0], how, place, ended.err[-2000:])
            left = left[1:]
    shutil.rmtree(place, ignore_errors=True)


def _keep(counts: Counts, part: str, trial: Trial, outcome: str, place: Path, note: str) -> None:
    folder = place / "finding" / "sample"
    shutil.rmtree(folder.parent, ignore_errors=True)
    try:
        trial.write(sample(FORMATS[trial.format], folder), folder / CANARY)
    except OSError as error:
        note += f"\nthe file could not be written again: {error}"
    kind = f"{trial.format}: {trial.kind}"
    counts.add(part, kind, outcome, [_only_files(folder)], ["read", trial.format], note)


def _only_files(folder: Path) -> Path:
    """Removes pipes and devices, which cannot be copied."""
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            path.unlink()
    return folder


def _read_all(trials: Sequence[Trial], place: Path, verdicts: Path) -> None:
    os.fsync = lambda _: None  # nothing here must outlive a power failure
    expected: dict[str, str] = {}
    with open(verdicts, "a", buffering=1, encoding="utf-8") as file:
        for number, trial in enumerate(trials):
            one = FORMATS[trial.format]
            if one.checked and one.name not in expected:
                with _sample(one, place / f"valid{number}") as path:
                    expected[one.name] = digest(one.read(_top(one, path)))
            with _sample(one, place / f"sample{number}") as path:
                canary = _top(one, path) / CANARY
                trial.write(path, canary)
                outcome = _verdict(one, path, expected.get(one.name) if trial.exact else None)
                if one.safe and canary.exists():
                    outcome = "code run"
            file.write(f"{number}\t{' '.join(outcome.split())[:500]}\n")


@contextlib.contextmanager
def _sample(one: Format, folder: Path) -> Iterator[Path]:
    path = sample(one, folder)
    os.environ.update(environment(folder))
    try:
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _top(one: Format, path: Path) -> Path:
    return path.parents[one.file.count("/")]


def _verdict(one: Format, path: Path, expected: str | None) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = digest(one.read(_top(one, path)))
    except (ValueError, ImportError, OSError, FognnError) as error:
        return "line" if _names(one, path, str(error)) else f"does not name the file: {error!r}"
    except BaseException as error:
        return f"traceback: {error!r}"
    if expected is None:
        return "done"
    return "same" if found == expected else "another result, without a word"


def _names(one: Format, path: Path, message: str) -> bool:
    """Returns whether a message names the file, or a folder of the sample that it is in."""
    top = _top(one, path)
    folders = [str(parent) for parent in path.parents if parent.is_relative_to(top)]
    inside = [text for text in folders if text != str(top)]
    return any(text in message for text in (path.name, *inside, *one.named))


def command_trial(
    counts: Counts, part: str, trial: Trial, command: Sequence[str], place: Path
) -> None:
    """Runs a command that reads the file; checks how it ends, and that it changed nothing else.

    Args:
        counts: Gets the outcome.
        part: The part of the campaign.
        trial: The trial.
        command: Arguments of ``fognn``.
        place: A folder for the sample, which is removed.
    """
    one = FORMATS[trial.format]
    shutil.rmtree(place, ignore_errors=True)
    folder = place / "sample"
    path = sample(one, folder)
    trial.write(path, folder / CANARY)
    before = _files(folder)
    ended = run(arguments(list(command)), folder, place / "output", environment(folder))
    outcome = judge(ended)
    if outcome == "line" and not _line_names(one, path, ended):
        outcome = f"does not name the file: {ended.err.strip().splitlines()[-1]}"
    if one.safe and (folder / CANARY).exists():
        outcome = "code run"
    elif outcome in ("done", "line"):
        outcome = _lost(one, path, before, _files(folder), outcome) or outcome
    kind = f"{trial.format}: {trial.kind}: fognn {command[0]}"
    fine = outcome in ("done", "line")
    if not fine:  # as it was before the command
        _keep(counts, part, trial, outcome, place, ended.err[-4000:])
    else:
        counts.add(part, kind, outcome)
    shutil.rmtree(place, ignore_errors=True)


def _line_names(one: Format, path: Path, ended: Ended) -> bool:
    line = ended.err.strip().splitlines()[-1]
    # Valid numbers whose training overflows; data that do not fit a setting, which is named.
    if "check the data for NaN" in line or line.startswith("fognn: config: "):
        return True
    relative = path.relative_to(_top(one, path))
    # With a relative path as argument, the folder is named by it.
    return _names(one, path, line) or any(
        str(parent) in line for parent in relative.parents if str(parent) != "."
    )


def _files(folder: Path) -> dict[str, str]:
    """A digest of each file, by its path in the folder."""
    found = {}
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        name = str(path.relative_to(folder))
        if stat.S_ISREG(mode):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif not stat.S_ISDIR(mode):
            found[name] = str(stat.S_IFMT(mode))
    return found


def _lost(
    one: Format, path: Path, before: dict[str, str], after: dict[str, str], outcome: str
) -> str | None:
    """Returns what a command changed that it must leave alone."""
    own = str(path.relative_to(_top(one, path)))
    for name, sum_ in before.items():
        cached = name.startswith("cache/")
        trained = outcome == "done" and name.startswith(("run/", "results/"))
        if after.get(name) != sum_ and not (cached or trained or (one.remade and name == own)):
            return f"{name} was {'changed' if name in after else 'removed'}"
    if outcome == "line":
        new = [name for name in after if name not in before and not _may_stay(name)]
        if new:
            return f"{new[0]} was left by a command that failed"
    return None


def _may_stay(name: str) -> bool:
    # The cache and locks; what PyG makes of raw files; and the folder of a run that has begun.
    kept = name.startswith(("cache/", "new/")) or name.endswith(".lock")
    return kept or "/processed/" in name


def chosen(random: Any, one: Format) -> list[str] | None:
    """One of the commands of a format."""
    return random.choice(list(one.commands)) if one.commands else None
