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

from fognn.data.few_shot import ImageSet, check_split, image_module, is_images, kept_images
from fognn.data.sources import Source, cache_dir, fetch, find
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, sha256_of

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
_LARGEST = 1 << 20  # bytes; the drawings have a few hundred


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
        check_split("Omniglot", split, ("train", "val", "test"))
        low = 1 if split == "val" else 0
        if isinstance(validation, bool) or not low <= validation < _TRAIN:
            raise ValueError(
                f"Omniglot: validation must be an int of at least {low} and less than {_TRAIN} "
                f"for split={split!r}, got {validation}"
            )
        if seed is not None and not 0 <= seed < 1 << 64:
            raise ValueError(f"Omniglot: seed must be None or an int of at least 0, got {seed}")
        # Not fetch alone: it warns of another checksum, and here the content is checked.
        archives = {
            name: find(source, data) or fetch(source, data) for name, source in SOURCES.items()
        }
        digest = hashlib.sha256("".join(map(sha256_of, archives.values())).encode()).hexdigest()
        folder = cache_dir() / "omniglot" if root is None else Path(root)
        path = folder / "processed" / f"omniglot_28_v1_{digest[:12]}.pt"
        content = kept_images(
            path,
            lambda: _read_archives(archives),
            lambda kept: (
                len(kept["names"]) == sum(_CHARACTERS.values())
                and all(isinstance(name, str) for name in kept["names"])
                and is_images(kept["images"], _DRAWINGS * len(kept["names"]), 1, 28, 28)
            ),
        )

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
    names, images = [], []
    for name, path in archives.items():
        characters = _read_archive(path)
        expected = _CHARACTERS[name]
        if len(characters) != expected or any(len(c) != _DRAWINGS for c in characters.values()):
            raise FileError(
                f"{path} is not {name}.zip of Omniglot: it must hold {expected} characters with "
                f"{_DRAWINGS} drawings each, it holds {len(characters)} with "
                f"{sum(map(len, characters.values()))} in all; get it from "
                f"{SOURCES[name].url}"
            )
        names += list(characters)
        images += [image for drawings in characters.values() for image in drawings]
    return {"names": names, "images": torch.from_numpy(np.stack(images)[:, None])}


def _read_archive(path: Path) -> dict[str, list[Any]]:
    r"""Returns the drawings of each character, in the order of their names."""
    pillow = image_module("Omniglot")
    characters: dict[str, list[Any]] = {}
    try:
        with zipfile.ZipFile(path) as file:
            for name in sorted(file.namelist()):
                match = _MEMBER.fullmatch(name)
                if match and not name.startswith("__MACOSX"):
                    image = _drawing(pillow, file, path, name)
                    characters.setdefault(match[1], []).append(image)
    except FileError:
        raise
    except DAMAGE as error:
        raise FileError(
            f"{path} is not a whole zip file ({error}): remove it and get it again"
        ) from error
    return characters


def _drawing(pillow: Any, file: zipfile.ZipFile, path: Path, name: str) -> Any:
    member = file.getinfo(name)
    if member.file_size > _LARGEST or member.flag_bits & 1:
        wrong = "encrypted" if member.flag_bits & 1 else "too large for a drawing"
        raise FileError(f"{path} is not read: its member {name!r} is {wrong}; get it again")
    content = file.read(name)
    try:
        with pillow.open(io.BytesIO(content), formats=["PNG"]) as image:
            if image.size != (105, 105):
                raise ValueError(f"105x105 pixels are expected, got {image.size}")
            small = image.convert("L").resize((28, 28), pillow.Resampling.LANCZOS)
    except (*DAMAGE, pillow.DecompressionBombError) as error:
        raise FileError(
            f"{path} is damaged, its member {name!r} is not a drawing ({error}): get it again"
        ) from error
    return 255 - np.asarray(small)
