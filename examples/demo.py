"""Trains GCN and GCN+FOG, at the paper's sizes, on a part of CLUSTER, which is generated here, and
writes a page that compares them.

    python examples/demo.py
    python examples/demo.py --fraction 0.5 --epochs 40 --output demo-long

Stopped and called again, it goes on where it stopped; runs that have finished are taken as they
are. A run of other settings needs another folder.
"""

import argparse
from pathlib import Path

import fognn
from fognn.report import compare_runs, read_run, runs_table
from fognn.report.text_table import text_table
from fognn.utils.errors import FileError, Stopped, TrainingError

NETWORKS = ("gcn", "gcn+fog")


def falling_rate(epochs: int) -> dict[str, object]:
    """The paper halves the rate when the validation loss stands still, for hundreds of epochs. A
    short training must do it by the clock: as long as the rate is high the statistics of the norms
    lag behind the weights, and the validation figures say nothing."""
    return {
        "training.schedule": "step",
        "training.step": max(1, epochs // 8),
        "training.factor": 0.5,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("demo"), help="the folder to write to")
    parser.add_argument("--epochs", type=int, default=24, help="epochs of each network")
    parser.add_argument("--fraction", type=float, default=0.15, help="how much of CLUSTER")
    args = parser.parse_args()

    folders = [args.output / "runs" / network for network in NETWORKS]
    try:
        for network, folder in zip(NETWORKS, folders, strict=True):
            fognn.train(
                "cluster",
                network,
                seed=0,
                fraction=args.fraction,
                epochs=args.epochs,
                folder=folder,
                # The paper's two rows differ in the norm, too: here only in FOG.
                values=falling_rate(args.epochs) | {"model.norm": "mean"},
            )
    except (ValueError, FileError, TrainingError, Stopped) as error:
        # Each says in a sentence what happened and what to do.
        raise SystemExit(f"demo: {error}") from None

    title = f"GCN and GCN+FOG on {100 * args.fraction:g} % of CLUSTER"
    report = compare_runs(folders, args.output / "report.html", title)
    header, rows = runs_table([read_run(folder) for folder in folders])
    print(
        "\nBalanced accuracy (%) on the test split, at the best validation epoch and at the last,"
    )
    print("over all items (nodes) at once and as the mean over batches:")
    print(text_table(header, rows, right=range(1, len(header))))
    print(f"\nThe report: {report.resolve().as_uri()}")


if __name__ == "__main__":
    main()
