r"""Images for few-shot learning: CIFAR-FS, miniImageNet, Omniglot, and a user's own files."""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset
from tqdm import tqdm

from fognn.data.molecules import read_table
from fognn.data.pack import random_order
from fognn.data.sources import SPLITS, cache_dir, fetch, find, reading
from fognn.data.split_dataset import file_stamp, read_npz, stored
from fognn.utils import checks
from fognn.utils.errors import FileError

_SIZE = 84  # of miniImageNet
_TABLES = "https://github.com/twitter-research/meta-learning-lstm, data/miniImagenet"
# The archives of Omniglot, and the characters in each.
_CHARACTERS = {"images_background": 964, "images_evaluation": 659}
_DRAWINGS = 20
_TRAIN = 1200
# What systems put beside images; names that begin with a dot are skipped, too.
_OF_SYSTEMS = {"thumbs.db", "desktop.ini", "__macosx", "@eadir"}
_MEMBER = re.compile(r"(?:.*/)?([^/]+/character\d+)/\d+_\d+\.png")


class ImageSet(Dataset[tuple[Tensor, int]]):
    r"""Images in memory and their classes. An item is an image, :obj:`float` in :math:`[0, 1]` of
    shape :obj:`[C, H, W]`, and the number of its class.

    Args:
        images (torch.Tensor): All images, :obj:`uint8` of shape :obj:`[N, C, H, W]`.
        labels (torch.Tensor): The number of each image's class.
        classes (sequence of str): The names of the classes.
    """

    def __init__(self, images: Tensor, labels: Tensor, classes: Sequence[str]) -> None:
        if images.dim() != 4 or images.dtype != torch.uint8 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"ImageSet: images must be uint8 of shape [N, C, H, W] with N labels, got "
                f"{images.dtype} {list(images.shape)} and {list(labels.shape)}"
            )
        self.images, self.labels, self.classes = images, labels.to(torch.int64), list(classes)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.read(torch.arange(len(self))[index].reshape(1))[0], int(self.labels[index])

    def read(self, index: Tensor) -> Tensor:
        r"""Returns images by number, :obj:`float` of shape :obj:`[*index.shape, C, H, W]`."""
        return self.images[index].contiguous().float().div_(255)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} images, {len(self.classes)} classes)"


class CIFARFS(ImageSet):
    r"""CIFAR-FS, from the `"Meta-learning with differentiable closed-form solvers"
    <https://arxiv.org/abs/1805.08136>`_ paper: the classes of CIFAR-100 split into 64 for
    training, 16 for validation and 20 for testing, 32x32 in colour.

    It is read from :obj:`cifar_fs/cifar_fs_100.npz` with 100, or more, of each class's 600 images:
    :obj:`x_{train,val,test}`, :obj:`uint8` of shape :obj:`[classes, images, 32, 32, 3]`, and the
    names :obj:`c_{train,val,test}`.

    Args:
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """

    def __init__(self, split: str = "train", data: str | Path | None = None) -> None:
        checks.one_of("CIFARFS", "split", split, SPLITS)
        hint = "make it from CIFAR-100 as the docstring of fognn.data.CIFARFS describes it"
        path = fetch("cifar_fs/cifar_fs_100.npz", data, hint)
        x, names = read_npz(path, [f"x_{split}", f"c_{split}"])
        if x.ndim != 5 or len(x) != len(names):
            raise FileError(
                f"{path} is not a CIFAR-FS file: x_{split} must have shape [classes, images, 32, "
                f"32, 3], got {list(x.shape)}"
            )
        images = torch.from_numpy(x).flatten(0, 1).permute(0, 3, 1, 2)
        labels = torch.arange(len(x)).repeat_interleave(x.shape[1])
        super().__init__(images, labels, names.tolist())


