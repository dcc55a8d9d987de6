r"""Loaders for the splits of a run."""

import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fognn.data import FullGraphLoader, IMDBMulti, NeighborLoader, PackedLoader, UserData
from fognn.data.catalog import DatasetInfo, dataset_info
from fognn.data.episodes import Episodes, Tasks
from fognn.data.generators import SPLIT_SIZES
from fognn.data.images import ImageSet
from fognn.data.pack import Pack
from fognn.data.user_data import RWSE, random_walk_transform
from fognn.models import TASKS, Task
from fognn.training.config import Config, DataConfig
from fognn.training.user_data import (
    check_user_data,
    is_user_data,
    open_data,
    user_splits,
    user_task,
)

__all__ = [
    "FOLDS",
    "PLAIN_ZINC",
    "data_fingerprint",
    "few_shot",
    "fingerprint",
    "folded",
    "folds_of",
    "joint_fingerprint",
    "notes_of",
    "open_split",
    "queries_of",
    "splits_of",
    "task_of",
]

# The paper's study of limitations uses ZINC with the same type for every atom.
PLAIN_ZINC = "ZINC-without-node-features"
FOLDS = 10


def few_shot(data: DataConfig) -> bool:
    r"""Returns whether the dataset consists of images for few-shot learning."""
    return not is_user_data(data) and _entry(data).kind == "images"


def queries_of(data: DataConfig) -> int | None:
    r"""Returns the number of queries of an episode; :obj:`None` for graphs."""
    return data.n_query if few_shot(data) else None


def folded(data: DataConfig) -> bool:
    r"""Returns whether the dataset has folds instead of splits, or all of its splits are used as
    folds."""
    return data.split == "all" if is_user_data(data) else not _entry(data).splits


def folds_of(config: DataConfig, data: UserData | None = None) -> int:
    r"""Returns the number of folds that a run trains one after another; 0 for a single run."""
    if not folded(config) or config.fold is not None:
        return 0
    return (data or open_data(config)).num_splits if is_user_data(config) else FOLDS


def task_of(config: DataConfig, data: UserData | None = None) -> Task | None:
    r"""Returns the task of a dataset, the inputs and outputs of its networks; :obj:`None` for
    few-shot images. The user's data are opened here if they are not open."""
    if is_user_data(config):
        return user_task(config, data or open_data(config))
    entry = _entry(config)
    if entry.kind == "images":
        return None
    return replace(TASKS[entry.name.lower()], encodings=config.rwse)


def notes_of(config: DataConfig, data: UserData | None = None) -> list[str]:
    r"""Returns what was found in the user's data, for the user; nothing for other datasets."""
    if not is_user_data(config):
        return []
    data = data or open_data(config)
    found = user_splits(config, data)
    sizes = ", ".join(f"{len(items):,} {split}" for split, items in found.items())
    of = f" (number {config.fold or 1} of {data.num_splits})" if data.num_splits > 1 else ""
    return [*data.notes, f"split: {sizes}{of}"]


def open_split(
    config: Config,
    split: str,
    rank: int = 0,
    world_size: int = 1,
    data: UserData | None = None,
) -> Any:
    r"""Returns the loader of a split: ``"train"``, shuffled with the run's seed, of which each rank
    loads a part of each batch, or ``"val"`` or ``"test"``. The user's data are opened here if they
    are not open."""
    source, size = config.data, config.training.batch_size
    if split not in splits_of(source):
        raise ValueError(f"split must be one of {', '.join(splits_of(source))}, got {split!r}")
    train = split == "train"
    ranks = (rank, world_size) if train else (0, 1)
    if few_shot(source):
        if source.rwse:
            raise ValueError(f"config: data.rwse must be 0 for images, got {source.rwse}")
        images = _entry(source).open(split, source.folder)
        seed = config.seed if train else source.seed
        episodes = config.training.steps * size if train else source.episodes
        return EpisodeLoader(images, source, episodes, size, seed, train, *ranks)
    options: dict[str, Any] = {
        "batch_size": size // ranks[1],
        "shuffle": train,
        "seed": config.seed,
        "rank": ranks[0],
        "world_size": ranks[1],
    }
    if not is_user_data(source):
        return PackedLoader(_graphs(source, split), **options)
    data = data or open_data(source)
    check_user_data(config, data)
    items = user_splits(source, data)[split]
    if data.nodes is None:
        graphs = data.encoded(source.rwse)
        return PackedLoader([graphs[item] for item in items.tolist()], **options)
    graph = data.packed(source.rwse)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    mask[items] = True
    if source.neighbors is None:
        return FullGraphLoader(graph, mask)
    return NeighborLoader(graph, mask, source.neighbors, **options)


