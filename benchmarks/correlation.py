"""A task whose label is a correlation: the error of one layer against its width.

Each node's label is the sum over its neighbours u of x_v^T M x_u, with normal features, an unknown
matrix M and the same number of neighbours for all nodes:
neither the node nor the sum over its neighbours tells anything alone. A network of one layer (an
encoder, the layer with its residual, a readout MLP) is trained on one graph and tested on another,
with the Kronecker product of FOG ("kron"), with its controls "hadamard" and "concat", and with GCN.
The width of a network is that of all its layers, and the inner widths h1 and h2 of FOG and of its
controls, so that they differ in the product alone; the numbers of parameters differ. "FOG" has the
inner widths of the paper, which are much smaller.

Prints the squared error divided by the variance of the labels, 1 for a constant, the median over
seeds of weights and matrices, beside the number of parameters.

    python benchmarks/correlation.py --json results/correlation.json --plot docs/correlation.svg
"""

import argparse
import math
import statistics
from pathlib import Path
from typing import Any

import torch
from measure import parser, report, save
from torch.nn.functional import mse_loss
from torch_geometric.data import Data

from fognn.models import Task, count_parameters, create_model
from fognn.ops import adjacency

CHANNELS, DEGREE = 4, 4
TASK = Task("node", 1, node_channels=CHANNELS)
LAYERS = ("kron", "FOG", "hadamard", "concat", "GCN")
TITLE = "Squared error / variance of the labels"
Row = dict[str, Any]


def correlated(nodes: int, seed: int, matrix_seed: int) -> Data:
    r"""Returns a graph whose nodes have the label

    .. math::
        y_v = \sum_{u \in \mathcal{N}(v)} \mathbf{x}_v^{\top} \mathbf{M} \mathbf{x}_u

    with independent normal features, and a matrix :math:`\mathbf{M}` that is to be learnt.

    The graph is undirected, and all nodes have the same number of neighbours, so that the label
    does not depend on the degree. The mean of the label is 0 given :math:`\mathbf{x}_v` alone, and
    0 given the sum over neighbours alone: only both together tell it. Its variance is about 1 (over
    all matrices, exactly 1), so that a squared error of 1 is that of a constant.

    """
    matrix = torch.randn(CHANNELS, CHANNELS, generator=torch.Generator().manual_seed(matrix_seed))
    matrix /= CHANNELS * math.sqrt(DEGREE)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, CHANNELS, generator=generator)
    # A ring in a random order, on which each node is joined to the nearest ones on both sides.
    ring = torch.randperm(nodes, generator=generator)
    steps = [step for step in range(-DEGREE // 2, DEGREE // 2 + 1) if step]
    edge_index = torch.cat([torch.stack([ring.roll(step), ring]) for step in steps], dim=1)
    total = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
    return Data(x=x, edge_index=edge_index, y=((x @ matrix) * total).sum(dim=1))


def network(layer: str, width: int) -> torch.nn.Module:
    """A network of one layer."""
    if layer == "GCN":
        return create_model("gcn", TASK, channels=width, layers=1)
    own: dict[str, Any] = {"channels": width, "layers": 1, "fog_act_first": False}
    if layer != "FOG":
        own |= {"fog_kind": layer, "h1": width, "h2": width}
    return create_model("fog", TASK, **own)


def error(net: torch.nn.Module, seed: int, args: argparse.Namespace) -> float:
    """The error on another graph with the same matrix, after training."""
    train, test = (
        correlated(args.nodes, seed=2 * seed + part, matrix_seed=seed) for part in (0, 1)
    )
    adj = adjacency(train.edge_index, args.nodes, args.nodes)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for _ in range(args.steps):
        optimizer.zero_grad()
        mse_loss(net(train.x, adj).squeeze(1), train.y).backward()
        optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        out = net(test.x, test.edge_index).squeeze(1)
    return float(mse_loss(out, test.y) / test.y.var())


def measure(layer: str, width: int, args: argparse.Namespace) -> Row:
    """One layer at one width, for all seeds."""
    errors = []
    for seed in range(args.seeds):
        torch.manual_seed(seed)
        net = network(layer, width)
        errors.append(error(net, seed, args))
    return {
        "layer": layer,
        "width": width,
        "parameters": count_parameters(net),
        "median error": statistics.median(errors),
        "smallest": min(errors),
        "largest": max(errors),
        "seeds": args.seeds,
    }


def draw(rows: list[Row], path: Path) -> None:
    """The median of each layer against width and against parameters, with the range of seeds."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    looks = {  # told apart without colour, too
        "kron": ("#0072B2", "o"),
        "FOG": ("#56B4E9", "v"),
        "hadamard": ("#009E73", "^"),
        "concat": ("#D55E00", "s"),
        "GCN": ("#8C8C8C", "D"),
    }
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "fognn", "font.size": 9}):
        figure = Figure(figsize=(8.4, 3.6), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, what in zip(axes, ("width", "parameters"), strict=True):
            for layer, (colour, marker) in looks.items():
                own = [row for row in rows if row["layer"] == layer]
                x = [row[what] for row in own]
                y = [row["median error"] for row in own]
                ax.plot(x, y, marker=marker, color=colour, label=layer, markersize=4)
                ends = [[row[end] for row in own] for end in ("smallest", "largest")]
                ax.fill_between(x, *ends, color=colour, alpha=0.15, linewidth=0)
            ax.set_xscale("log", base=2 if what == "width" else 10)
            ax.set_yscale("log")
            ax.set_xlabel("channels" if what == "width" else what)
            ax.grid(True, which="major", color="#DDDDDD", linewidth=0.6)
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        axes[0].set_ylabel("squared error / variance")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.stem}.tmp{path.suffix}")
        figure.savefig(temporary, metadata={"Date": None} if path.suffix == ".svg" else None)
        temporary.replace(path)


def options() -> argparse.Namespace:
    out = parser(__doc__)
    out.add_argument("--widths", type=int, nargs="+", default=[4, 8, 16, 32])
    out.add_argument("--seeds", type=int, default=3)
    out.add_argument("--nodes", type=int, default=2000, help="of each graph")
    out.add_argument("--steps", type=int, default=300, help="of Adam, on the whole graph")
    out.add_argument("--lr", type=float, default=0.01)
    out.add_argument("--plot", type=Path, help="also draw it: a .svg or .png file")
    return out.parse_args()


def main() -> None:
    args = options()
    torch.set_num_threads(args.threads)
    rows = [measure(layer, width, args) for layer in LAYERS for width in args.widths]
    report(TITLE, rows)
    if args.json:
        save(args.json, {TITLE: rows})
    if args.plot:
        draw(rows, args.plot)


if __name__ == "__main__":
    main()
