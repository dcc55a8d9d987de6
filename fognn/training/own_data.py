r"""The user's own data: a csv file of molecules, or a file or folder of graphs."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from fognn.datasets.graph_checks import count_values
from fognn.datasets.graph_files import read_graphs
from fognn.datasets.molecules import read_smiles_csv
from fognn.loader.order import epoch_order
from fognn.models import TASKS, Task
from fognn.training.config import DataConfig
from fognn.utils.files import user_path

__all__ = ["is_file", "own_graphs", "own_objective", "own_task"]

# First and last tenth of each split: 80 % for training, 10 % for validation, 10 % for testing.
_TENTHS = {"train": (0, 8), "val": (8, 9), "test": (9, 10)}
FEWEST = 10


def is_file(data: DataConfig) -> bool:
    r"""Returns whether the data are a file or folder of the user, and not a dataset by name."""
    # Not by Path.parts: Path("./graphs") has only one, like the name of a dataset.
    separated = any(mark in data.name for mark in {"/", os.sep})
    return separated or Path(data.name).suffix.lower() in (".csv", ".pt", ".npz")


def own_graphs(data: DataConfig, split: str) -> list[Data]:
    r"""Returns the graphs of a split. The assignment of graphs to splits depends only on
    ``data.seed`` and on the number of graphs.

    Args:
        data (DataConfig): The data.
        split (str): ``"train"``, ``"val"`` or ``"test"``.
    """
    graphs = _read(data)
    order = epoch_order(len(graphs), shuffle=True, seed=data.seed).tolist()
    order = order[: max(FEWEST, round(len(order) * data.fraction))]
    first, last = (len(order) * tenth // 10 for tenth in _TENTHS[split])
    return [graphs[i] for i in sorted(order[first:last])]


def own_task(data: DataConfig) -> Task:
    r"""Returns the task of the graphs: integers are tokens (inputs) and classes (targets),
    floating point numbers are features and values."""
    graphs = _read(data)
    if _suffix(data) == ".csv":
        return TASKS["zinc"]
    first = graphs[0]
    y, level = torch.as_tensor(first.y), _level(graphs)
    if y.is_floating_point():
        out = y.shape[1:].numel() if y.dim() else 1
    else:
        out = max(2, count_values(data.name, "y", [torch.as_tensor(g.y) for g in graphs]))
    return Task(
        level,
        out,
        **_inputs(data.name, "node", "x", [graph.x for graph in graphs]),
        **_inputs(data.name, "edge", "edge_attr", [graph.edge_attr for graph in graphs]),
    )


def own_objective(data: DataConfig) -> dict[str, str]:
    r"""Returns the ``"loss"`` and the ``"metric"`` that fit the targets."""
    y = torch.as_tensor(_read(data)[0].y)
    if y.is_floating_point():
        return {"loss": "l1", "metric": "mae"}
    return {"loss": "cross_entropy", "metric": "accuracy"}


def _suffix(data: DataConfig) -> str:
    return Path(data.name).suffix.lower()


def _read(data: DataConfig) -> list[Data]:
    path = user_path(data.name)
    changed = path.stat().st_mtime_ns if path.exists() else 0
    return _read_once(str(path), changed, data.smiles, data.target, data.skip_bad)


# Cached, because a run opens the same file for each of its splits and for the task.
@lru_cache(maxsize=2)
def _read_once(
    path: str, changed: int, smiles: str, target: str | None, skip_bad: bool
) -> list[Data]:
    if path.lower().endswith(".csv"):
        if target is None:
            raise ValueError(
                f"config: data.target must name the column of {path} to learn, got None"
            )
        graphs, _ = read_smiles_csv(path, smiles, target, skip_bad)
    else:
        graphs = read_graphs(path)
        if any(graph.y is None for graph in graphs):
            raise ValueError(f"{path}: y of each graph must be the target to learn, got None")
        _check_classes(path, graphs)
    if len(graphs) < FEWEST:
        raise ValueError(
            f"{path} must have at least {FEWEST} graphs, to train, validate and test on, "
            f"got {len(graphs)}"
        )
    return graphs


def _check_classes(path: str, graphs: list[Data]) -> None:
    for number, graph in enumerate(graphs):
        y = torch.as_tensor(graph.y)
        if not y.is_floating_point() and (y.dim() > 1 or (y < 0).any()):
            found = f"shape {list(y.shape)}" if y.dim() > 1 else int(y.min())
            raise ValueError(
                f"{path}, graph {number}: y of integers must be classes from 0 in a single "
                f"dimension, got {found}; values to learn must be floating point"
            )


def _level(graphs: list[Data]) -> str:
    r"""Returns the level of the targets (graph, node or edge), from their number."""
    labels = [torch.as_tensor(graph.y) for graph in graphs]
    counts = [y.size(0) if y.dim() else 1 for y in labels]
    for level, sizes in (
        ("graph", [1] * len(graphs)),
        ("node", [graph.num_nodes for graph in graphs]),
        ("edge", [graph.num_edges for graph in graphs]),
    ):
        if counts == sizes:
            return level
    raise ValueError(
        "y must have one entry for each graph, for each node or for each edge, got "
        f"{counts[0]} for {graphs[0].num_nodes} nodes and {graphs[0].num_edges} edges in graph 0"
    )


def _inputs(where: str, kind: str, name: str, values: list[Any]) -> dict[str, Any]:
    first = values[0]
    if first is None:
        return {}
    if not first.is_floating_point() and (first.dim() == 1 or first.size(1) == 1):
        return {f"{kind}_tokens": count_values(where, name, values)}
    return {f"{kind}_channels": 1 if first.dim() == 1 else first.size(1)}
