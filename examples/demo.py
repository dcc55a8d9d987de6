"""Is second order worth it? ``fognn compare`` on two generated tasks, on one page.

    python examples/demo.py
    python examples/demo.py --graphs 1000 --epochs 30 --seeds 8 --output demo-long

In both tasks each node has random features and six neighbours. In the first, its label is a
correlation, the sum over its neighbours u of (a x_v)(b x_u) + (c x_v)(d x_u) with unknown vectors;
in the second, it is a sum over its neighbours alone, w x_u. Both have noise of standard deviation
0.2, which no network can predict. GCN and GCN+FOG have the same number of parameters, splits,
seeds and learning rate. Called again after an interruption, it resumes.
"""

import argparse
from pathlib import Path

import torch
from torch_geometric.data import Data

import fognn
from fognn.data import write_graphs
from fognn.report.site import write_comparisons
from fognn.utils.errors import FognnError

NODES, CHANNELS, STEPS = 25, 6, (1, 2, 3)  # neighbours are up to three steps away on a ring
TITLES = {
    "correlation-with-neighbours": "The label is a correlation of a node with its neighbours",
    "sum-of-neighbours": "The label is a sum over the neighbours",
}


def graphs(count: int) -> dict[str, list[Data]]:
    """The same graphs with the labels of each task."""
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, CHANNELS, 2, generator=generator)
    matrix = left @ right.T
    matrix /= matrix.norm() * (2 * len(STEPS)) ** 0.5
    vector = torch.randn(CHANNELS, generator=generator)
    vector /= vector.norm() * (2 * len(STEPS)) ** 0.5
    found: dict[str, list[Data]] = {name: [] for name in TITLES}
    for _ in range(count):
        x = torch.randn(NODES, CHANNELS, generator=generator)
        ring = torch.randperm(NODES, generator=generator)
        shifts = [sign * step for step in STEPS for sign in (1, -1)]
        edge_index = torch.cat([torch.stack([ring.roll(step), ring]) for step in shifts], dim=1)
        total = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
        noise = 0.2 * torch.randn(NODES, generator=generator)
        labels = {
            "correlation-with-neighbours": ((x @ matrix) * total).sum(dim=1),
            "sum-of-neighbours": total @ vector,
        }
        for name, label in labels.items():
            found[name].append(Data(x=x, edge_index=edge_index, y=label + noise))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("demo"), help="the folder to write")
    parser.add_argument("--graphs", type=int, default=400, help="graphs of each task")
    parser.add_argument("--epochs", type=int, default=12, help="epochs of each run")
    parser.add_argument("--seeds", type=int, default=4, help="runs of each network")
    args = parser.parse_args()

    answers = []
    for name, task in graphs(args.graphs).items():
        args.output.mkdir(parents=True, exist_ok=True)
        file = args.output / f"{name}.npz"
        write_graphs(file, task)
        try:
            answer = fognn.compare(
                file,
                ["gcn"],
                args.seeds,
                budget=10_000,
                rates=(0.01,),
                workers="auto",
                runs=args.output / "runs",
                results=args.output / "results",
                command="the same command",
                epochs=args.epochs,
                batch_size=20,
                schedule="cosine",
                loss="mse",
                metric="rmse",
            )
        except (ValueError, FognnError) as error:
            raise SystemExit(f"demo: {error}") from None
        print(f"\n{TITLES[name]}.\n{answer}\n")
        answers.append(answer)
    page = write_comparisons(answers, args.output / "report", "Is second order worth it?")
    print(f"The page: {page.resolve().as_uri()}")


if __name__ == "__main__":
    main()
