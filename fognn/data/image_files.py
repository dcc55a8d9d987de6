r"""A user's own images: folders of classes, and the preparation of an image for a network."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fognn.data.few_shot import image_module
from fognn.utils.errors import FileError

__all__ = ["class_folders", "image_files", "printable", "query_files", "read_image"]

# Files and folders that systems put beside images; names that begin with a dot are skipped, too.
_OF_SYSTEMS = {"thumbs.db", "desktop.ini", "__macosx", "@eadir"}
# Pillow reads this format by running Ghostscript on the file, which is a program.
_PROGRAMS = {"EPS"}


def class_folders(folder: Path) -> dict[str, list[Path]]:
    r"""Returns the image files of each class, from a folder with one subfolder for each class.

    Classes and files are in the natural order of their names (``2`` is before ``10``). Hidden
    files, and those that systems add (``Thumbs.db``), are skipped.

    Args:
        folder (Path): The folder.
    """
    if not folder.is_dir():
        raise FileError(f"support must name an existing folder, got {str(folder)!r}")
    classes: dict[str, list[Path]] = {}
    for path in _entries(folder):
        if not path.is_dir():
            raise FileError(
                f"{path} is not in the subfolder of a class: support must hold one subfolder for "
                "each class, and no other files"
            )
        files = image_files(path)
        if not files:
            raise FileError(f"{path} must hold the images of its class, it has none")
        classes[printable(path.name)] = files
    if not classes:
        raise FileError(f"support must hold one subfolder for each class, {folder} has none")
    return classes


def image_files(folder: Path) -> list[Path]:
    r"""Returns the files of a folder in the natural order of their names, without hidden files.
    Subfolders are not read."""
    return [path for path in _entries(folder) if not path.is_dir()]


def query_files(query: Path) -> list[Path]:
    r"""Returns an image, or the images of a folder, which must have one."""
    if not query.exists():
        raise FileError(f"query must name an existing image or folder, got {str(query)!r}")
    files = image_files(query) if query.is_dir() else [query]
    if not files:
        raise FileError(f"query must hold images, {query} has none (subfolders are not read)")
    return files


def _entries(folder: Path) -> list[Path]:
    seen = [
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.name.lower() not in _OF_SYSTEMS
    ]
    return sorted(seen, key=_natural)


def _natural(path: Path) -> tuple[list[Any], str]:
    # The parts are texts and numbers in turn.
    parts = re.split(r"(\d+)", path.name.casefold())
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], path.name


def printable(text: str) -> str:
    r"""Returns a text with a mark in place of each character that cannot be printed or encoded, as
    names of files may have them."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def read_image(path: Path, size: int = 84, channels: int = 3) -> Tensor:
    r"""Reads an image file of any size and of any format that Pillow reads, other than EPS, as a
    network takes it: :obj:`uint8` of shape :obj:`[channels, size, size]`.

    The orientation of EXIF is applied, transparent pixels are laid on white, and of an animation
    the first frame is taken. 16 bits are reduced to 8.

    * 3 channels: in colour, scaled with Lanczos' filter to cover the square, and cut at the centre.
    * 1 channel: a drawing with dark ink on light paper. It is in grey, scaled with the same filter
      to fit into the square, filled up with white paper, and inverted as Omniglot's drawings are:
      ink is 255 and paper is 0.

    Args:
        path (Path): The image file.
        size (int, optional): Height and width of the result. (default: :obj:`84`)
        channels (int, optional): 3 for colour, 1 for drawings. (default: :obj:`3`)

    Raises:
        FileError: If the file is not an image, is damaged, or has too many pixels.
    """
    pillow = image_module("read_image")
    from PIL import ImageOps

    if channels not in (1, 3):
        raise ValueError(f"read_image: channels must be 1 or 3, got {channels}")
    pillow.init()
    formats = [name for name in pillow.OPEN if name not in _PROGRAMS]
    try:
        with pillow.open(path, formats=formats) as opened:
            image = ImageOps.exif_transpose(_eight_bits(pillow, opened)).convert("RGBA")
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise FileError(f"{path} must be an image that Pillow can read: {error}") from error
    lanczos = pillow.Resampling.LANCZOS
    if channels == 3:
        image = ImageOps.fit(image, (size, size), lanczos)
    else:
        image = ImageOps.pad(image, (size, size), lanczos, "white")
    paper = pillow.new("RGBA", (size, size), "white")
    paper.alpha_composite(image)
    array = np.array(paper.convert("RGB" if channels == 3 else "L"))
    return torch.from_numpy(255 - array[None] if channels == 1 else array.transpose(2, 0, 1).copy())


def _eight_bits(pillow: Any, image: Any) -> Any:
    if not image.mode.startswith(("I", "F")):
        return image
    array = np.nan_to_num(np.asarray(image, dtype=np.float64))
    # Of 16 bits, which convert() would cut off at 255; or numbers up to 1, or up to 255.
    scale = 1 / 256 if image.mode != "F" else 255 if array.max() <= 1 else 1
    return pillow.fromarray(np.clip(array * scale, 0, 255).astype(np.uint8))
