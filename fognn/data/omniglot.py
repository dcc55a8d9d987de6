r"""Omniglot: handwritten characters of fifty alphabets."""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fognn.data.few_shot import ImageSet, image_module, kept_images
from fognn.data.graph_files import DAMAGED
from fognn.data.sources import Source, cache_dir, fetch
from fognn.data.split_dataset import file_stamp
from fognn.utils import checks
from fognn.utils.errors import FileError

__all__ = ["SOURCES", "Omniglot"]

_URL = "https://github.com/brendenlake/omniglot/raw/master/python"
# The checksums are those that TensorFlow Datasets publishes for these addresses.
SOURCES = {
    "images_background": Source(
        "omniglot/images_background.zip",
        f"{_URL}/images_background.zip",
        "ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
    ),
    "images_evaluation": Source(
        "omniglot/images_evaluation.zip",
        f"{_URL}/images_evaluation.zip",
        "1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
    ),
}
_CHARACTERS = {"images_background": 964, "images_evaluation": 659}
_DRAWINGS = 20
_TRAIN = 1200
_MEMBER = re.compile(r"(?:.*/)?([^/]+/character\d+)/\d+_\d+\.png")


class Omniglot(ImageSet):
    r"""Omniglot, from the `"Human-level concept learning through probabilistic program induction"
    <https://doi.org/10.1126/science.aab3050>`_ paper: 1,623 characters, 20 drawings of each.

    As in the `"Matching networks for one shot learning" <https://arxiv.org/abs/1606.04080>`_
    paper, the two official archives are joined, 1,200 characters are for training and the other
    423 for testing, whatever their alphabet, drawings are 28x28, and each character rotated by 90,
    180 and 270 degrees counts as three more classes. That paper does not say which characters are
    in which split. Here the characters are in the order of their names, those of
    :obj:`images_background` first, and are then shuffled by :obj:`seed`; the first 1,200 are for
    training. With :obj:`seed=None` they are not shuffled.

    Ink is 1 and paper is 0. The archives are read in place, once. (torchvision's dataset unpacks
    them, and has neither this split nor 28x28.)

    Args:
        root (str or Path, optional): The folder for the resized images. If :obj:`None`, the
            folder :obj:`omniglot` in the cache.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        validation (int, optional): The number of characters of the split :obj:`"val"`: the last
            ones of the 1,200, which are then not in :obj:`"train"`; 172 is common.
            (default: :obj:`0`)
        rotations (bool, optional): Whether rotated characters are further classes.
            (default: :obj:`True`)
        seed (int, optional): Decides which characters are in which split. (default: :obj:`0`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied to each image when it is read.
            (default: :obj:`None`)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        validation: int = 0,
        rotations: bool = True,
        seed: int | None = 0,
        data: str | Path | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        checks.one_of("Omniglot", "split", split, ("train", "val", "test"))
        checks.int_in_range("Omniglot", "validation", validation, int(split == "val"), _TRAIN)
        archives = {name: fetch(source, data) for name, source in SOURCES.items()}
        digest = hashlib.sha256("".join(map(file_stamp, archives.values())).encode()).hexdigest()
        folder = cache_dir() / "omniglot" if root is None else Path(root)
        path = folder / "processed" / f"omniglot_28_v1_{digest[:12]}.pt"
        content = kept_images(path, lambda: _read_archives(archives))

        names, images = content["names"], content["images"]
        chosen = _characters(len(names), split, validation, seed)
        images = images.view(len(names), _DRAWINGS, 1, 28, 28)[chosen].flatten(0, 1)
        classes = [names[i] for i in chosen.tolist()]
        if rotations:
            images = torch.cat([images.rot90(k, (2, 3)) for k in range(4)])
            classes = [f"{name}/rot{90 * k:03}" for k in range(4) for name in classes]
        labels = torch.arange(len(classes)).repeat_interleave(_DRAWINGS)
        super().__init__(images, labels, classes, transform)


def _characters(size: int, split: str, validation: int, seed: int | None) -> Tensor:
    order = torch.arange(size)
    if seed is not None:
        words = np.random.Philox(key=np.array([seed, 0], dtype=np.uint64)).random_raw(size)
        order = torch.from_numpy(np.argsort(words, kind="stable"))
    bounds = {
        "train": (0, _TRAIN - validation),
        "val": (_TRAIN - validation, _TRAIN),
        "test": (_TRAIN, size),
    }
    return order[slice(*bounds[split])]


def _read_archives(archives: dict[str, Path]) -> dict[str, Any]:
    r"""Returns the drawings of each character, in the order of their names."""
    pillow = image_module("Omniglot")
    names, images = [], []
    for name, path in archives.items():
        found: dict[str, list[Any]] = {}
        try:
            with zipfile.ZipFile(path) as file:
                for member in sorted(file.namelist()):
                    match = _MEMBER.fullmatch(member)
                    if match and not member.startswith("__MACOSX"):
                        with pillow.open(io.BytesIO(file.read(member)), formats=["PNG"]) as image:
                            small = image.convert("L").resize((28, 28), pillow.Resampling.LANCZOS)
                        found.setdefault(match[1], []).append(255 - np.asarray(small))
        except DAMAGED as error:
            raise FileError(f"{path} is truncated or corrupt ({error}): get it again") from error
        if len(found) != _CHARACTERS[name] or any(len(c) != _DRAWINGS for c in found.values()):
            raise FileError(
                f"{path} is not {name}.zip of Omniglot, which has {_CHARACTERS[name]} characters "
                f"with {_DRAWINGS} drawings each: get it from {SOURCES[name].url}"
            )
        names += list(found)
        images += [drawing for drawings in found.values() for drawing in drawings]
    return {"names": names, "images": torch.from_numpy(np.stack(images)[:, None])}