class MiniImageNet(ImageSet):
    r"""miniImageNet with the split of the `"Optimization as a model for few-shot learning"
    <https://openreview.net/forum?id=rJY0-Kcll>`_ paper: 64 classes for training, 16 for
    validation and 20 for testing, 600 images each, 84x84 in colour.

    ImageNet's licence forbids a download. The images are those that the table
    :obj:`miniimagenet_splits/{split}.csv.gz` (or :obj:`.csv`) of the data folder names in its
    columns :obj:`filename,label`, in the folder :obj:`miniimagenet/images`. They are resized to
    84x84 by Lanczos' filter once and stored. Classes are numbered in the order of their names.

    Args:
        split, data (optional): As in :class:`CIFARFS`.
    """

    def __init__(self, split: str = "train", data: str | Path | None = None) -> None:
        checks.one_of("MiniImageNet", "split", split, SPLITS)
        name = f"miniimagenet_splits/{split}.csv"
        path = find(f"{name}.gz", data) or fetch(name, data, f"get it from {_TABLES}")
        table = read_table(path)
        hint = "take the 60,000 images from ImageNet, whose licence forbids their download"
        folder = fetch("miniimagenet/images", data, hint)
        paths = [folder / name for name in table["filename"]]
        missing = [path for path in paths if not path.is_file()]
        if missing:
            raise FileError(
                f"{missing[0]} is not there, nor are {len(missing) - 1:,} others of {len(paths):,} "
                "images that the table names: complete the folder"
            )
        images = _prepared("miniimagenet", f"{split}_{_SIZE}", paths, _shrink)["images"]
        classes = sorted(set(table["label"]))
        labels = torch.tensor([classes.index(label) for label in table["label"]])
        super().__init__(images, labels, classes)


def _shrink(paths: list[Path]) -> dict[str, Any]:
    out = torch.empty(len(paths), 3, _SIZE, _SIZE, dtype=torch.uint8)
    for i, path in enumerate(tqdm(paths, desc="miniImageNet", disable=None)):
        with reading(path):
            out[i] = torch.from_numpy(_resized(path, "RGB", _SIZE)).permute(2, 0, 1)
    return {"images": out}


def _resized(file: Any, mode: str, size: int) -> NDArray[np.uint8]:
    pillow = image_module()
    with pillow.open(file) as image:
        return np.array(image.convert(mode).resize((size, size), pillow.Resampling.LANCZOS))


class Omniglot(ImageSet):
    r"""Omniglot, from the `"Human-level concept learning through probabilistic program induction"
    <https://doi.org/10.1126/science.aab3050>`_ paper: 1,623 characters, 20 drawings of each.

    As in the `"Matching networks for one shot learning" <https://arxiv.org/abs/1606.04080>`_
    paper, the two official archives are joined, 1,200 characters are for training and the other
    423 for testing, drawings are 28x28, and each character rotated by 90, 180 and 270 degrees
    counts as three more classes. That paper does not say which characters are in which split:
    :obj:`seed` decides here. Ink is 1 and paper is 0.

    Args:
        split, data (optional): As in :class:`CIFARFS`.
        validation (int, optional): The number of characters of the split :obj:`"val"`, which are
            then not in :obj:`"train"`; 172 is common. (default: :obj:`0`)
        rotations (bool, optional): Whether rotations are further classes. (default: :obj:`True`)
        seed (int, optional): Decides which characters are in which split. (default: :obj:`0`)
    """

    def __init__(
        self,
        split: str = "train",
        validation: int = 0,
        rotations: bool = True,
        seed: int = 0,
        data: str | Path | None = None,
    ) -> None:
        checks.one_of("Omniglot", "split", split, SPLITS)
        checks.int_in_range("Omniglot", "validation", validation, int(split == "val"), _TRAIN)
        archives = [fetch(f"omniglot/{name}.zip", data) for name in _CHARACTERS]
        content = _prepared("omniglot", "omniglot_28", archives, _read_archives)
        names, images = content["names"], content["images"]
        order = random_order(len(names), seed)
        ends = [_TRAIN - validation, _TRAIN]
        chosen = order.tensor_split(ends)[SPLITS.index(split)]
        images = images.view(len(names), _DRAWINGS, 1, 28, 28)[chosen].flatten(0, 1)
        classes = [names[i] for i in chosen.tolist()]
        if rotations:
            images = torch.cat([images.rot90(k, (2, 3)) for k in range(4)])
            classes = [f"{name}/rot{90 * k:03}" for k in range(4) for name in classes]
        labels = torch.arange(len(classes)).repeat_interleave(_DRAWINGS)
        super().__init__(images, labels, classes)


