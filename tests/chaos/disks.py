"""Full and read-only disks: one clear line, nothing lost, and the run resumes on a good disk."""

import hashlib
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from chaos.commands import Ended, command, fork, judge, run, wait
from chaos.findings import Counts
from chaos.kinds import Kind, bits, kinds, prepare

__all__ = ["disk_trials"]

_GONE = 20.0  # seconds for the workers of a sweep to end
_TRAIN = ["train", "molecules.csv", "gcn", "--target-column", "y", "--epochs", "2", "-q", "-o"]
# Commands that write to the folder "disk".
_WRITERS: dict[str, list[str]] = {
    "train": [*_TRAIN, "disk/new"],
    "resume": [*_TRAIN, "disk/begun"],
    "predict": ["predict", "whole", "molecules.csv", "-o", "disk/predicted.csv"],
    "export": ["export", "whole", "-o", "disk/exported"],
    "report": ["report", "whole", "-o", "disk/report"],
    "collect": ["collect", "whole", "--results", "disk/results"],
    "reproduce": [
        *("reproduce", "pattern", "--models", "gcn", "--fraction", "0.001", "--epochs", "1", "-q"),
        *("--no-ours", "--runs", "disk/runs", "--results", "disk/results"),
    ],
    "compare": [
        *("compare", "molecules.csv", "--target-column", "y", "--hosts", "gcn", "--seeds", "1"),
        *("--budget", "5000", "--epochs", "1", "--rates", "0.001", "-q"),
        *("--runs", "disk/runs", "--results", "disk/results"),
    ],
    "generate": [
        *("generate", "tsp", "--graphs", "2", "--fewest", "26", "--most", "30"),
        *("--seconds", "0.01", "--workers", "1", "-o", "disk/tsp.npz"),
    ],
    "cache": [
        *("train", "pattern", "gcn", "--fraction", "0.001", "--epochs", "1", "-q"),
        *("-o", "beside"),
    ],
}


def disk_trials(counts: Counts, folder: Path, seed: int, trials: int) -> None:
    """Trains on disks that become full, and runs each command that writes on a disk that takes
    nothing.

    Args:
        counts: Where the trials are counted.
        folder: An empty folder to work in.
        seed: Seed of the sizes.
        trials: Number of trainings on disks that become full.
    """
    rng = random.Random(seed)
    prepare(folder)
    known: dict[Kind, tuple[str, int]] = {}
    for kind in kinds()[:6]:
        _good(kind.command("first"), folder)
        known[kind] = bits(folder / "first"), _size(folder / "first")
        shutil.rmtree(folder / "first")
    _good([*_TRAIN, "whole"], folder)
    mounts = _can_mount(folder)
    for _ in range(trials):
        kind, (expected, size) = rng.choice(list(known.items()))
        if mounts and rng.random() < 0.5:
            name, (outcome, err) = "full disk", _small_disk(kind, expected, rng, size, folder)
        else:
            name, (outcome, err) = "limit of a file", _limit(kind, expected, rng, size, folder)
        counts.add("disks", f"{name}: {kind.name}", outcome, note=err)
    for name, arguments in _WRITERS.items():
        outcome, err = _read_only(arguments, folder, mounts)
        counts.add("disks", f"read-only: {name}", outcome, command=arguments, note=err)
        if mounts:
            outcome, err = _full(arguments, folder)
            counts.add("disks", f"full: {name}", outcome, command=arguments, note=err)


