r"""The user's own data in a run: their splits, their task and their objective."""

import os
import statistics
from copy import copy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data import FullGraphLoader, NeighborLoader, PackedGraph, PackedLoader
from fognn.data.encodings import RWSE, random_walks
from fognn.data.graph_checks import count_values
from fognn.data.molecules import ATOM_COLUMNS, BOND_COLUMNS
from fognn.data.order import epoch_order
from fognn.data.own_data import OwnData, read_own_data
from fognn.data.pyg_datasets import is_pyg_name, pyg_root
from fognn.models import Task
from fognn.training.config import Config, DataConfig, ModelConfig
from fognn.training.given import given_data, is_given
from fognn.training.objective import RANKING
from fognn.utils.files import user_path
from fognn.utils.memory import memory_errors, source_too_large

__all__ = [
    "check_own",
    "has_sym_norm",
    "is_own",
    "open_own",
    "open_own_split",
    "own_graphs",
    "own_name",
    "own_objective",
    "own_splits",
    "own_task",
]

_OBJECTIVES = {
    "values": {"loss": "l1", "metric": "mae"},
    "yes/no": {"loss": "bce", "metric": "roc_auc"},
    "classes": {"loss": "cross_entropy", "metric": "accuracy"},
}
_LOSSES = {
    "values": ("l1", "mse"),
    "yes/no": ("bce",),
    "classes": ("cross_entropy", "balanced_cross_entropy"),
}


def is_own(data: DataConfig) -> bool:
    r"""Returns whether the data are a file, folder or Python object of the user or a dataset of
    PyG, and not a dataset of the paper."""
    if is_pyg_name(data.name) or is_given(data.name):
        return True
    # Not by Path.parts: Path("./graphs") has only one, like the name of a dataset.
    separated = any(mark in data.name for mark in {"/", os.sep})
    return separated or Path(data.name).suffix.lower() in (".csv", ".pt", ".npz")


def open_own(data: DataConfig) -> OwnData:
    r"""Reads the user's data; the last few are kept in memory.

    Args:
        data (DataConfig): The data.
    """
    return _encoded_once(_key(data), data.rwse) if data.rwse else _open_key(_key(data))


def _open_key(key: tuple[Any, ...]) -> OwnData:
    return given_data(*key) if is_given(key[0]) else _read_once(*key)


# Cached like the data.
@lru_cache(maxsize=2)
def _encoded_once(key: tuple[Any, ...], steps: int) -> OwnData:
    own = _open_key(key)
    with memory_errors(source_too_large(own.name)):
        walks = [random_walks(graph, steps) for graph in own.graphs]
    graphs = []
    for graph, walk in zip(own.graphs, walks, strict=True):
        graphs.append(copy(graph))  # a user's graph stays as it is
        graphs[-1][RWSE] = walk
    return replace(own, graphs=graphs)


def _key(data: DataConfig) -> tuple[Any, ...]:
    columns = (data.smiles, data.target, data.split_column, data.task, data.skip_bad)
    if is_given(data.name):
        return (data.name, data.task)
    if is_pyg_name(data.name):
        return (data.name, str(pyg_root(data.name, data.folder)), *columns, data.folder)
    path = user_path(data.name)
    changed = path.stat().st_mtime_ns if path.exists() else 0
    return (str(path), changed, *columns)


# Cached, because a run opens the same file for each of its splits and for the task.
@lru_cache(maxsize=2)
def _read_once(path: str, changed: object, *columns: Any) -> OwnData:
    with memory_errors(source_too_large(path)):
        return read_own_data(path, *columns)


# Cached, because the splits of one graph share it.
@lru_cache(maxsize=1)
def _packed_once(key: tuple[Any, ...], steps: int) -> PackedGraph:
    own = _encoded_once(key, steps) if steps else _open_key(key)
    return PackedGraph(own.graphs[0])


# Cached, because scaffolds take a second for ten thousand molecules.
@lru_cache(maxsize=2)
def _splits_once(
    key: tuple[Any, ...], split: str | None, seed: int, fraction: float, fold: int | None
) -> dict[str, Tensor]:
    own = _open_key(key)
    order = epoch_order(len(own.items), shuffle=True, seed=seed)
    return own.splits(split, order, fraction, fold)


def own_name(data: DataConfig) -> str:
    r"""Returns the name of the user's data without folders; the whole name of a PyG dataset."""
    named = is_pyg_name(data.name) or is_given(data.name)
    return data.name if named else Path(data.name).name


def own_splits(data: DataConfig) -> dict[str, Tensor]:
    r"""Returns the indices of the graphs, or of the nodes of the only graph, of each split. A
    random assignment depends only on ``data.seed`` and on the number of graphs or nodes.

    Args:
        data (DataConfig): The data.
    """
    return _splits_once(_key(data), data.split, data.seed, data.fraction, data.fold)


def own_graphs(data: DataConfig, split: str) -> list[Data]:
    r"""Returns the graphs of a split of data with several graphs.

    Args:
        data (DataConfig): The data.
        split (str): ``"train"``, ``"val"`` or ``"test"``.
    """
    graphs = open_own(data).graphs
    return [graphs[item] for item in own_splits(data)[split].tolist()]