def _read_archives(paths: list[Path]) -> dict[str, Any]:
    r"""Returns the drawings of each character, in the order of their names."""
    names, images = [], []
    for (name, size), path in zip(_CHARACTERS.items(), paths, strict=True):
        found: dict[str, list[Any]] = {}
        with reading(path), zipfile.ZipFile(path) as file:
            for member in sorted(file.namelist()):
                match = _MEMBER.fullmatch(member)
                if match and not member.startswith("__MACOSX"):
                    drawing = _resized(io.BytesIO(file.read(member)), "L", 28)
                    found.setdefault(match[1], []).append(255 - drawing)
        if len(found) != size or any(len(c) != _DRAWINGS for c in found.values()):
            raise FileError(
                f"{path} is not {name}.zip of Omniglot, which has {size} characters with "
                f"{_DRAWINGS} drawings each: get it again"
            )
        names += list(found)
        images += [drawing for drawings in found.values() for drawing in drawings]
    return {"names": names, "images": torch.from_numpy(np.stack(images)[:, None])}


def _prepared(
    name: str, variant: str, files: list[Path], make: Callable[[list[Path]], dict[str, Any]]
) -> dict[str, Any]:
    r"""Returns what is made of these files, as they are now."""
    digest = hashlib.sha256("".join(map(file_stamp, files)).encode()).hexdigest()
    path = cache_dir() / name / "processed" / f"{variant}_v1_{digest[:12]}.pt"
    return stored(path, lambda: make(files), mmap=True)


def image_module() -> Any:
    r"""Returns Pillow's :obj:`Image`; Pillow is an optional dependency."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('image files need Pillow: pip install "fognn[chem]"') from error
    return Image


def class_folders(folder: Path) -> dict[str, list[Path]]:
    r"""Returns the image files of each class, from a folder with one subfolder for each class.
    Classes and files are in the order of their names."""
    subfolders, files = _entries(folder) if folder.is_dir() else ([], [])
    classes = {path.name: _entries(path)[1] for path in subfolders}
    if not classes or files or not all(classes.values()):
        raise FileError(
            "support must name a folder with one subfolder of images for each class, and no other "
            f"files, got {folder}"
        )
    return classes


def query_files(query: Path) -> list[Path]:
    r"""Returns an image, or the images of a folder, which must have one."""
    files = _entries(query)[1] if query.is_dir() else [query]
    if not files or not files[0].exists():
        raise FileError(f"query must name an image, or a folder of images, got {str(query)!r}")
    return files


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    r"""Returns the subfolders and the files, in the order of their names."""
    named = sorted(path for path in folder.glob("[!.]*") if path.name.lower() not in _OF_SYSTEMS)
    folders = [path for path in named if path.is_dir()]
    return folders, [path for path in named if not path.is_dir()]


def read_image(path: Path, size: int = 84, channels: int = 3) -> Tensor:
    r"""Reads an image file of any size and of any format that Pillow reads, as a network takes it:
    :obj:`uint8` of shape :obj:`[channels, size, size]`.

    The orientation of EXIF is applied, transparent pixels are laid on white, and of an animation
    the first frame is taken. 16 bits are reduced to 8, and sizes by Lanczos' filter.

    * 3 channels: in colour, scaled to cover the square, and cut at the centre.
    * 1 channel: a drawing with dark ink on light paper, in grey, scaled to fit into the square,
      filled up with white paper, and inverted as Omniglot's: ink is 255 and paper is 0.

    Args:
        path (Path): The image file.
        size (int, optional): Height and width of the result. (default: :obj:`84`)
        channels (int, optional): 3 for colour, 1 for drawings. (default: :obj:`3`)
    """
    pillow = image_module()
    from PIL import ImageOps

    if channels not in (1, 3):
        raise ValueError(f"read_image: channels must be 1 or 3, got {channels}")
    try:
        with pillow.open(path) as image:
            if image.mode.startswith("I"):
                # Pillow's convert() would cut off 16 bits at 255.
                array = np.asarray(image, dtype=np.float64) / 256
                image = pillow.fromarray(np.clip(array, 0, 255).astype(np.uint8))
            image = ImageOps.exif_transpose(image).convert("RGBA")
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise FileError(f"{path} must be an image that Pillow can read: {error}") from error
    lanczos = pillow.Resampling.LANCZOS
    paper = pillow.new("RGBA", (size, size), "white")
    if channels == 3:
        paper.alpha_composite(ImageOps.fit(image, (size, size), lanczos))
        return torch.from_numpy(np.array(paper.convert("RGB")).transpose(2, 0, 1).copy())
    paper.alpha_composite(ImageOps.pad(image, (size, size), lanczos, "white"))
    return torch.from_numpy(255 - np.array(paper.convert("L"))[None])
