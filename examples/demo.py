"""Compares GCN with GCN+FOG on a part of PATTERN, which is generated here, and writes a report: the
command ``fognn compare`` with settings for two minutes.

    python examples/demo.py
    python examples/demo.py --fraction 0.2 --epochs 40 --seeds 8 --output demo-long

Both networks have the same number of parameters, and both try the same learning rates. Called
again after an interruption, it resumes; it does not train finished runs again.
"""

import argparse
import sys
import warnings
from pathlib import Path

import fognn
from fognn.utils.errors import FognnError, Stopped


def settings(fraction: float, epochs: int) -> dict[str, object]:
    """The training of both networks. The paper reduces the learning rate when the validation loss
    stops falling, which takes hundreds of epochs: a short training reduces it by the clock."""
    return {
        "fraction": fraction,
        "epochs": epochs,
        "batch_size": 16,
        "weight_decay": 0.0,
        "schedule": "step",
        "step": max(1, epochs // 4),
        "factor": 0.5,
        # Small batches gain little from a second thread, and wait for it on a busy machine.
        "threads": 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("demo"), help="the folder to write")
    parser.add_argument("--epochs", type=int, default=12, help="epochs of each run")
    parser.add_argument("--fraction", type=float, default=0.03, help="how much of PATTERN")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each network")
    parser.add_argument("--budget", type=int, default=50_000, help="parameters of each network")
    parser.add_argument("--hosts", default="gcn", help="networks to put FOG beside, as gcn,gin")
    args = parser.parse_args()
    # One line each, without the place in the source.
    warnings.showwarning = lambda message, *_: print("warning:", message, file=sys.stderr)

    try:
        result = fognn.compare(
            "pattern",
            args.hosts.split(","),
            args.seeds,
            args.budget,
            rates=(0.003, 0.001),
            workers=2,
            runs=args.output / "runs",
            results=args.output / "results",
            output=args.output / "report",
            command="the same command",
            **settings(args.fraction, args.epochs),
        )
    except (ValueError, FognnError, Stopped) as error:
        # Each message says what happened and what to do.
        raise SystemExit(f"demo: {error}") from None
    print(result)
    if result.report is None:  # the reason is printed
        raise SystemExit(1)
    print(f"\nThe report: {result.report.resolve().as_uri()}")


if __name__ == "__main__":
    main()
