r"""What is known of a dataset before it is opened, and whether it is here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fognn.datasets.sbm_generator import SPLIT_SIZES
from fognn.datasets.sources import Source, cache_dir, data_dir, find

__all__ = ["DatasetInfo", "Fact", "where"]


@dataclass(frozen=True)
class Fact:
    r"""A published number.

    Args:
        statistic (str): The name that :mod:`fognn.datasets.statistics` gives it.
        value (float): The number, with as many digits as were published.
        digits (int): How many digits behind the point were published.
        split (str): Of which split; :obj:`"all"` for all of them together.
        source (str): Who published it.
    """

    statistic: str
    value: float
    digits: int
    split: str
    source: str


@dataclass(frozen=True)
class DatasetInfo:
    r"""A dataset.

    Args:
        name (str): Its name in the paper.
        make (callable): Its class.
        kind (str): What a drawing of it shows: :obj:`"pattern"`,
            :obj:`"cluster"`, :obj:`"molecule"`, :obj:`"tour"`,
            :obj:`"network"` or :obj:`"images"`.
        task (str): What is to be learnt.
        size (str): How much there is, for few-shot data classes x images.
        licence (str): Under which terms.
        origin (str): Where it comes from.
        files (tuple): Sets of files; each set is enough to have the dataset.
        splits (tuple): The splits. A dataset without splits has none.
        generated (bool): Whether it is made here and needs no files.
        facts (tuple): Published numbers.
        note (str): Why numbers here may differ from the published ones.
    """

    name: str
    make: Callable[..., Any]
    kind: str
    task: str
    size: str
    licence: str
    origin: str
    files: tuple[tuple[Source, ...], ...] = ()
    splits: tuple[str, ...] = ("train", "val", "test")
    generated: bool = False
    facts: tuple[Fact, ...] = ()
    note: str = ""

    def open(self, split: str | None = None, data: str | Path | None = None) -> Any:
        r"""Opens one split; :obj:`None` for a dataset that has no splits."""
        return self.make(data=data) if split is None else self.make(split=split, data=data)


def where(
    entry: DatasetInfo, data: str | Path | None = None, splits: Sequence[str] | None = None
) -> str:
    r"""Whether a dataset is here: :obj:`"data folder"`, :obj:`"cache"`, :obj:`"generated"` for
    one that is made when it is asked for, or :obj:`"no"`. Downloads nothing.

    Args:
        entry (DatasetInfo): The dataset.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        splits (sequence of str, optional): Only these splits, of a generated
            dataset. (default: all)
    """
    folder = data_dir(data)
    if entry.generated:
        made = cache_dir() / entry.name.lower() / "processed"
        sizes = SPLIT_SIZES[entry.name]
        names = (f"*-seed0-{split}-{sizes[split]}.pt" for split in splits or entry.splits)
        return "cache" if all(any(made.glob(name)) for name in names) else "generated"
    for files in entry.files:
        paths = [_find(source, data) for source in files]
        if all(paths):
            in_folder = folder is not None and all(
                path.is_relative_to(folder) for path in paths if path
            )
            return "data folder" if in_folder else "cache"
    return "no"


def _find(source: Source, data: str | Path | None) -> Path | None:
    for base in (data_dir(data), cache_dir()):
        # miniImageNet's pictures are a folder, which find does not look for.
        if base is not None and (base / source.path).is_dir():
            return base / source.path
    return find(source, data)
