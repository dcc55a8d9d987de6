"""Measurements for the benchmarks: interleaved repeats, medians, ratios from one run."""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from torch.profiler import ProfilerActivity, profile

Action = Callable[[], Any]


def medians(
    actions: dict[str, Action], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of each action, the median of ``repeats``.

    The actions take turns, so that other processes on the machine disturb all of them alike. Each
    timed run follows an untimed one of the same action, as a training step follows another, so that
    it finds the caches and the memory that its own kind left.
    """
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            action()
            start = clock()
            action()
            seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_memory(action: Action) -> int:
    """Bytes that torch allocated at most during ``action``, beyond what it held before."""
    action()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        action()
    held = peak = 0
    events = [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def parser(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks share."""
    out = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    out.add_argument("--repeats", type=int, default=9, help="repeats, of which the median counts")
    out.add_argument("--threads", type=int, default=torch.get_num_threads())
    out.add_argument("--json", type=Path, help="also write the table to this file")
    return out


def report(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints rows as a table."""
    names = list(rows[0])
    cells = [names, *([_text(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    print(f"\n{title}")
    for line in cells:
        print(
            "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        )
    sys.stdout.flush()


def _text(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def fitted_exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The k of ``y = c * x ** k``, by least squares on the logarithms."""
    if len(x) != len(y) or len(set(x)) < 2:
        raise ValueError(
            f"fitted_exponent: x and y must be pairs with two different x, got {x}, {y}"
        )
    if min(*x, *y) <= 0:
        raise ValueError(f"fitted_exponent: x and y must be above 0, got {x}, {y}")
    return statistics.linear_regression([*map(math.log, x)], [*map(math.log, y)]).slope


def free_memory() -> int:
    """Bytes that may be allocated before the machine has none (Linux)."""
    text = Path("/proc/meminfo").read_text(encoding="utf-8")
    return int(text.split("MemAvailable:")[1].split()[0]) * 1024


def commit_of_code() -> str:
    """The commit of the package and of the benchmarks, and whether they were changed since."""
    git = ["git", "-C", str(Path(__file__).parent)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    dirty = subprocess.run(
        [*git, "status", "--porcelain", "--", "../fognn", "."],
        capture_output=True,
        text=True,
        check=True,
    )
    return commit.stdout.strip() + (" with changes" if dirty.stdout.strip() else "")


def save(path: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    """Writes tables with the command, the commit and the machine that made them."""
    record = {
        "command": " ".join(["python", *sys.argv]),
        "commit": commit_of_code(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "tables": tables,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)
