r"""A user's own images: folders of classes, and the preparation of an image for a network."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fognn.data.images import image_module
from fognn.utils.errors import FileError

__all__ = ["class_folders", "image_files", "query_files", "read_image"]

# Files that systems put beside images; names that begin with a dot are skipped, too.
_OF_SYSTEMS = {"thumbs.db", "desktop.ini", "__macosx", "@eadir"}


def class_folders(folder: Path) -> dict[str, list[Path]]:
    r"""Returns the image files of each class, from a folder with one subfolder for each class.

    Classes and files are in the order of their names. Hidden files, and those that systems add
    (``Thumbs.db``), are skipped."""
    if not folder.is_dir():
        raise FileError(f"support must name an existing folder, got {str(folder)!r}")
    entries = _entries(folder)
    if not entries or not all(path.is_dir() for path in entries):
        raise FileError(
            f"support must hold one subfolder for each class, and no other files, got {folder}"
        )
    classes = {path.name: image_files(path) for path in entries}
    for name, files in classes.items():
        if not files:
            raise FileError(f"support: {folder / name} must hold the images of its class")
    return classes


def image_files(folder: Path) -> list[Path]:
    r"""Returns the files of a folder in the order of their names, without hidden files.
    Subfolders are not read."""
    return [path for path in _entries(folder) if not path.is_dir()]


def query_files(query: Path) -> list[Path]:
    r"""Returns an image, or the images of a folder, which must have one."""
    files = image_files(query) if query.is_dir() else [query]
    if not files or not files[0].exists():
        raise FileError(f"query must name an image, or a folder of images, got {str(query)!r}")
    return files


def _entries(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.name.lower() not in _OF_SYSTEMS
    )


def read_image(path: Path, size: int = 84, channels: int = 3) -> Tensor:
    r"""Reads an image file of any size and of any format that Pillow reads, as a network takes it:
    :obj:`uint8` of shape :obj:`[channels, size, size]`.

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
    try:
        with pillow.open(path) as opened:
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
    # Pillow's convert() would cut off 16 bits at 255.
    if not image.mode.startswith("I"):
        return image
    array = np.asarray(image, dtype=np.float64) / 256
    return pillow.fromarray(np.clip(array, 0, 255).astype(np.uint8))