def splits_of(data: DataConfig) -> tuple[str, ...]:
    r"""Returns the names of the splits. A held-out fold without ``holdout`` is ``"val"`` and not
    ``"test"``, because it is evaluated in every epoch."""
    if folded(data) and not is_user_data(data) and not data.holdout:
        return ("train", "val")
    return ("train", "val", "test")


def joint_fingerprint(parts: Iterable[str]) -> str:
    r"""Combines the checksums of splits, or of folds, into one."""
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def data_fingerprint(config: Config, data: UserData | None = None) -> str:
    r"""Returns the checksum of all data of a run, as in its :class:`~fognn.training.Result`."""
    if data is None and is_user_data(config.data):
        data = open_data(config.data)
    if count := folds_of(config.data, data):
        folds = (config.with_values({"data.fold": fold}) for fold in range(1, count + 1))
        return joint_fingerprint(data_fingerprint(fold, data) for fold in folds)
    return joint_fingerprint(
        fingerprint(open_split(config, split, data=data)) for split in splits_of(config.data)
    )


def fingerprint(loader: Any) -> str:
    r"""Returns a checksum of the graphs, or images, of a loader."""
    if isinstance(loader, PackedLoader):
        tensors = _tensors(loader.pack)
    elif isinstance(loader, FullGraphLoader | NeighborLoader):
        tensors = [*_tensors(loader.graph.pack), loader.mask]
    else:
        assert isinstance(loader, EpisodeLoader)
        tensors = [loader.images.images, loader.images.labels]
    digest = 0
    for tensor in tensors:
        if isinstance(tensor, Tensor):
            digest = zlib.crc32(tensor.contiguous().numpy().tobytes(), digest)
    return f"{digest:08x}"


def _tensors(pack: Pack) -> list[Any]:
    # PyG's order of attributes differs between processes.
    # Encodings are computed from the edges, and the last bits depend on the machine.
    values = [pack.columns[name].values for name in sorted(pack.columns) if name != RWSE]
    return [pack.num_nodes, pack.edges.source, pack.edges.in_degree, *values]


@dataclass
class EpisodeLoader:
    r"""A loader of few-shot episodes. Each epoch of the training has new episodes; validation and
    test have the same ones in every epoch."""

    images: ImageSet
    data: DataConfig
    episodes: int
    batch_size: int
    seed: int
    train: bool
    rank: int = 0
    world_size: int = 1
    epoch: int = 0

    def __post_init__(self) -> None:
        counts = (self.data.n_way, self.data.k_shot, self.data.n_query)
        self.drawn = Episodes(self.images, *counts, seed=self.seed)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.episodes // self.batch_size)

    def __iter__(self) -> Iterator[Tasks]:
        first = self.epoch * self.episodes if self.train else 0
        for start in range(first, first + self.episodes, self.batch_size):
            end = min(start + self.batch_size, first + self.episodes)
            numbers = range(start + self.rank, end, self.world_size)
            yield self.drawn.tasks([self.drawn.episode(number) for number in numbers])


def _entry(data: DataConfig) -> DatasetInfo:
    return dataset_info("zinc" if data.name == PLAIN_ZINC else data.name)


def _graphs(data: DataConfig, split: str) -> Any:
    entry = _entry(data)
    if folded(data):
        return _fold(data, split)
    options = _transform(data)
    if entry.generated:
        size = math.ceil(SPLIT_SIZES[entry.name][split] * data.fraction)
        options |= {"seed": data.seed, "num_graphs": size}
        return entry.make(split=split, data=data.folder, **options)
    if data.name == PLAIN_ZINC:
        options["without_node_features"] = True
    graphs = entry.make(split=split, data=data.folder, **options)
    return graphs[: math.ceil(len(graphs) * data.fraction)]


def _transform(data: DataConfig) -> dict[str, Any]:
    r"""Returns the argument of a dataset that adds encodings to its processed file, whose name
    depends on them."""
    return {"pre_transform": random_walk_transform(data.rwse)} if data.rwse else {}


def _fold(data: DataConfig, split: str) -> Any:
    graphs = IMDBMulti(data=data.folder, **_transform(data))
    folds = graphs.folds()
    number = data.fold
    if number is None or number > len(folds):
        raise ValueError(f"config: data.fold must be in 1..{len(folds)}, got {number}")
    held_out = folds[number - 1][1]
    # With holdout, the best epoch is chosen on the next fold.
    next_one = folds[number % len(folds)][1]
    if split == "train":
        without = torch.cat([held_out, next_one]) if data.holdout else held_out
        keep = torch.ones(len(graphs), dtype=torch.bool)
        keep[without] = False
        chosen = keep.nonzero().flatten()
    else:
        chosen = next_one if data.holdout and split == "val" else held_out
    return graphs[chosen[: math.ceil(len(chosen) * data.fraction)]]
