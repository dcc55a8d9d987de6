r"""The data of a run: their task, and loaders for their splits."""

import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from fognn.data import FullGraphLoader, IMDBMulti, NeighborLoader, PackedLoader, UserData
from fognn.data.catalog import DatasetInfo, dataset_info
from fognn.data.episodes import Episodes, Tasks
from fognn.data.generators import SPLIT_SIZES
from fognn.data.user_data import RWSE, random_walk_transform
from fognn.models import TASKS, Task
from fognn.training.config import Config, DataConfig
from fognn.training.user_data import (
    accuracy_notes,
    is_user_data,
    open_data,
    user_splits,
    user_task,
)

PLAIN_ZINC = "ZINC-without-node-features"  # the same type for every atom
FOLDS = 10


class RunData:
    r"""The data of a run. The user's are opened here, if they are not open, and only once."""

    def __init__(self, config: Config, user: UserData | None = None) -> None:
        if user is None and is_user_data(config.data):
            user = open_data(config.data)
        self.run, self.config, self.user = config, config.data, user
        self.queries = config.data.n_query if few_shot(config.data) else None  # of an episode

    @cached_property
    def task(self) -> Task | None:
        r"""The inputs and outputs of the networks; :obj:`None` for few-shot images."""
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
        notes = accuracy_notes(self.run, self.user)
        return [*self.user.notes, f"split: {sizes}{of}", *notes]

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
    r"""Returns the task of a dataset, see :attr:`RunData.task`."""
    if is_user_data(config):
        return user_task(config, user or open_data(config))
    entry = _entry(config)
    if entry.kind == "images":
        return None
    return replace(TASKS[entry.name.lower()], encodings=config.rwse)


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
        for start in range(first, first + self.episodes, self.batch_size):
            end = min(start + self.batch_size, first + self.episodes)
            numbers = range(start + self.rank, end, self.world_size)
            yield self.drawn.tasks([*map(self.drawn.episode, numbers)])


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
