"""Norms of FOG: the loss in evaluation against that in training, and the error on ZINC.

FOG has ReLU before BatchNorm. A unit that is zero on all nodes in training has a running variance
near zero, so that in evaluation a node that activates it is multiplied by up to 1 / sqrt(eps).
Four norms are compared, on networks that differ in nothing else and start from the same weights:

- ``paper``: the paper's form, eps 1e-5.
- ``eps 1e-2``: the paper's form with a larger eps.
- ``norm first``: BatchNorm before ReLU.
- ``layer norm``: LayerNorm over the channels of each node.
- ``without FOG``: the host alone, on tox21, to see how much of it is the host's.

On tox21 (FOGNN_DATA/moleculenet/tox21.csv: 12 yes/no columns with gaps), the masked loss of four
fifths of the molecules after each epoch, in evaluation, is divided by the loss that the epoch had
in training; the other fifth is evaluated, too. On ZINC, the network of the paper's row GCN+FOG is
trained for a fixed number of epochs, with a learning rate that falls linearly to 0; the validation
MAE of each norm is paired with that of the paper's form by seed. The file is written after each
seed.

    FOGNN_DATA=/data python benchmarks/dead_units.py --threads 1 --json results/dead_units.json
    FOGNN_DATA=/data python benchmarks/dead_units.py --seeds 1 --epochs 1 --fraction 0.02
"""

import csv
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import parser, report, save
from torch import Tensor
from torch.nn import Embedding, Module, ModuleList
from torch.nn.functional import binary_cross_entropy_with_logits
from torch_geometric.nn import BatchNorm, LayerNorm
from torch_geometric.utils import from_smiles
from torch_geometric.utils.smiles import x_map

from fognn.data import PackedLoader
from fognn.experiments import protocol
from fognn.experiments.differences import estimate
from fognn.models import Task, create_model
from fognn.nn import FOG
from fognn.training.data import RunData, task_of
from fognn.training.environment import without_denormals
from fognn.training.networks import untrained_model
from fognn.training.objective import forward_batch

Loss = Callable[[Tensor, Tensor], Tensor]
COLUMNS = 12
LR = 0.01  # the paper's for most networks with FOG
NORMS: dict[str, Callable[[int], Module]] = {
    "paper": lambda size: BatchNorm(size, allow_single_element=True),
    "eps 1e-2": lambda size: BatchNorm(size, eps=1e-2, allow_single_element=True),
    "norm first": lambda size: BatchNorm(size, allow_single_element=True),
    "layer norm": lambda size: LayerNorm(size, mode="node"),
}
ALONE = "without FOG"


def with_norm(net: Module, name: str) -> Module:
    """Replaces the norms of each FOG, which have no random weights."""
    for fog in [module for module in net.modules() if isinstance(module, FOG)]:
        fog.norm_1, fog.norm_2 = NORMS[name](fog.h1), NORMS[name](fog.h2)
        fog.act_first = name != "norm first"
    return net


