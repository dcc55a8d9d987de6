"""BatchNorm's running statistics against statistics averaged over the training split.

BatchNorm's running statistics are mostly those of the last ten training batches. Each network is
evaluated on a split twice: as it was trained, and with statistics averaged over all training
batches (``torch.optim.swa_utils.update_bn``). Its weights stay the same. The mean over batches is
shown, as in the tables, and the number of units of FOG that are zero on (almost) all nodes in
training, whose statistics do not describe a node that activates them.

    FOGNN_DATA=/data python benchmarks/averaged_norms.py --json results/averaged_norms.json
    FOGNN_DATA=/data python benchmarks/averaged_norms.py runs/zinc/fog-seed0/last.ckpt --split val
"""

from pathlib import Path
from typing import Any

import torch
from measure import parser, report, save
from torch import Tensor
from torch.nn import BatchNorm1d, Module
from torch.optim.swa_utils import update_bn

from fognn.nn import FOG
from fognn.training.data import RunData
from fognn.training.environment import make_fabric, without_denormals
from fognn.training.networks import load_run
from fognn.training.objective import evaluate_model, forward_batch

TABLES = ("pattern", "cluster", "zinc")
WEIGHTS = Path(__file__).parents[1] / "weights"


class Answers(Module):
    """A network that takes a batch, as ``update_bn`` calls it."""

    def __init__(self, net: Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, batch: Any) -> Tensor:
        return forward_batch(self.net, batch)[0]


def row_of(name: str, split: str) -> dict[str, Any]:
    """The figures of a checkpoint or of kept weights."""
    net, config, task = load_run(name)
    if task is None:
        raise ValueError(f"{name} must be a network for graphs, got one for few-shot images")
    fabric, data = make_fabric(config), RunData(config)
    loader = data.loader(split)

    def figure() -> float:
        return evaluate_model(net, loader, data, fabric)["batches"]

    norms = [m for fog in net.modules() if isinstance(fog, FOG) for m in fog.modules()]
    dead = sum(int((m.running_var < 1e-6).sum()) for m in norms if isinstance(m, BatchNorm1d))
    running = figure()
    update_bn(data.loader("train"), Answers(net))
    averaged = figure()
    return {
        "network": name,
        "metric": config.training.metric,
        "running": round(running, 4),
        "averaged": round(averaged, 4),
        "difference": round(averaged - running, 4),
        "dead units": dead,
    }


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("networks", nargs="*", help="else all kept ones of the paper's tables")
    options.add_argument("--split", default="test")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    kept = [
        f"{table}/{file.stem}"
        for table in TABLES
        for file in sorted((WEIGHTS / table).glob("*.safetensors"))
    ]
    rows = [row_of(name, args.split) for name in args.networks or kept]
    title = f"the {args.split} split, with running and with averaged statistics"
    report(title, rows)
    if args.json:
        save(args.json, {title: rows})


if __name__ == "__main__":
    with without_denormals():
        main()