def _good(arguments: list[str], folder: Path) -> None:
    ended = run(arguments, folder, folder / "output")
    if ended.code:
        raise RuntimeError(f"{arguments} must end on a good disk, got {ended}")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _limit(
    kind: Kind, expected: str, rng: random.Random, size: int, folder: Path
) -> tuple[str, str]:
    """Trains with a limit on the size of a file, which fails half-way through a write."""
    # The largest files are two checkpoints. The output has to fit.
    most = max(4096, rng.randrange(size // 2))

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        command(kind.command("disk"))()

    with _emptied(folder / "disk"):
        ended = wait(fork(work, folder, folder / "output"))
        return _resumed(ended, kind, "disk", expected, folder), f"{most} bytes: {ended.err}"


def _small_disk(
    kind: Kind, expected: str, rng: random.Random, size: int, folder: Path
) -> tuple[str, str]:
    """Trains in a file system of a random size, which then becomes larger."""
    most = rng.randrange(4, 2 * size // 1024)
    with _emptied(folder / "disk") as disk, _mounted(disk, f"size={most}k"):
        ended = run(kind.command("disk/run"), folder, folder / "output")
        subprocess.run(["mount", "-o", "remount,size=1g", disk], check=True)
        return _resumed(ended, kind, "disk/run", expected, folder), f"{most} KiB: {ended.err}"


def _resumed(ended: Ended, kind: Kind, place: str, expected: str, folder: Path) -> str:
    outcome = judge(ended)
    if outcome not in ("done", "line"):
        return outcome
    again = run(kind.command(place), folder, folder / "output")
    if again.code:
        return f"does not resume after {outcome}: {judge(again)}: {again.err.strip()[-200:]}"
    return "same" if bits(folder / place) == expected else "another result"


def _read_only(arguments: list[str], folder: Path, mounts: bool) -> tuple[str, str]:
    """Runs a command on a disk that cannot be written."""
    with _emptied(folder / "disk") as disk, _mounted(disk, "size=64m") if mounts else nullcontext():
        _fill(disk, folder)
        before = _contents(disk)
        paths = [disk, *disk.rglob("*")]
        for path in paths:
            path.chmod(0o555)
        if mounts:  # root writes to folders without the permission, too
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        ended = run(arguments, folder, folder / "output", {"FOGNN_CACHE": str(disk / "cache")})
        if mounts:
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        for path in paths:
            path.chmod(0o755)
        return _unchanged(ended, before, disk), ended.err + ended.out


def _full(arguments: list[str], folder: Path) -> tuple[str, str]:
    """Runs a command on a disk without space."""
    with _emptied(folder / "disk") as disk, _mounted(disk, "size=4m"):
        _fill(disk, folder)
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free))
        before = _contents(disk)
        ended = run(arguments, folder, folder / "output", {"FOGNN_CACHE": str(disk / "cache")})
        return _unchanged(ended, before, disk), ended.err + ended.out


def _fill(disk: Path, folder: Path) -> None:
    """Writes an earlier output, and a run that was interrupted: one without its result."""
    (disk / "predicted.csv").write_text("an earlier output\n")
    shutil.copytree(folder / "whole", disk / "begun")
    (disk / "begun" / "result.json").unlink()


def _unchanged(ended: Ended, before: dict[str, str], disk: Path) -> str:
    outcome = judge(ended)
    after = _contents(disk)
    lost = [name for name, digest in before.items() if after.get(name) != digest]
    if outcome == "line" and lost:
        return f"loses or changes {lost[0]}"
    return outcome


def _contents(folder: Path) -> dict[str, str]:
    # A lock and a log have nothing to lose.
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (".lock", "log.txt")
    }


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield
    finally:
        # Workers of a sweep that has failed use the disk for some seconds more.
        deadline = time.monotonic() + _GONE
        umount = ["umount", "--quiet", folder]
        while subprocess.run(umount, capture_output=True).returncode:
            if time.monotonic() > deadline:
                umount.insert(1, "--lazy")
            time.sleep(0.2)


def _can_mount(folder: Path) -> bool:
    with _emptied(folder / "disk") as disk:
        try:
            with _mounted(disk, "size=64k"):
                return True
        except (subprocess.CalledProcessError, FileNotFoundError):
            print("disks: full disks are not tried, a file system cannot be mounted", flush=True)
            return False
