r"""The datasets of the paper in one table: their classes, files and published statistics."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fognn.data.benchmark import TSP, ZINC, IMDBMulti
from fognn.data.generators import CLUSTER, PATTERN
from fognn.data.images import CIFARFS, MiniImageNet, Omniglot
from fognn.data.sources import data_dir, find

_CLASSES: dict[str, Callable[..., Any]] = {
    "PATTERN": PATTERN,
    "CLUSTER": CLUSTER,
    "ZINC": ZINC,
    "TSP": TSP,
    "IMDB-MULTI": IMDBMulti,
    "miniImageNet": MiniImageNet,
    "Omniglot": partial(Omniglot, validation=172),
    "CIFAR-FS": CIFARFS,
}


@dataclass(frozen=True)
class DatasetInfo:
    r"""A dataset of the paper, as :obj:`catalog.toml` describes it."""

    name: str  # in the paper
    make: Callable[..., Any]  # its class
    kind: str  # "pattern", "cluster", "molecule", "tour", "network" or "images"
    task: str  # in words
    size: str
    licence: str
    origin: str
    publication: str  # the source of the published statistics
    # For each split and for "all": statistics by their names in fognn.data.statistics, as printed.
    published: Mapping[str, Mapping[str, str]]
    files: Sequence[Sequence[str]] = ()  # sets of paths; each set is enough to have the dataset
    downloads: bool = False  # whether it is downloaded if it is not there
    splits: Sequence[str] = ("train", "val", "test")  # empty for a dataset without splits
    generated: bool = False  # whether it is generated and needs no files
    note: str = ""  # why numbers here may differ from the published ones

    def open(self, split: str | None = None, data: str | Path | None = None) -> Any:
        r"""Opens one split; :obj:`None` for a dataset that has no splits."""
        return self.make(data=data) if split is None else self.make(split=split, data=data)


_TABLE = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8"))
CATALOG = tuple(DatasetInfo(name, _CLASSES[name], **entry) for name, entry in _TABLE.items())
_BY_NAME = {entry.name.lower().replace("-", ""): entry for entry in CATALOG}


def dataset_info(name: str) -> DatasetInfo:
    r"""Returns the entry of a name, in any case, with or without its hyphens."""
    plain = name.lower().replace("-", "").replace("_", "")
    if plain not in _BY_NAME:
        raise ValueError(f"name must be one of {', '.join(_TABLE)}, got {name!r}")
    return _BY_NAME[plain]


def where(entry: DatasetInfo, data: str | Path | None = None) -> str:
    r"""Returns where the files of a dataset are: :obj:`"data folder"`, :obj:`"cache"`, or
    :obj:`"no"`; :obj:`"generated"` for one that needs none, and :obj:`"download"` for one that is
    downloaded when it is first opened; ``data`` is the data folder (:obj:`$FOGNN_DATA`)."""
    if entry.generated:
        return "generated"
    folder = data_dir(data)
    for files in entry.files:
        paths = [find(name, data) for name in files]
        if all(paths):
            mine = all(folder and path.is_relative_to(folder) for path in paths if path)
            return "data folder" if mine else "cache"
    return "download" if entry.downloads else "no"
