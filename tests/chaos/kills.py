"""SIGKILL at random moments of a run: resumed, it must end with the same bits."""

import itertools
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from chaos.commands import Child, judge, start, wait
from chaos.findings import Counts
from chaos.kinds import Kind, bits, kinds, prepare

__all__ = ["kill_trials", "killed"]

_MOST = 40  # kills of one run: each lasts as long as the others together, at the most
_POLL = 0.001


def kill_trials(counts: Counts, folder: Path, seed: int, kills: int) -> None:
    """Kills each kind of run until ``kills`` processes were killed in all.

    Args:
        counts: Where the trials are counted, one for each kill.
        folder: An empty folder to work in.
        seed: Seed of the moments.
        kills: Number of kills.
    """
    rng = random.Random(seed)
    prepare(folder)
    known: dict[Kind, tuple[str, float]] = {}
    done = 0
    for number, kind in enumerate(itertools.cycle(kinds())):
        if done >= kills:
            return
        if kind not in known:
            known[kind] = _uninterrupted(kind, folder)
        done += _trial(counts, kind, folder, f"runs/{number}", *known[kind], rng)


def _uninterrupted(kind: Kind, folder: Path) -> tuple[str, float]:
    begin = time.monotonic()
    place = f"whole/{kind.name.replace(' ', '-')}"
    ended = wait(start(kind.command(place), folder, folder / "output"))
    if ended.code:
        raise RuntimeError(f"{kind.name}: the run without kills must end, got {ended}")
    return bits(folder / place), time.monotonic() - begin


def _trial(
    counts: Counts,
    kind: Kind,
    folder: Path,
    place: str,
    expected: str,
    seconds: float,
    rng: random.Random,
) -> int:
    r"""Kills one run again and again until it has finished; returns the number of kills."""
    environment = {}
    cache = folder / "caches" / place
    if kind.cached and rng.random() < 0.3:
        environment["FOGNN_CACHE"] = str(cache)  # the data is prepared in the trial, too
    kills = 0
    while True:
        child = start(kind.command(place), folder, folder / "output", environment)
        if kills < _MOST and killed(child, folder / place, seconds, rng):
            kills += 1
            continue
        ended = wait(child, lambda: _newest(folder / place))
        break
    outcome = judge(ended)
    if outcome in ("done", "line"):
        outcome = "same" if ended.code == 0 else f"does not resume: {ended.err.strip()[-200:]}"
    if outcome == "same" and bits(folder / place) != expected:
        outcome = "another result"
    left = [path.name for path in (folder / place).rglob(".tmp-*")]
    if outcome == "same" and left:
        outcome = f"leaves {left[0]}"
    for _ in range(max(1, kills)):
        counts.add("kills", kind.name, outcome, [folder / place], kind.command(place), ended.err)
        if outcome != "same":
            break
    shutil.rmtree(folder / place)
    shutil.rmtree(cache, ignore_errors=True)
    return kills


def killed(child: Child, place: Path, seconds: float, rng: random.Random) -> bool:
    """Kills a process at a random moment: after a random time, or when it writes a file.

    Args:
        child: The process.
        place: The folder that it writes to.
        seconds: The time that it takes to its end.
        rng: The source of the moment.

    Returns:
        Whether it was killed; :obj:`False` if it ended before.
    """
    deadline = time.monotonic() + rng.uniform(0, 0.7 * seconds)
    at_write: Callable[[], bool] = lambda: False  # noqa: E731
    if rng.random() < 0.4:
        skip = rng.randrange(6)
        seen: set[str] = set()

        def at_write() -> bool:
            seen.update(str(path) for path in place.rglob(".tmp-*"))
            return len(seen) > skip

        deadline += seconds
    while time.monotonic() < deadline and not at_write():
        if child.poll() is not None:
            return False
        time.sleep(_POLL)
    if child.poll() is not None:
        return False
    child.kill()
    return True


def _newest(place: Path) -> float:
    return max((path.stat().st_mtime for path in place.rglob("*") if path.exists()), default=0.0)
