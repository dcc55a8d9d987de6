"""Kills trainings and sweeps, fills disks, breaks files, and writes ``results/chaos.json``.

    python tests/chaos/campaign.py                # some minutes
    python tests/chaos/campaign.py --hours 2      # random trials for two hours

Exit code 1 if a trial ends in any other way than it must; its folder is kept in ``chaos/``.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from chaos import trials
from fognn.training.environment import commit

PARTS = {part.__name__: part for part in (
    trials.kills, trials.sweeps, trials.writers, trials.disks, trials.files
)}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=0.0, help="how long; 0: two of each part")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run")
    parser.add_argument("--seed", type=int, default=0, help="seed of all that is random")
    parser.add_argument("--output", type=Path, default=Path("results/chaos.json"))
    parser.add_argument("--findings", type=Path, default=Path("chaos"))
    args = parser.parse_args()
    draw, begin = random.Random(args.seed), time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="fognn-chaos-"))
    os.environ.update(FOGNN_CACHE=str(place / "cache"), OMP_NUM_THREADS="1")
    counts: dict[str, Counter[str]] = {name: Counter() for name in args.parts.split(",")}
    try:
        (place / "whole").mkdir()
        trials.prepare(place / "whole")
        number = 0
        while number < 2 or time.monotonic() - begin < args.hours * 3600:
            for name, count in counts.items():
                folder = place / f"{name}-{number}"
                folder.mkdir()
                try:
                    count[PARTS[name](place / "whole", folder, draw)] += 1
                except Exception as error:
                    count["finding"] += 1
                    print(f"{name} {number}: {type(error).__name__}: {error}", flush=True)
                    shutil.copytree(folder, args.findings / folder.name, dirs_exist_ok=True)
                shutil.rmtree(folder)
            number += 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    record = {"commit": commit(), "seed": args.seed, "counts": counts}
    args.output.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    found = sum(count["finding"] for count in counts.values())
    print(f"{sum(c.total() for c in counts.values())} trials, {found} findings: {args.output}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
