r"""miniImageNet: 100 classes of ImageNet, 84x84."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from fognn.data.few_shot import ImageSet, image_module, kept_images
from fognn.data.smiles_csv import read_table
from fognn.data.sources import Source, cache_dir, fetch, find
from fognn.utils import checks
from fognn.utils.errors import FileError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MiniImageNet"]

_SIZE = 84
_TABLES = "https://github.com/twitter-research/meta-learning-lstm, data/miniImagenet"


class MiniImageNet(ImageSet):
    r"""miniImageNet with the split of the `"Optimization as a model for few-shot learning"
    <https://openreview.net/forum?id=rJY0-Kcll>`_ paper: 64 classes for training, 16 for
    validation and 20 for testing, 600 images each, 84x84 in colour.

    ImageNet's licence forbids a download. The images are those that the table
    :obj:`miniimagenet_splits/{split}.csv.gz` (or :obj:`.csv`) of the data folder names in its
    columns :obj:`filename,label`, in the folder :obj:`miniimagenet/images`. They are resized to
    84x84 by Lanczos' filter once and stored. Classes are numbered in the order of their names.

    Args:
        root (str or Path, optional): The folder for the resized images. If :obj:`None`, the
            folder :obj:`miniimagenet` in the cache.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied to each image when it is read.
            (default: :obj:`None`)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        data: str | Path | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        checks.one_of("MiniImageNet", "split", split, ("train", "val", "test"))
        table = _table(split, data)
        hint = "take the 60,000 images from ImageNet, whose licence forbids their download"
        folder = fetch(Source("miniimagenet/images", hint=hint), data)
        paths = [folder / name for name in table["filename"]]
        missing = [path for path in paths if not path.is_file()]
        if missing:
            raise FileError(
                f"{missing[0]} is not there, nor are {len(missing) - 1:,} others of {len(paths):,} "
                "images that the table names: complete the folder"
            )
        kept = cache_dir() / "miniimagenet" if root is None else Path(root)
        path = kept / "processed" / f"{split}_{_SIZE}_v1_{_digest(paths)}.pt"
        content = kept_images(path, lambda: {"images": _shrink(paths)})
        classes = sorted(set(table["label"]))
        labels = torch.tensor([classes.index(label) for label in table["label"]])
        super().__init__(content["images"], labels, classes, transform)


def _table(split: str, data: str | Path | None) -> "pd.DataFrame":
    name = f"miniimagenet_splits/{split}.csv"
    path = find(f"{name}.gz", data) or fetch(Source(name, hint=f"get it from {_TABLES}"), data)
    table = read_table(path)
    if list(table.columns) != ["filename", "label"] or not len(table):
        raise FileError(f"{path} must have the columns filename,label: get it again")
    # A name that is a path could lead out of the folder of images.
    wrong = [file for file in table["filename"] if Path(file).name != file]
    if wrong:
        raise FileError(f"{path} must have names of files, got {wrong[0]!r}")
    return table


def _digest(paths: list[Path]) -> str:
    r"""Returns a digest of names, sizes and times, so that changed images are read again."""
    digest = hashlib.sha256()
    for path in paths:
        status = path.stat()
        digest.update(f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]


def _shrink(paths: list[Path]) -> Tensor:
    pillow = image_module("MiniImageNet")
    out = torch.empty(len(paths), 3, _SIZE, _SIZE, dtype=torch.uint8)
    for i, path in enumerate(tqdm(paths, desc="miniImageNet", disable=None)):
        try:
            with pillow.open(path) as image:
                small = image.convert("RGB").resize((_SIZE, _SIZE), pillow.Resampling.LANCZOS)
        except OSError as error:
            raise FileError(f"{path} is truncated or corrupt ({error}): get it again") from error
        out[i] = torch.from_numpy(np.array(small)).permute(2, 0, 1)
    return out
