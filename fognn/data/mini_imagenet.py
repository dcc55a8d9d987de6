r"""miniImageNet: 100 classes of ImageNet, 84x84."""

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from fognn.data.array_pickle import load_arrays
from fognn.data.few_shot import ImageSet, check_split, image_module, is_images, kept_images
from fognn.data.sources import Source, cache_dir, data_dir, find
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, check_regular

__all__ = ["MiniImageNet"]

_SIZE = 84
_LARGEST = 100_000_000  # bytes of a table


class MiniImageNet(ImageSet):
    r"""miniImageNet with the split of the `"Optimization as a model for few-shot learning"
    <https://openreview.net/forum?id=rJY0-Kcll>`_ paper: 64 classes for training, 16 for
    validation and 20 for testing, 600 images each, 84x84 in colour.

    ImageNet's licence forbids a download. Two forms of the images are read from the data folder,
    the first one that is there:

    * the common cached pickle, :obj:`miniimagenet/mini-imagenet-cache-{split}.pkl`, with an
      unpickler that accepts nothing but arrays;
    * the image files that the table of the split names, in the folder :obj:`miniimagenet/images`.
      The table is :obj:`miniimagenet_splits/{split}.csv.gz`, or :obj:`.csv`, with the columns
      :obj:`filename,label`. Images are resized to 84x84 by Lanczos' filter once and stored.

    Classes are numbered in the order of their names.

    Args:
        root (str or Path, optional): The folder for the resized images. If :obj:`None`, the
            folder :obj:`miniimagenet` in the cache.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        images (str or Path, optional): A folder of images in another place. The pickle is then
            not looked for. (default: :obj:`None`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied to each image when it is read.
            (default: :obj:`None`)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        images: str | Path | None = None,
        data: str | Path | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        check_split("MiniImageNet", split, ("train", "val", "test"))
        cached = Source(f"miniimagenet/mini-imagenet-cache-{split}.pkl")
        pickled = find(cached, data) if images is None else None
        if pickled is not None:
            super().__init__(*_from_pickle(pickled), transform)
            return
        folder = _image_folder(images, data, cached)
        table = _read_table(split, data)
        paths = [folder / name for name, _ in table]
        kept = cache_dir() / "miniimagenet" if root is None else Path(root)
        path = kept / "processed" / f"{split}_{_SIZE}_v1_{_digest(paths)}.pt"
        content = kept_images(
            path,
            lambda: {"images": _shrink(paths)},
            lambda kept: is_images(kept["images"], len(paths), 3, _SIZE, _SIZE),
        )
        classes = sorted({label for _, label in table})
        number = {name: i for i, name in enumerate(classes)}
        labels = torch.tensor([number[label] for _, label in table])
        super().__init__(content["images"], labels, classes, transform)


def _image_folder(images: str | Path | None, data: str | Path | None, cached: Source) -> Path:
    if images is not None:
        if not Path(images).is_dir():
            raise FileError(f"images must name an existing folder, got {str(images)!r}")
        return Path(images)
    for base in (data_dir(data), cache_dir()):
        if base is not None and (base / "miniimagenet" / "images").is_dir():
            return base / "miniimagenet" / "images"
    raise FileError(
        f"miniImageNet is neither in the data folder nor in the cache, and ImageNet's licence "
        f"forbids its download: put {cached.path} (and those of the other splits) or the folder "
        f"miniimagenet/images into {data_dir(data) or cache_dir()}, or name the folder of images "
        f"with images="
    )


def _read_table(split: str, data: str | Path | None) -> list[tuple[str, str]]:
    sources = [Source(f"miniimagenet_splits/{split}.csv{end}") for end in (".gz", "")]
    path = next((path for source in sources if (path := find(source, data))), None)
    if path is None:
        raise FileError(
            f"{sources[1].path} is neither in the data folder nor in the cache: get {split}.csv "
            "from data/miniImagenet in github.com/twitter-research/meta-learning-lstm and put it "
            f"at {cache_dir() / sources[1].path}"
        )
    try:
        content = path.read_bytes()
        text = (_decompressed(content) if path.suffix == ".gz" else content).decode("ascii")
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except (OSError, EOFError, zlib.error, ValueError, csv.Error) as error:
        raise FileError(f"{path} is not a whole table ({error}): get it again") from error
    if not rows or rows[0] != ["filename", "label"]:
        raise FileError(f"{path}, line 1 must be 'filename,label': get it again")
    for line, row in enumerate(rows[1:], 2):
        # A name that is a path could lead out of the folder of images.
        if len(row) != 2 or not row[1] or row[0] in {"", ".", ".."} or set(row[0]) & set("/\\\0"):
            raise FileError(f"{path}, line {line} must be a file name and a label, got {row}")
    if len(rows) == 1:
        raise FileError(f"{path} names no images: get it again")
    return [(name, label) for name, label in rows[1:]]


def _decompressed(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} bytes when it is unpacked")
    return text


def _digest(paths: list[Path]) -> str:
    r"""Returns a digest of names, sizes and times, so that changed images are read again."""
    digest, missing = hashlib.sha256(), []
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            missing.append(path)
            continue
        except OSError as error:
            raise FileError(f"{path} cannot be read ({error.strerror})") from error
        check_regular(path)
        digest.update(f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    if missing:
        raise FileError(
            f"{missing[0]} is not there, nor are {len(missing) - 1:,} others of {len(paths):,} "
            "images that the table names: complete the folder"
        )
    return digest.hexdigest()[:12]


def _shrink(paths: list[Path]) -> Tensor:
    pillow = image_module("MiniImageNet")
    out = torch.empty(len(paths), 3, _SIZE, _SIZE, dtype=torch.uint8)
    for i, path in enumerate(tqdm(paths, desc="miniImageNet", disable=None)):
        try:
            with pillow.open(path) as image:
                small = image.convert("RGB").resize((_SIZE, _SIZE), pillow.Resampling.LANCZOS)
        except (*DAMAGE, pillow.DecompressionBombError) as error:
            raise FileError(f"{path} is not a whole image ({error}): get it again") from error
        out[i] = torch.from_numpy(np.array(small)).permute(2, 0, 1)
    return out


def _from_pickle(path: Path) -> tuple[Tensor, Tensor, list[str]]:
    content = load_arrays(path)
    images = content.get("image_data") if isinstance(content, dict) else None
    groups = content.get("class_dict") if isinstance(content, dict) else None
    if not isinstance(images, np.ndarray) or not isinstance(groups, dict):
        raise FileError(
            f"{path} is not a cached miniImageNet: it must hold image_data and class_dict"
        )
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise FileError(
            f"{path} is not a cached miniImageNet: image_data must be uint8 of shape "
            f"[images, {_SIZE}, {_SIZE}, 3], got {images.dtype} {list(images.shape)}"
        )
    labels = torch.full((len(images),), -1)
    if not groups or not all(isinstance(name, str) for name in groups):
        raise FileError(f"{path} is damaged: class_dict must have the names of classes as keys")
    classes = sorted(groups)
    for number, name in enumerate(classes):
        labels[_members(path, name, groups[name], len(images))] = number
    if bool((labels < 0).any()):
        raise FileError(
            f"{path} is damaged: image {int((labels < 0).nonzero()[0])} belongs to no class"
        )
    return torch.from_numpy(images).permute(0, 3, 1, 2), labels, classes


def _members(path: Path, name: str, group: Any, size: int) -> Tensor:
    members = np.asarray(group, dtype=object)
    if members.ndim != 1 or not all(isinstance(member, int) for member in members.tolist()):
        raise FileError(f"{path} is damaged: class_dict of {name} must be numbers of images")
    wrong = [member for member in members.tolist() if not 0 <= member < size]
    if wrong:
        shown = wrong[0] if abs(wrong[0]) < 2**64 else "of more than 64 bits"
        raise FileError(
            f"{path} is damaged: class_dict of {name} names image {shown}, there are {size}"
        )
    return torch.tensor(members.tolist(), dtype=torch.int64)
