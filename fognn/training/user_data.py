r"""The user's data in a run: their splits, their task and their objective."""

import os
import statistics
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fognn.data import UserData, open_user_data
from fognn.data.molecules import ATOM_COLUMNS, BOND_COLUMNS, is_csv
from fognn.data.opening import is_python_name
from fognn.data.pyg_datasets import is_pyg_name
from fognn.data.targets import count_values
from fognn.models import Task
from fognn.training.config import RANKING, Config, DataConfig

_LOSSES = {
    "values": ("l1", "mse"),
    "yes/no": ("bce",),
    "classes": ("cross_entropy", "balanced_cross_entropy"),
}


def is_user_data(data: DataConfig) -> bool:
    r"""Returns whether the data are the user's or a dataset of PyG, and not one of the paper."""
    name = data.name
    graphs = name.lower().endswith((".pt", ".npz")) or "/" in name or os.sep in name
    return graphs or is_csv(name) or is_pyg_name(name) or is_python_name(name)


def user_data_name(data: DataConfig) -> str:
    r"""Returns the name of the user's data without folders; the whole name of a PyG dataset."""
    named = is_pyg_name(data.name) or is_python_name(data.name)
    return data.name if named else Path(data.name).name


def open_data(config: DataConfig) -> UserData:
    r"""Opens the user's file, folder or dataset of PyG that a run names."""
    names = ("smiles", "target", "split_column", "task", "skip_bad", "folder")
    return open_user_data(config.name, **{name: getattr(config, name) for name in names})


def user_splits(config: DataConfig, data: UserData) -> dict[str, Tensor]:
    r"""Returns the indices of the graphs, or of the nodes of the only graph, of each split."""
    return data.splits(config.split, config.seed, config.fraction, config.fold)


def user_task(config: DataConfig, data: UserData) -> Task:
    r"""Returns the task of the graphs, with values that are standardised by the training split:
    integers are tokens and classes, floating point numbers are features and values."""
    targets = data.targets
    scale: dict[str, Any] = {}
    if targets.kind == "values":
        y = data.targets_of(user_splits(config, data)["train"]).double()
        known = [column[~column.isnan()] for column in torch.atleast_2d(y.t())]
        scale["mean"] = tuple(float(column.mean()) for column in known)
        # Targets that are all equal have no spread, and any unit will do.
        scale["std"] = tuple(statistics.pstdev(column.tolist()) or 1.0 for column in known)
    return Task(
        data.level,
        targets.columns,
        **_inputs(data, "node", "x"),
        **_inputs(data, "edge", "edge_attr"),
        **scale,
        readout="mean" if data.level == "graph" else None,  # GIN's sum begins with huge logits
        node_input=data.node_input,
        names=targets.classes or targets.names,
        encodings=config.rwse,
    )


def user_objective(config: DataConfig, data: UserData) -> dict[str, str]:
    r"""Returns the ``"loss"`` and the ``"metric"`` that fit the targets. Two classes are judged by
    ROC-AUC, unless a split has only one of them."""
    if data.targets.kind == "values":
        return {"loss": "l1", "metric": "mae"}
    loss = "bce" if data.targets.kind == "yes/no" else "cross_entropy"
    ranked = _two_classes(data) and not _constant_split(config, data)
    return {"loss": loss, "metric": "roc_auc" if ranked else "accuracy"}


def accuracy_notes(config: Config, data: UserData) -> list[str]:
    r"""Returns why two classes are judged by accuracy, if it is because a split has only one."""
    if config.training.metric != "accuracy" or not _two_classes(data):
        return []
    split = _constant_split(config.data, data)
    note = f"metric: accuracy and not ROC-AUC, because the {split} split has only one class"
    return [note] if split else []


def _two_classes(data: UserData) -> bool:
    kind = data.targets.kind
    return kind == "yes/no" or (kind == "classes" and data.targets.columns == 2)


def check_user_data(config: Config, data: UserData | None) -> None:
    r"""Raises unless the loss, the metric and the loader fit the user's data, if there are any."""
    if data is None:
        return
    training, neighbors, targets = config.training, config.data.neighbors, data.targets
    if data.nodes is None and neighbors is not None:
        raise ValueError(
            f"config: data.neighbors must be None for {data.name}, which is not one graph, got "
            f"{neighbors}"
        )
    gcn = config.model.name.partition("+")[0] == "gcn"
    if neighbors is not None and gcn and config.model.settings.get("norm", "sym") == "sym":
        # It divides by the degrees of the neighbours, whose own neighbours are not all sampled.
        raise ValueError(
            "config: model.norm must be 'mean' or 'none' with data.neighbors, got 'sym'"
        )
    known = _LOSSES[targets.kind]
    if training.loss not in known:
        raise ValueError(
            f"config: training.loss must be {' or '.join(known)} for the targets of "
            f"{config.data.name} ({targets}), got {training.loss!r}"
        )
    if training.metric == "f1" and targets.kind == "classes" and targets.columns > 2:
        raise ValueError(f"config: training.metric must not be 'f1' for {targets.columns} classes")
    constant = _constant_split(config.data, data)
    if constant and training.metric in RANKING:
        raise ValueError(
            f"config: training.metric must be accuracy, because all targets of the {constant} "
            f"split are the same, got {training.metric!r}"
        )


def _constant_split(config: DataConfig, data: UserData) -> str:
    r"""Returns the first split in which no column has two different targets, if there is one."""
    for split, items in user_splits(config, data).items():
        columns = torch.atleast_2d(data.targets_of(items).t())
        if all(len(column[~column.isnan()].unique()) < 2 for column in columns):
            return split
    return ""


def _inputs(data: UserData, kind: str, name: str) -> dict[str, Any]:
    values = [graph[name] for graph in data.graphs if name in graph]
    if not values:
        return {}
    first = values[0]
    if first.is_floating_point():
        return {f"{kind}_channels": 1 if first.dim() == 1 else first.size(1)}
    columns_of = ATOM_COLUMNS if kind == "node" else BOND_COLUMNS
    if data.smiles and first.shape[1:] == (len(columns_of),):
        # All atoms and bonds that there are, and not only those of this file.
        return {f"{kind}_tokens": columns_of}
    least = min((int(value.min()) for value in values if value.numel()), default=0)
    if least < 0:
        raise ValueError(
            f"{data.name}: {name} of integers must not be negative, got {least}: number the tokens "
            "from 0, or give floating point values"
        )
    columns = zip(*(torch.atleast_2d(value.t()) for value in values), strict=True)
    tokens = tuple(count_values(data.name, name, column) for column in columns)
    return {f"{kind}_tokens": tokens if len(tokens) > 1 else tokens[0]}