class Atoms(Module):
    """The sum of one embedding for each column of PyG's ``from_smiles``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.columns = ModuleList(Embedding(len(kinds), channels) for kinds in x_map.values())

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([column(x[:, i]) for i, column in enumerate(self.columns)]).sum(0)


def tox21(fraction: float) -> tuple[list[Any], list[Any]]:
    """Graphs to train on and graphs that are held out, a fifth, chosen by a fixed seed."""
    path = Path(os.environ["FOGNN_DATA"]) / "moleculenet" / "tox21.csv"
    graphs = []
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    for line in lines[: math.ceil(len(lines) * fraction)]:
        graph = from_smiles(line[-1])
        values = [float(text) if text else math.nan for text in line[:COLUMNS]]
        graph.y = torch.tensor([values])
        del graph.smiles
        if graph.num_nodes:
            graphs.append(graph)
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0)).tolist()
    end = len(graphs) * 4 // 5
    return [graphs[i] for i in order[:end]], [graphs[i] for i in order[end:]]


def masked_loss(prediction: Tensor, target: Tensor) -> Tensor:
    known = ~target.isnan()
    return binary_cross_entropy_with_logits(prediction[known], target[known])


def absolute(prediction: Tensor, target: Tensor) -> Tensor:
    return (prediction - target.view_as(prediction)).abs().mean()


def train_epoch(net: Module, loader: Any, loss_of: Loss, adam: Any, schedule: Any = None) -> float:
    """Returns the mean loss over the batches, each before its step."""
    net.train()
    losses = []
    for batch in loader:
        loss = loss_of(*forward_batch(net, batch))
        adam.zero_grad()
        loss.backward()
        adam.step()
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())
    return statistics.fmean(losses)


@torch.no_grad()
def evaluate(net: Module, loader: Any, loss_of: Loss) -> float:
    net.eval()
    return statistics.fmean(loss_of(*forward_batch(net, batch)).item() for batch in loader)


def tox21_run(
    data: tuple[list[Any], list[Any]], host: str, norm: str, seed: int, epochs: int
) -> list[dict[str, float]]:
    """Losses of each epoch: in training, in evaluation of the same graphs, and held out."""
    torch.manual_seed(seed)
    name = host if norm == ALONE else f"{host}+fog"
    net = create_model(name, Task("graph", COLUMNS, node_tokens=1), channels=64, layers=4)
    net.encoder = Atoms(64)
    with_norm(net, norm)
    adam = torch.optim.Adam(net.parameters(), LR)
    train = PackedLoader(data[0], 128, shuffle=True, seed=seed)
    held_out = PackedLoader(data[1], 128)
    losses = []
    for epoch in range(epochs):
        train.set_epoch(epoch)
        row = {"train": train_epoch(net, train, masked_loss, adam)}
        row["same graphs"] = evaluate(net, train, masked_loss)
        row["held out"] = evaluate(net, held_out, masked_loss)
        losses.append(row)
    return losses


def zinc_run(norm: str, seed: int, epochs: int, fraction: float) -> float:
    """The validation MAE after the last epoch."""
    config = protocol("zinc", "gcn+fog", seed, {"data.fraction": fraction})
    net = with_norm(untrained_model(config, task_of(config.data)), norm)
    train, val = (RunData(config).loader(split) for split in ("train", "val"))
    adam = torch.optim.Adam(net.parameters(), config.training.lr, fused=True)
    steps = epochs * len(train)
    schedule = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, steps)
    for epoch in range(epochs):
        train.set_epoch(epoch)
        train_epoch(net, train, absolute, adam, schedule)
    return evaluate(net, val, absolute)


def tox21_table(runs: dict[str, list[list[dict[str, float]]]]) -> list[dict[str, Any]]:
    table = []
    for norm, seeds in runs.items():
        epochs = [row for losses in seeds for row in losses]
        ratios = [row["same graphs"] / row["train"] for row in epochs]
        table.append(
            {
                "norm": norm,
                "seeds": len(seeds),
                "median ratio": statistics.median(ratios),
                "worst ratio": max(ratios),
                "epochs above 1.5": sum(ratio > 1.5 for ratio in ratios),
                "of epochs": len(ratios),
                "worst held out": max(row["held out"] for row in epochs),
                "best held out": statistics.fmean(
                    min(row["held out"] for row in losses) for losses in seeds
                ),
            }
        )
    return table


def zinc_table(errors: dict[str, list[float]]) -> list[dict[str, Any]]:
    table = []
    for norm, values in errors.items():
        row: dict[str, Any] = {
            "norm": norm,
            "seeds": len(values),
            "val MAE": statistics.fmean(values),
            "of each seed": " ".join(f"{value:.4f}" for value in values),
        }
        pairs = [a - b for a, b in zip(values, errors["paper"], strict=True)]
        mean, _, low, high = estimate(pairs)
        shown = norm != "paper" and len(pairs) > 1
        row["minus paper"] = "" if norm == "paper" else f"{mean:+.4f}"
        row["95 % interval"] = f"{low:+.4f} {high:+.4f}" if shown else ""
        table.append(row)
    return table


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--seeds", type=int, default=4)
    options.add_argument("--epochs", type=int, default=20, help="on tox21")
    options.add_argument("--zinc-epochs", type=int, help="else as many as on tox21")
    options.add_argument("--fraction", type=float, default=1.0, help="of the data")
    options.add_argument("--host", default="gin", help="on tox21")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore", message=".*units have been zero")
    zinc_epochs = args.zinc_epochs or args.epochs
    data = tox21(args.fraction)
    titles = (
        f"{args.host}+fog on tox21, {args.epochs} epochs",
        f"gcn+fog on ZINC, {zinc_epochs} epochs",
    )
    runs: dict[str, list[list[dict[str, float]]]] = {norm: [] for norm in [*NORMS, ALONE]}
    errors: dict[str, list[float]] = {norm: [] for norm in NORMS}
    for seed in range(args.seeds):
        for norm in runs:
            start = time.perf_counter()
            runs[norm].append(tox21_run(data, args.host, norm, seed, args.epochs))
            middle = time.perf_counter()
            seconds = f"{middle - start:.0f} s on tox21"
            if norm != ALONE:
                errors[norm].append(zinc_run(norm, seed, zinc_epochs, args.fraction))
                seconds += f", {time.perf_counter() - middle:.0f} s on ZINC"
            print(f"seed {seed}, {norm}: {seconds}", flush=True)
        tables = dict(zip(titles, (tox21_table(runs), zinc_table(errors)), strict=True))
        if args.json:
            save(args.json, tables)
    for key, table in tables.items():
        report(key, table)


if __name__ == "__main__":
    with without_denormals():
        main()
