r"""The datasets of the paper in one table: their classes, files and published statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fognn.data.few_shot import CIFARFS
from fognn.data.imdb import TEXT, IMDBMulti
from fognn.data.mini_imagenet import MiniImageNet
from fognn.data.omniglot import SOURCES, Omniglot
from fognn.data.sbm import CLUSTER, PATTERN
from fognn.data.sbm_generator import SPLIT_SIZES
from fognn.data.sources import cache_dir, data_dir, find
from fognn.data.tsp import TSP
from fognn.data.zinc import FILE as ZINC_FILE
from fognn.data.zinc import ZINC

__all__ = ["CATALOG", "DatasetInfo", "Fact", "dataset_info", "where"]

_SPLITS = ("train", "val", "test")
_BENCHMARK = "Benchmarking GNNs (arXiv 2003.00982), as in PyG's documentation"


@dataclass(frozen=True)
class Fact:
    r"""A published statistic.

    Args:
        statistic (str): Its name in :mod:`fognn.data.statistics`.
        value (float): The number, with as many digits as were published.
        digits (int): The number of published digits after the decimal point.
        split (str): The split; :obj:`"all"` for all of them together.
        source (str): The publication.
    """

    statistic: str
    value: float
    digits: int
    split: str
    source: str


@dataclass(frozen=True)
class DatasetInfo:
    r"""A dataset of the paper.

    Args:
        name (str): Its name in the paper.
        make (callable): Its class.
        kind (str): The kind of drawing: :obj:`"pattern"`, :obj:`"cluster"`, :obj:`"molecule"`,
            :obj:`"tour"`, :obj:`"network"` or :obj:`"images"`.
        task (str): The task, in words.
        size (str): The number of graphs; for few-shot data classes x images.
        licence (str): Its licence.
        origin (str): Where it comes from.
        files (tuple): Sets of files, by their paths in the data folder or in the cache; each set is
            enough to have the dataset.
        downloads (bool): Whether it is downloaded if it is not there.
        splits (tuple): The splits; empty for a dataset without splits.
        generated (bool): Whether it is generated and needs no files.
        facts (tuple): Published statistics.
        note (str): Why numbers here may differ from the published ones.
    """

    name: str
    make: Callable[..., Any]
    kind: str
    task: str
    size: str
    licence: str
    origin: str
    files: tuple[tuple[str, ...], ...] = ()
    downloads: bool = False
    splits: tuple[str, ...] = _SPLITS
    generated: bool = False
    facts: tuple[Fact, ...] = ()
    note: str = ""

    def open(self, split: str | None = None, data: str | Path | None = None) -> Any:
        r"""Opens one split; :obj:`None` for a dataset that has no splits."""
        return self.make(data=data) if split is None else self.make(split=split, data=data)


def dataset_info(name: str) -> DatasetInfo:
    r"""Returns the entry of a name, in any case, with or without its hyphens."""
    for entry in CATALOG:
        if _plain(entry.name) == _plain(name):
            return entry
    known = ", ".join(entry.name for entry in CATALOG)
    raise ValueError(f"name must be one of {known}, got {name!r}")


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def where(
    entry: DatasetInfo, data: str | Path | None = None, splits: Sequence[str] | None = None
) -> str:
    r"""Returns where a dataset is: :obj:`"data folder"`, :obj:`"cache"`, :obj:`"generated"` or
    :obj:`"download"` for one that is generated or downloaded when it is first opened, or
    :obj:`"no"`. Downloads nothing.

    Args:
        entry (DatasetInfo): The dataset.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        splits (sequence of str, optional): Only these splits of a generated dataset.
            (default: all)
    """
    if entry.generated:
        made = cache_dir() / entry.name.lower() / "processed"
        sizes = SPLIT_SIZES[entry.name]
        names = (f"*-seed0-{split}-{sizes[split]}.pt" for split in splits or entry.splits)
        return "cache" if all(any(made.glob(name)) for name in names) else "generated"
    folder = data_dir(data)
    for files in entry.files:
        paths = [find(name, data) for name in files]
        if all(paths):
            mine = all(folder and path.is_relative_to(folder) for path in paths if path)
            return "data folder" if mine else "cache"
    return "download" if entry.downloads else "no"


def _facts(
    source: str, sums: Mapping[str, tuple[int, ...]], **splits: dict[str, str]
) -> tuple[Fact, ...]:
    r"""Returns the facts of one source.

    Args:
        source (str): The publication.
        sums (dict): Statistics with a number for each split, whose sum is that of all together.
        splits (dict): Statistics of one split, as they were printed.
    """
    printed = [(split, *item) for split, facts in splits.items() for item in facts.items()]
    for name, numbers in sums.items():
        values = zip((*_SPLITS, "all"), (*numbers, sum(numbers)), strict=True)
        printed += [(split, name, str(number)) for split, number in values]
    return tuple(
        Fact(name, float(text), len(text.partition(".")[2]), split, source)
        for split, name, text in printed
    )


_FEW_SHOT = {"classes": (64, 16, 20)}
_IMAGES = {"images a class, most": "600"}
CATALOG: tuple[DatasetInfo, ...] = (
    DatasetInfo(
        name="PATTERN",
        make=PATTERN,
        kind="pattern",
        task="nodes into 2 classes",
        size="14,000 graphs",
        licence="MIT",
        origin="generator; official with PyG",
        generated=True,
        facts=_facts(
            _BENCHMARK,
            {"graphs": (10_000, 2_000, 2_000)},
            all={"nodes, mean": "118.9", "edges, mean": "6098.9", "classes": "2"},
        ),
        note="generated from the published distribution; the sizes of its 100 patterns are drawn "
        "once a seed, so the mean is 117 nodes with a standard deviation of 0.9 between seeds",
    ),
    DatasetInfo(
        name="CLUSTER",
        make=CLUSTER,
        kind="cluster",
        task="nodes into 6 classes",
        size="12,000 graphs",
        licence="MIT",
        origin="generator; official with PyG",
        generated=True,
        facts=_facts(
            _BENCHMARK,
            {"graphs": (10_000, 1_000, 1_000)},
            all={"nodes, mean": "117.2", "edges, mean": "4303.9", "classes": "6"},
        ),
        note="generated from the published distribution: other graphs, the same means",
    ),
    DatasetInfo(
        name="ZINC",
        make=ZINC,
        kind="molecule",
        task="graphs to penalised logP",
        size="12,000 graphs",
        licence="ZINC: free; split: MIT",
        origin="npz, else downloaded with PyG",
        files=((ZINC_FILE,), ("pyg/ZINC",)),
        downloads=True,
        facts=_facts(
            "the public benchmark's ZINC-12k",
            {"graphs": (10_000, 1_000, 1_000)},
            all={"nodes, mean": "23.155", "edges, mean": "49.831"},
            train={"label, mean": "0.0153", "label, s.d.": "2.0109"},
            test={"label, mean": "0.0124", "label, s.d.": "2.0180"},
        ),
    ),
    DatasetInfo(
        name="TSP",
        make=TSP,
        kind="tour",
        task="edges into 2 classes",
        size="12,000 graphs",
        licence="MIT",
        origin="npz, else downloaded with PyG",
        files=(
            tuple(f"tsp/tsp_{split}.npz" for split in _SPLITS),
            ("pyg/GNNBenchmarkDataset/TSP",),
            ("pyg/GNNBenchmarkDataset-TSP",),
        ),
        downloads=True,
        facts=_facts(
            _BENCHMARK,
            {"graphs": (10_000, 1_000, 1_000)},
            all={"nodes, mean": "275.4", "edges, mean": "6885.0", "classes": "2"}
            | {"nodes, fewest": "50", "nodes, most": "500"},
        ),
        note="the prepared files are other graphs of the same distribution, with Euclidean tours; "
        "the official tours are optimal for Concorde's GEO metric",
    ),
    DatasetInfo(
        name="IMDB-MULTI",
        make=IMDBMulti,
        kind="network",
        task="graphs into 3 classes",
        size="1,500 graphs",
        licence="MIT",
        origin="text file, downloaded",
        files=((TEXT.path,),),
        downloads=True,
        splits=(),
        facts=_facts(
            "Deep Graph Kernels (KDD 2015), and the TU collection",
            {},
            all={"graphs": "1500", "nodes": "19502", "edges": str(2 * 98_903), "classes": "3"}
            | {"nodes, mean": "13.00", "edges, mean": "131.87"}
            | {f"label {label}, share": "0.3333" for label in range(3)},
        ),
    ),
    DatasetInfo(
        name="miniImageNet",
        make=MiniImageNet,
        kind="images",
        task="few-shot images",
        size="100 x 600 images",
        licence="ImageNet: research; split: MIT",
        origin="images and split",
        files=tuple(
            ("miniimagenet/images", *(f"miniimagenet_splits/{split}.csv{end}" for split in _SPLITS))
            for end in (".gz", "")
        ),
        facts=_facts("Ravi and Larochelle (ICLR 2017)", _FEW_SHOT, all=_IMAGES),
    ),
    DatasetInfo(
        name="Omniglot",
        make=partial(Omniglot, validation=172),
        kind="images",
        task="few-shot images",
        size="1,623 x 20 images",
        licence="MIT",
        origin="official zips, downloaded",
        files=(tuple(source.path for source in SOURCES.values()),),
        downloads=True,
        facts=_facts(
            "Matching Networks (arXiv 1606.04080): 1,200 and 423 characters, 4 rotations of each; "
            "172 of the 1,200 are for validation",
            {"classes": (4112, 688, 1692)},
            all={"height": "28", "images a class, fewest": "20", "images a class, most": "20"},
        ),
    ),
    DatasetInfo(
        name="CIFAR-FS",
        make=CIFARFS,
        kind="images",
        task="few-shot images",
        size="100 x 600 images",
        licence="none stated",
        origin="npz from CIFAR-100 and the split",
        files=((CIFARFS.source.path,),),
        facts=_facts("Bertinetto et al. (arXiv 1805.08136)", _FEW_SHOT, all=_IMAGES),
        note="cifar_fs_100.npz holds the first 100 of each class's 600 images",
    ),
)
