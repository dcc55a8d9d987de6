"""SIGKILL of sweeps, and of single workers of them, on this machine and on a Ray cluster."""

import os
import random
import resource
import signal
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from chaos.commands import Child, Ended, fork, judge, start, wait
from chaos.findings import Counts
from chaos.kinds import SMALL, bits, prepare

__all__ = ["processes", "sweep_trials"]

_MARK = "FOGNN_CHAOS"
_GONE = 20.0  # seconds for the workers of a killed sweep to end
_MOST = 6  # kills of one sweep
_REPRODUCE = [
    *("reproduce", "cluster", "--models", "gcn+fog,gin+fog", "--seeds", "2", "--workers", "2"),
    *("--fraction", "0.0008", "--epochs", "40", "--no-ours", "-q"),
    *SMALL,
]
_COMPARE = [
    *("compare", "molecules.csv", "--target-column", "y", "--hosts", "gcn", "--seeds", "2"),
    *("--budget", "5000", "--rates", "0.003,0.001", "--epochs", "30", "--workers", "2", "-q"),
    *("--batch-size", "8"),
]


def sweep_trials(counts: Counts, folder: Path, seed: int, kills: int, ray: bool) -> None:
    """Kills sweeps, workers of them, and machines of a Ray cluster, until ``kills`` processes were
    killed.

    Args:
        counts: Where the trials are counted, one for each kill.
        folder: An empty folder to work in.
        seed: Seed of the moments.
        kills: Number of kills in all.
        ray: Whether to kill sweeps on a Ray cluster, too.
    """
    rng = random.Random(seed)
    prepare(folder)
    expected = {
        "reproduce": _whole(_REPRODUCE, folder, folder / "whole-reproduce"),
        "compare": _whole(_COMPARE, folder, folder / "whole-compare"),
    }
    done = number = 0
    while done < kills:
        for name in ("reproduce", "compare", "reproduce on Ray")[: 3 if ray else 2]:
            number += 1
            place = folder / str(number)
            if name != "reproduce on Ray":
                arguments = _COMPARE if name == "compare" else _REPRODUCE
                done += _trial(counts, name, arguments, folder, place, expected[name], rng)
                continue
            with _cluster(folder) as (address, mark):
                arguments = [*_REPRODUCE, "--ray", address]
                done += _trial(
                    counts, name, arguments, folder, place, expected["reproduce"], rng, mark
                )


def _options(arguments: Sequence[str], place: Path) -> list[str]:
    return [*arguments, "--runs", str(place / "runs"), "--results", str(place / "results")]


def _start(arguments: Sequence[str], folder: Path, place: Path, mark: str) -> Child:
    return start(_options(arguments, place), folder, place.with_suffix(".output"), {_MARK: mark})


def _whole(arguments: Sequence[str], folder: Path, place: Path) -> dict[str, str]:
    ended = _wait(_start(arguments, folder, place, "whole"), place)
    if ended.code:
        raise RuntimeError(f"the sweep without kills must end, got {ended}")
    return _bits(place)


def _bits(place: Path) -> dict[str, str]:
    runs = place / "runs"
    found = (path.parent for path in sorted(runs.rglob("result.json")))
    return {str(run.relative_to(runs)): bits(run) for run in found}


def _wait(child: Child, place: Path) -> Ended:
    def newest() -> float:
        times = [_time(path) for path in (place / "runs").rglob("*")]
        return max(times, default=0.0)

    return wait(child, newest)


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _trial(
    counts: Counts,
    name: str,
    arguments: Sequence[str],
    folder: Path,
    place: Path,
    expected: dict[str, str],
    rng: random.Random,
    cluster: str = "",
) -> int:
    """Kills one sweep again and again until it has finished; returns the number of kills."""
    mark = uuid.uuid4().hex
    kills, outcome = 0, "same"
    most = rng.randint(1, _MOST)
    while True:
        child = _start(arguments, folder, place, mark)
        if kills == most or not _sleep(child, rng.uniform(0, 25)):
            ended = _wait(child, place)
            break
        kills += 1
        workers = _trainers(mark, cluster)
        if cluster and rng.random() < 0.2 and len(raylets := processes(cluster, b"raylet")) > 2:
            workers = {max(raylets)}  # the machine that was added last, and not the head
        if workers and rng.random() < 0.4:
            _kill(rng.choice(sorted(workers)))
            # Ray starts the run anew. On this machine the sweep reports it as failed, finishes the
            # others, and is given again.
            ended = _wait(child, place)
            if ended.hung or "Traceback" in ended.err:
                break
            continue
        child.kill()
        if not _gone(mark, cluster):
            outcome = f"workers train on for {_GONE:.0f} seconds after their sweep"
            _kill(*_trainers(mark, cluster))
    if outcome == "same":
        outcome = _verdict(ended, place, expected)
    for _ in range(max(1, kills) if outcome == "same" else 1):
        counts.add("sweeps", name, outcome, [place], _options(arguments, place), ended.err)
    return kills


def _verdict(ended: Ended, place: Path, expected: dict[str, str]) -> str:
    if judge(ended) != "done":
        return f"does not resume: {judge(ended)}: {ended.err.strip()[-300:]}"
    found = _bits(place)
    if found != expected:
        names = sorted(set(found.items()) ^ set(expected.items()))
        return f"another result: {names[0][0]}"
    lines = [
        line
        for path in (place / "results").rglob("*.jsonl")
        if "searches" not in path.parts
        for line in path.read_text().splitlines()
    ]
    if len(lines) != len(expected):
        return f"{len(lines)} lines in the ledger for {len(expected)} runs"
    left = [*place.rglob("*.log"), *place.rglob(".tmp-*")]
    return f"leaves {left[0].relative_to(place)}" if left else "same"


def _sleep(child: Child, seconds: float) -> bool:
    """Waits; returns whether the process still runs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if child.poll() is not None:
            return False
        time.sleep(0.02)
    return True


def _gone(mark: str, cluster: str) -> bool:
    """Waits for the workers of a killed sweep; returns whether they have ended."""
    deadline = time.monotonic() + _GONE
    while _trainers(mark, cluster):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _trainers(mark: str, cluster: str) -> set[int]:
    return processes(mark) | (processes(cluster, b"ray::run_task") if cluster else set())


def processes(mark: str, name: bytes = b"") -> set[int]:
    """The processes that were started with the mark in their environment, and whose command has
    the name in it."""
    wanted = f"{_MARK}={mark}".encode()
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        # Of other users, or ended meanwhile.
        with suppress(OSError):
            marked = wanted in (path / "environ").read_bytes().split(b"\0")
            if marked and name in (path / "cmdline").read_bytes():
                found.add(int(path.name))
    return found


def _kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def _cluster(folder: Path) -> Iterator[tuple[str, str]]:
    """A Ray cluster on the loopback: two machines of one core. Yields its address and its mark."""
    mark = uuid.uuid4().hex
    read, write = os.pipe()

    def serve() -> None:
        from ray.cluster_utils import Cluster

        options: dict[str, Any] = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
        for _ in range(2):
            cluster.add_node(num_cpus=1, **options)
        cluster.wait_for_nodes()
        os.write(write, cluster.address.encode() + b"\n")
        signal.pause()

    child = fork(serve, folder, folder / "ray", {_MARK: mark}, memory=resource.RLIM_INFINITY)
    os.close(write)
    with os.fdopen(read) as stream:
        address = stream.readline().strip()
    try:
        if not address:
            raise RuntimeError(f"the Ray cluster must start, got {child.err.read_text()[-500:]}")
        yield address, mark
    finally:
        child.kill()
        _kill(*processes(mark))