def open_own_split(
    config: Config, split: str, rank: int = 0, world_size: int = 1
) -> PackedLoader | FullGraphLoader | NeighborLoader:
    r"""Returns the loader of a split, as :func:`fognn.training.data.open_split` does.

    Args:
        config (Config): The run.
        split (str): ``"train"``, ``"val"`` or ``"test"``.
        rank (int, optional): The rank. (default: :obj:`0`)
        world_size (int, optional): Number of ranks. (default: :obj:`1`)
    """
    check_own(config)
    data, train = config.data, split == "train"
    options: dict[str, Any] = {
        "batch_size": config.training.batch_size // world_size,
        "shuffle": train,
        "seed": config.seed,
        "rank": rank,
        "world_size": world_size,
    }
    if open_own(data).nodes is None:
        return PackedLoader(own_graphs(data, split), **options)
    graph = _packed_once(_key(data), data.rwse)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    mask[own_splits(data)[split]] = True
    if data.neighbors is None:
        return FullGraphLoader(graph, mask)
    return NeighborLoader(graph, mask, data.neighbors, **options)


def own_task(data: DataConfig) -> Task:
    r"""Returns the task of the graphs: integers are tokens (inputs) and classes (targets),
    floating point numbers are features and values. Values are standardised by the training
    split."""
    own = open_own(data)
    targets = own.targets
    scale: dict[str, Any] = {}
    if targets.kind == "values":
        y = own.targets_of(own_splits(data)["train"])
        scale = _scale(y.reshape(len(y), -1).to(torch.float64))
    return Task(
        own.level,
        targets.columns,
        **_inputs(own, "node", "x"),
        **_inputs(own, "edge", "edge_attr"),
        **scale,
        node_input=own.node_input,
        names=targets.classes or targets.names,
        encodings=data.rwse,
    )


def own_objective(data: DataConfig) -> dict[str, str]:
    r"""Returns the ``"loss"`` and the ``"metric"`` that fit the targets."""
    return _OBJECTIVES[open_own(data).targets.kind]


def check_own(config: Config) -> None:
    r"""Raises unless the loss and the metric fit the targets of the user's data.

    Args:
        config (Config): The run.
    """
    own, training = open_own(config.data), config.training
    _check_neighbors(config, own)
    splits = own_splits(config.data)
    if config.data.split == "all" and config.data.fold is None:
        for fold in range(2, own.num_splits + 1):
            own_splits(replace(config.data, fold=fold))
    known = _LOSSES[own.targets.kind]
    if training.loss not in known:
        raise ValueError(
            f"config: training.loss must be {' or '.join(known)} for the targets of "
            f"{config.data.name} ({own.targets}), got {training.loss!r}"
        )
    if training.metric == "f1" and own.targets.kind == "classes" and own.targets.columns > 2:
        raise ValueError(
            f"config: training.metric must not be 'f1' for {own.targets.columns} classes"
        )
    if training.metric not in RANKING:
        return
    for split, items in splits.items():
        y = own.targets_of(items)
        columns = y.reshape(len(y), -1).t() if y.is_floating_point() else [y]
        if not any(len(column[~column.isnan()].unique()) > 1 for column in columns):
            raise ValueError(
                f"config: training.metric must not be {training.metric!r}, because all targets of "
                f"the {split} split are the same: take --metric accuracy or another split"
            )


def has_sym_norm(model: ModelConfig) -> bool:
    r"""Returns whether a network divides by the degrees of neighbours, as GCN does by default."""
    return model.name.partition("+")[0] == "gcn" and model.settings.get("norm", "sym") == "sym"


def _check_neighbors(config: Config, own: OwnData) -> None:
    neighbors, model = config.data.neighbors, config.model
    if own.nodes is None:
        if neighbors is not None:
            raise ValueError(
                f"config: data.neighbors must be None for {own.name}, which is not one graph with "
                f"targets of its nodes, got {neighbors}"
            )
    elif neighbors is None:
        if config.machine.ranks > 1:
            raise ValueError(
                "config: machine.ranks must be 1 for one graph, unless data.neighbors is given, "
                f"got {config.machine.ranks}"
            )
    elif has_sym_norm(model):
        raise ValueError(
            "config: model.norm must be 'mean' or 'none' with data.neighbors, because 'sym' "
            "divides by the degrees of the neighbours, whose own neighbours are not all sampled; "
            "got 'sym'"
        )


def _scale(y: Tensor) -> dict[str, Any]:
    mean, std = [], []
    for column in y.t():
        known = column[~column.isnan()]
        mean.append(float(known.mean()))
        spread = statistics.pstdev(known.tolist()) if len(known) > 1 else 0.0
        # Targets that are all equal have no spread, and any unit will do.
        std.append(spread if spread > 0 else 1.0)
    return {"mean": tuple(mean), "std": tuple(std)}


def _inputs(own: OwnData, kind: str, name: str) -> dict[str, Any]:
    values = [graph[name] for graph in own.graphs if name in graph]
    if not values:
        return {}
    first = values[0]
    columns_of = ATOM_COLUMNS if kind == "node" else BOND_COLUMNS
    # Some datasets of PyG have SMILES, but other features.
    of_pyg = not first.is_floating_point() and first.shape[1:] == (len(columns_of),)
    if own.smiles and of_pyg:
        # All atoms and bonds that there are, and not only those of this file.
        return {f"{kind}_tokens": columns_of}
    if first.is_floating_point():
        return {f"{kind}_channels": 1 if first.dim() == 1 else first.size(1)}
    for number, graph in enumerate(own.graphs):
        if name in graph and graph[name].numel() and int(graph[name].min()) < 0:
            raise ValueError(
                f"{own.name}, graph {number}: {name} of integers must not be negative, got "
                f"{int(graph[name].min())}: number the tokens from 0, or give floating point values"
            )
    if first.dim() == 1 or first.size(1) == 1:
        return {f"{kind}_tokens": count_values(own.name, name, values)}
    columns = [[value[:, column] for value in values] for column in range(first.size(1))]
    tokens = (count_values(own.name, f"{name}[:, {n}]", part) for n, part in enumerate(columns))
    return {f"{kind}_tokens": tuple(tokens)}
