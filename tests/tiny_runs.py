"""Runs that take a second: small networks on a handful of generated graphs."""

import csv
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from fognn.experiments import protocol
from fognn.training import Config
from fognn.training.data import RunData

TIMES = ("train_seconds", "val_seconds")


def open_split(config: Config, split: str, rank: int = 0, world_size: int = 1) -> Any:
    """The loader of a split."""
    return RunData(config).loader(split, rank, world_size)


def tiny(model: str = "gcn+fog", **values: Any) -> Config:
    """A run on 8 graphs of CLUSTER, two batches an epoch; ``training__lr=1`` sets training.lr."""
    usual = {
        "data.fraction": 0.0008,
        "training.batch_size": 4,
        "training.epochs": 3,
        "training.lr": 1e-3,
        "model.channels": 16,
        "machine.threads": 1,
    }
    if model.endswith("+fog"):
        usual |= {"model.fog_channels": 8, "model.h1": 4, "model.h2": 2}
    return protocol(
        "cluster", model, 0, usual | {key.replace("__", "."): v for key, v in values.items()}
    )


def metrics(folder: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv as text, without what the clock decides."""
    with open(folder / "metrics.csv", newline="") as file:
        return [
            {key: value for key, value in row.items() if key not in TIMES}
            for row in csv.DictReader(file)
        ]


def molecules(count: int, seed: int = 0, classes: int = 0) -> list[Data]:
    """Random graphs like ZINC's, with edge types and a number, or a class, to learn."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        nodes = int(torch.randint(5, 10, (1,), generator=generator))
        one_way = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
        bond = torch.randint(1, 4, (2 * nodes,), generator=generator)
        graphs.append(
            Data(
                x=torch.randint(0, 28, (nodes,), generator=generator),
                edge_index=torch.cat([one_way, one_way.flip(0)], dim=1),
                edge_attr=torch.cat([bond, bond]),
                y=torch.randn(1, generator=generator),
            )
        )
        if classes:
            graphs[-1].y = torch.randint(0, classes, (1,), generator=generator)
    return graphs
