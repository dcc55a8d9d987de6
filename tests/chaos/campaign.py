"""Runs the campaign, and writes ``results/chaos.json``.

    python tests/chaos/campaign.py                # some minutes
    python tests/chaos/campaign.py --hours 2      # more trials of each part
    python tests/chaos/campaign.py --parts kills,disks --seed 7

Parts that are not run keep their record of an earlier campaign, with its command and commit.

Exit code 1 if a trial ends in any other way than it must; each such finding is a folder in
``chaos/`` with the files and the command that reproduce it.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from chaos.commands import import_all
from chaos.disks import disk_trials
from chaos.findings import Counts
from chaos.formats import clean
from chaos.fuzz import fuzz_trials
from chaos.hostile import hostile_trials
from chaos.kills import kill_trials
from chaos.sweeps import sweep_trials
from chaos.writers import writer_trials
from fognn.training.environment import environment
from fognn.utils.files import write_whole

# The number of trials of each part in a short campaign, and of one that lasts an hour: kills,
# kills of sweeps, ledgers with many writers, full disks, seconds of commands on hostile files
# (which are all read once), changed files.
_PARTS = {
    "kills": (100, 1000),
    "sweeps": (6, 60),
    "writers": (10, 200),
    "disks": (10, 200),
    "hostile": (120, 1200),
    "fuzz": (2000, 20000),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=0.0, help="how long, about; 0: minutes")
    parser.add_argument("--parts", default=",".join(_PARTS), help="parts to run")
    parser.add_argument("--trials", type=int, help="of each part, instead of what --hours gives")
    parser.add_argument("--seed", type=int, default=0, help="seed of all that is random")
    parser.add_argument("--no-ray", action="store_true", help="no sweeps on a Ray cluster")
    parser.add_argument("--output", type=Path, default=Path("results/chaos.json"))
    parser.add_argument("--findings", type=Path, default=Path("chaos"))
    args = parser.parse_args()
    parts = args.parts.split(",")
    if unknown := set(parts) - set(_PARTS):
        parser.error(f"--parts must be some of {', '.join(_PARTS)}, got {sorted(unknown)[0]!r}")
    if args.findings.exists():
        parser.error(f"--findings must name a new folder, {args.findings} exists: remove it")

    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"
    import_all()
    counts = Counts(args.findings.resolve())
    # Without the paths of this machine.
    options = ("hours", "parts", "trials", "seed")
    words = [f"--{name} {value}" for name in options if (value := getattr(args, name))]
    command = " ".join(["python tests/chaos/campaign.py", *words])
    about = {"command": command, "seed": args.seed, **environment()}
    for part in parts:
        short, hour = _PARTS[part]
        trials = args.trials or max(short, round(hour * args.hours))
        folder = Path(tempfile.mkdtemp(prefix=f"fognn-chaos-{part}-", dir=_place(part))).resolve()
        os.environ["FOGNN_CACHE"] = str(folder / "cache")
        start = time.monotonic()
        (folder / "work").mkdir()
        try:
            _RUN[part](counts, folder / "work", args.seed, trials, args.no_ray)
        finally:
            clean()
            shutil.rmtree(folder, ignore_errors=True)
        record = {**about, "seconds": round(time.monotonic() - start), **counts.of(part)}
        print(f"{part}: {record['counts']}, {record['seconds']} s", flush=True)
        _write(args.output, part, record)
    print(f"{len(counts.findings)} findings; counts in {args.output}")
    return 1 if counts.findings else 0


def _place(part: str) -> str | None:
    """Thousands of small files are written in memory, where that is possible: a disk is many times
    slower, and is tried by the other parts."""
    memory = Path("/dev/shm")
    fits = part in ("hostile", "fuzz") and os.access(memory, os.W_OK)
    return str(memory) if fits else None


def _write(path: Path, part: str, record: dict[str, Any]) -> None:
    """Writes the record of a part; those of other parts, of earlier campaigns, stay."""
    known = json.loads(path.read_text()) if path.exists() else {}
    with write_whole(path) as temporary:
        temporary.write_text(json.dumps(known | {part: record}, indent=1, sort_keys=True) + "\n")


_RUN: dict[str, Callable[[Counts, Path, int, int, bool], None]] = {
    "kills": lambda c, f, s, n, _: kill_trials(c, f, s, n),
    "sweeps": lambda c, f, s, n, no_ray: sweep_trials(c, f, s, n, not no_ray),
    "writers": lambda c, f, s, n, _: writer_trials(c, f, s, n),
    "disks": lambda c, f, s, n, _: disk_trials(c, f, s, n),
    "hostile": lambda c, f, s, n, _: hostile_trials(c, f, s, n),
    "fuzz": lambda c, f, s, n, _: fuzz_trials(c, f, s, n),
}


if __name__ == "__main__":
    sys.exit(main())
