"""Trains GCN and GCN+FOG, at the paper's sizes, on a part of PATTERN, which is generated here, and
writes a report that compares them.

    python examples/demo.py
    python examples/demo.py --fraction 0.2 --epochs 40 --seeds 8 --output demo-long

Called again after an interruption, it resumes; it does not train finished runs again. Other
settings need another folder.
"""

import argparse
import sys
import warnings
from pathlib import Path

from fognn.paper import protocol
from fognn.report.site import build_run_report
from fognn.training import fit
from fognn.utils.errors import FognnError, Stopped

NETWORKS = ("gcn", "gcn+fog")


def settings(fraction: float, epochs: int) -> dict[str, object]:
    """The same for both networks, so that they differ in FOG alone: in the paper they have another
    norm, learning rate and weight decay each."""
    return {
        "data.fraction": fraction,
        "model.norm": "sym",
        "training.lr": 0.001,
        "training.weight_decay": 0.0,
        "training.epochs": epochs,
        "training.batch_size": 16,
        # The paper reduces the learning rate when the validation loss stops falling, which takes
        # hundreds of epochs: a short training reduces it by the clock.
        "training.schedule": "step",
        "training.step": max(1, epochs // 4),
        "training.factor": 0.5,
        # Small batches gain little from a second thread, and wait for it on a busy machine.
        "machine.threads": 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("demo"), help="the folder to write")
    parser.add_argument("--epochs", type=int, default=12, help="epochs of each run")
    parser.add_argument("--fraction", type=float, default=0.04, help="how much of PATTERN")
    parser.add_argument("--seeds", type=int, default=4, help="runs of each network")
    args = parser.parse_args()
    # One line each, without the place in the source.
    warnings.showwarning = lambda message, *_: print("warning:", message, file=sys.stderr)

    results = []
    try:
        for network in NETWORKS:
            for seed in range(args.seeds):
                config = protocol("pattern", network, seed, settings(args.fraction, args.epochs))
                results.append(fit(config, args.output / "runs" / f"{network}-seed{seed}"))
        report = build_run_report([result.folder for result in results], args.output / "report")
    except (ValueError, FognnError, Stopped) as error:
        # Each message says what happened and what to do.
        raise SystemExit(f"demo: {error}") from None
    print(*results, sep="\n")
    print(f"\nThe report: {report.resolve().as_uri()}")


if __name__ == "__main__":
    main()
