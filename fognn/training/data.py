r"""The data of a run: their task and objective, and loaders for their splits."""

import hashlib
import math
import os
import statistics
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fognn.data import (
    FullGraphLoader,
    IMDBMulti,
    NeighborLoader,
    PackedLoader,
    UserData,
    open_user_data,
)
from fognn.data.catalog import DatasetInfo, dataset_info
from fognn.data.episodes import Episodes, Tasks
from fognn.data.generators import SPLIT_SIZES
from fognn.data.molecules import ATOM_COLUMNS, BOND_COLUMNS, is_csv
from fognn.data.opening import PYTHON
from fognn.data.pyg_datasets import PREFIX
from fognn.data.targets import count_values
from fognn.data.user_data import RWSE, random_walk_transform
from fognn.models import TASKS, Task
from fognn.training.config import RANKING, Config, DataConfig

PLAIN_ZINC = "ZINC-without-node-features"  # the same type for every atom
FOLDS = 10
_LOSSES = {
    "values": ("l1", "mse"),
    "yes/no": ("bce",),
    "classes": ("cross_entropy", "balanced_cross_entropy"),
}


class RunData:
    r"""The data of a run. The user's are opened here, if they are not open, and only once."""

    def __init__(self, config: Config, user: UserData | None = None) -> None:
        if user is None and is_user_data(config.data):
            user = open_data(config.data)
        self.run, self.config, self.user = config, config.data, user
        self.queries = config.data.n_query if few_shot(config.data) else None  # of an episode

    @cached_property
    def task(self) -> Task | None:
        r"""The inputs and outputs of the networks, see :func:`task_of`."""
        return task_of(self.config, self.user)

    @property
    def classes(self) -> int:
        r"""The number of outputs of a network."""
        return self.config.n_way if self.task is None else self.task.out_channels

    @cached_property
    def std(self) -> Tensor | None:
        r"""The standard deviation of each value of the task, for the loss."""
        return None if self.task is None or not self.task.std else torch.tensor(self.task.std)

    @cached_property
    def folds(self) -> list[Config]:
        r"""The folds that the run trains one after another; empty for a single run."""
        if self.config.fold is not None:
            return []
        if self.user is None:
            count = 0 if _entry(self.config).splits else FOLDS
        else:
            count = self.user.num_splits if self.config.split == "all" else 0
        return [self.run.with_values({"data.fold": fold + 1}) for fold in range(count)]

    @property
    def splits(self) -> tuple[str, ...]:
        r"""The names of the splits. A held-out fold that is evaluated in every epoch is no test."""
        if self.user is None and not _entry(self.config).splits and not self.config.holdout:
            return ("train", "val")
        return ("train", "val", "test")

    def notes(self) -> list[str]:
        r"""Returns what was found in the user's data."""
        if self.user is None:
            return []
        found = user_splits(self.config, self.user)
        sizes = ", ".join(f"{len(items):,} {split}" for split, items in found.items())
        count = self.user.num_splits
        of = f" (number {self.config.fold or 1} of {count})" if count > 1 else ""
        notes = [*self.user.notes, f"split: {sizes}{of}"]
        one = _two_classes(self.user) and _constant_split(self.config, self.user)
        if one and self.run.training.metric == "accuracy":
            notes.append(f"accuracy and not ROC-AUC, because the {one} split has only one class")
        return notes

    def loader(self, split: str, rank: int = 0, world_size: int = 1) -> Any:
        r"""Returns the loader of a split; of ``"train"``, shuffled, each rank has a part."""
        if split not in self.splits:
            raise ValueError(f"split must be one of {', '.join(self.splits)}, got {split!r}")
        config, size, train = self.config, self.run.training.batch_size, split == "train"
        rank, world_size = (rank, world_size) if train else (0, 1)
        if self.queries is not None:
            if config.rwse:
                raise ValueError(f"config: data.rwse must be 0 for images, got {config.rwse}")
            images = _entry(config).open(split, config.folder)
            seed = self.run.seed if train else config.seed
            drawn = Episodes(images, config.n_way, config.k_shot, config.n_query, seed)
            count = self.run.training.steps * size if train else config.episodes
            return EpisodeLoader(drawn, count, size, train, rank, world_size)
        options = (size // world_size, train, self.run.seed, rank, world_size)
        if self.user is None:
            return PackedLoader(_graphs(config, split), *options)
        items = user_splits(config, self.user)[split]
        if self.user.nodes is None:
            graphs = self.user.encoded(config.rwse)
            return PackedLoader([graphs[item] for item in items.tolist()], *options)
        graph = self.user.packed(config.rwse)
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[items] = True
        if config.neighbors is None:
            return FullGraphLoader(graph, mask)
        return NeighborLoader(graph, mask, config.neighbors, *options)


def few_shot(data: DataConfig) -> bool:
    r"""Returns whether the dataset consists of images for few-shot learning."""
    return not is_user_data(data) and _entry(data).kind == "images"


def task_of(config: DataConfig, user: UserData | None = None) -> Task | None:
    r"""Returns the inputs and outputs of the networks; :obj:`None` for few-shot images.

    In the user's data, integers are tokens and classes, floating point numbers are features and
    values, which are standardised by the training split."""
    if not is_user_data(config):
        task = TASKS.get(_entry(config).name.lower())
        return task and replace(task, encodings=config.rwse)
    data = user or open_data(config)
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


def data_fingerprint(config: Config, user: UserData | None = None) -> str:
    r"""Returns the checksum of all data of a run, as in its :class:`~fognn.training.Result`."""
    data = RunData(config, user)
    parts = [data_fingerprint(fold, data.user) for fold in data.folds]
    return joint_fingerprint(parts or [fingerprint(data.loader(name)) for name in data.splits])


def joint_fingerprint(parts: Iterable[str]) -> str:
    r"""Combines the checksums of splits, or of folds, into one."""
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def fingerprint(loader: Any) -> str:
    r"""Returns a checksum of the graphs, or images, of a loader."""
    if isinstance(loader, EpisodeLoader):
        tensors = [loader.drawn.images.images, loader.drawn.images.labels]
    else:
        several = isinstance(loader, PackedLoader)
        pack = loader.pack if several else loader.graph.pack
        tensors = [pack.num_nodes, pack.edges.source, pack.edges.in_degree]
        # PyG's order differs between processes, and the last bits of encodings between machines.
        tensors += [pack.columns[name].values for name in sorted(pack.columns) if name != RWSE]
        tensors += [] if several else [loader.mask]
    digest = 0
    for tensor in filter(torch.is_tensor, tensors):
        digest = zlib.crc32(tensor.contiguous().numpy().tobytes(), digest)
    return f"{digest:08x}"


@dataclass
class EpisodeLoader:
    r"""A loader of few-shot episodes. Each epoch of the training has new ones."""

    drawn: Episodes
    episodes: int
    batch_size: int
    train: bool
    rank: int = 0
    world_size: int = 1
    epoch: int = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.episodes // self.batch_size)

    def __iter__(self) -> Iterator[Tasks]:
        first = self.epoch * self.episodes if self.train else 0
        numbers = range(first, first + self.episodes)
        for start in range(0, self.episodes, self.batch_size):
            batch = numbers[start : start + self.batch_size][self.rank :: self.world_size]
            yield self.drawn.tasks([*map(self.drawn.episode, batch)])


def _entry(data: DataConfig) -> DatasetInfo:
    return dataset_info("zinc" if data.name == PLAIN_ZINC else data.name)


def _graphs(data: DataConfig, split: str) -> Any:
    entry = _entry(data)
    # Encodings are kept in the dataset's processed file, whose name depends on them.
    walks = random_walk_transform(data.rwse) if data.rwse else None
    options: dict[str, Any] = {"pre_transform": walks}
    if not entry.splits:
        return _fold(data, split, IMDBMulti(data=data.folder, **options))
    if entry.generated:
        size = math.ceil(SPLIT_SIZES[entry.name][split] * data.fraction)
        options |= {"seed": data.seed, "num_graphs": size}
        return entry.make(split=split, **options)
    if data.name == PLAIN_ZINC:
        options["without_node_features"] = True
    graphs = entry.make(split=split, data=data.folder, **options)
    return graphs[: math.ceil(len(graphs) * data.fraction)]


def _fold(data: DataConfig, split: str, graphs: IMDBMulti) -> Any:
    folds, number = [test for _, test in graphs.folds()], data.fold
    if number is None or number > len(folds):
        raise ValueError(f"config: data.fold must be in 1..{len(folds)}, got {number}")
    test = val = folds[number - 1]
    if data.holdout:
        val = folds[number % len(folds)]  # the best epoch is chosen on the next fold
    every = torch.arange(len(graphs))
    train = every[~torch.isin(every, torch.cat([test, val]))]
    chosen = {"train": train, "val": val, "test": test}[split]
    return graphs[chosen[: math.ceil(len(chosen) * data.fraction)]]


def is_user_data(data: DataConfig) -> bool:
    r"""Returns whether the data are the user's or a dataset of PyG, and not one of the paper."""
    name = data.name
    graphs = name.lower().endswith((".pt", ".npz")) or "/" in name or os.sep in name
    return graphs or is_csv(name) or name.startswith((PREFIX, PYTHON))


def user_data_name(data: DataConfig) -> str:
    r"""Returns the name of the user's data without folders; the whole name of a PyG dataset."""
    named = data.name.startswith((PREFIX, PYTHON))
    return data.name if named else Path(data.name).name


def open_data(config: DataConfig) -> UserData:
    r"""Opens the user's file, folder or dataset of PyG that a run names."""
    names = ("smiles", "target", "split_column", "task", "skip_bad", "folder")
    return open_user_data(config.name, **{name: getattr(config, name) for name in names})


def user_splits(config: DataConfig, data: UserData) -> dict[str, Tensor]:
    r"""Returns the indices of the graphs, or of the nodes of the only graph, of each split."""
    return data.splits(config.split, config.seed, config.fraction, config.fold)


def user_objective(config: DataConfig, data: UserData) -> dict[str, str]:
    r"""Returns the ``"loss"`` and the ``"metric"`` that fit the targets. Two classes are judged by
    ROC-AUC, unless a split has only one of them."""
    if data.targets.kind == "values":
        return {"loss": "l1", "metric": "mae"}
    loss = "bce" if data.targets.kind == "yes/no" else "cross_entropy"
    ranked = _two_classes(data) and not _constant_split(config, data)
    return {"loss": loss, "metric": "roc_auc" if ranked else "accuracy"}


def _two_classes(data: UserData) -> bool:
    kind = data.targets.kind
    return kind == "yes/no" or (kind == "classes" and data.targets.columns == 2)


def check_user_data(config: Config, data: UserData | None) -> None:
    r"""Raises unless the loss, the metric and the loader fit the user's data, if there are any."""
    if data is None:
        return
    training, neighbors, targets = config.training, config.data.neighbors, data.targets
    if data.nodes is None and neighbors is not None:
        raise ValueError(f"config: data.neighbors must be None but for one graph, got {neighbors}")
    gcn = config.model.name.partition("+")[0] == "gcn"
    if neighbors is not None and gcn and config.model.settings.get("norm", "sym") == "sym":
        # It divides by the degrees of the neighbours, whose own neighbours are not all sampled.
        raise ValueError(
            "config: model.norm must be 'mean' or 'none' with data.neighbors, got 'sym'"
        )
    known = _LOSSES[targets.kind]
    if training.loss not in known:
        raise ValueError(
            f"config: training.loss must be {' or '.join(known)} for {targets}, "
            f"got {training.loss!r}"
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
