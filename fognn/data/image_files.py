r"""A user's own images: folders of classes, and the preparation of an image for a network."""

import re
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fognn.data.few_shot import image_module
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, check_regular

__all__ = ["class_folders", "image_files", "printable", "read_image"]

# Files and folders that systems put beside images; names that begin with a dot are skipped, too.
_OF_SYSTEMS = {"thumbs.db", "desktop.ini", "__macosx", "@eadir"}
# Pillow reads this format by running Ghostscript on the file, which is a program.
_PROGRAMS = {"EPS"}
_ORIENTATION = 0x0112  # of EXIF
# The method of PIL.Image.Transpose that shows an image of this orientation upright.
_UPRIGHT = {
    **{2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE"},
    **{6: "ROTATE_270", 7: "TRANSVERSE", 8: "ROTATE_90"},
}


def class_folders(folder: Path) -> dict[str, list[Path]]:
    r"""Returns the image files of each class, from a folder with one subfolder for each class.

    Classes and files are in the natural order of their names (``2`` is before ``10``), which is the
    same on every file system. Hidden files, and those that systems add (``Thumbs.db``), are
    skipped. Other files beside the subfolders raise, because they belong to no class.

    Args:
        folder (Path): The folder.
    """
    if not folder.is_dir():
        raise FileError(f"support must name an existing folder, got {str(folder)!r}")
    classes: dict[str, list[Path]] = {}
    names: dict[str, Path] = {}
    for path in _entries(folder):
        if not path.is_dir():
            raise FileError(
                f"{path} is not in the subfolder of a class: support must hold one subfolder for "
                f"each class, and no other files"
            )
        # Names that look the same could not be told apart in the answer.
        same = names.setdefault(unicodedata.normalize("NFC", printable(path.name)), path)
        if same != path:
            raise FileError(f"{path} must have another name than {same}: both read the same")
        classes[printable(path.name)] = files = image_files(path)
        if not files:
            raise FileError(f"{path} must hold the images of its class, it has none{_deeper(path)}")
    if not classes:
        raise FileError(f"support must hold one subfolder for each class, {folder} has none")
    return classes


def image_files(folder: Path) -> list[Path]:
    r"""Returns the files of a folder in the natural order of their names, without hidden files.
    Subfolders are not read.

    Args:
        folder (Path): The folder.
    """
    return [path for path in _entries(folder) if not path.is_dir()]


def query_files(query: Path) -> list[Path]:
    r"""Returns the image, or the images of a folder, which must have one.

    Args:
        query (Path): An image file, or a folder of images.
    """
    if not query.is_dir():
        if not query.exists():
            raise FileError(f"query must name an existing image or folder, got {str(query)!r}")
        return [query]
    files = image_files(query)
    if not files:
        raise FileError(f"query must hold images, {query} has none{_deeper(query)}")
    return files


def _entries(folder: Path) -> list[Path]:
    try:
        found = list(folder.iterdir())
    except OSError as error:
        raise FileError(f"{folder} cannot be read ({error.strerror})") from error
    seen = [p for p in found if not (p.name.startswith(".") or p.name.lower() in _OF_SYSTEMS)]
    return sorted(seen, key=_natural)


def _natural(path: Path) -> tuple[list[Any], str]:
    # macOS may store a name in another normal form. The parts are texts and numbers in turn.
    name = unicodedata.normalize("NFC", path.name)
    parts = re.split(r"(\d+)", name.casefold())
    return [int(part) if at % 2 else part for at, part in enumerate(parts)], name


def _deeper(folder: Path) -> str:
    return " (its subfolders are not read)" if any(p.is_dir() for p in _entries(folder)) else ""


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
    if channels not in (1, 3):
        raise ValueError(f"read_image: channels must be 1 or 3, got {channels}")
    check_regular(path)
    pillow.init()
    formats = [name for name in pillow.OPEN if name not in _PROGRAMS]
    try:
        # Pillow warns of odd metadata, and of a number of pixels of which it raises at the double.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(path, formats=formats) as image:
                image.load()
                small = _scaled(pillow, image, size, channels)
    except pillow.UnidentifiedImageError as error:
        raise FileError(f"{path} must be an image that Pillow can read, it is not") from error
    except (pillow.DecompressionBombWarning, pillow.DecompressionBombError) as error:
        raise FileError(
            f"{path} has too many pixels, an image must have at most {pillow.MAX_IMAGE_PIXELS:,}"
        ) from error
    except (*DAMAGE, AssertionError) as error:
        raise FileError(f"{path} is not a whole image ({_reason(error)})") from error
    array = np.array(small)
    return torch.from_numpy(255 - array[None] if channels == 1 else array.transpose(2, 0, 1).copy())


def _reason(error: BaseException) -> str:
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]} ..."


def _scaled(pillow: Any, image: Any, size: int, channels: int) -> Any:
    r"""Returns the small image, in RGB or in grey. It is turned, and laid on white, when it is
    small, so that a large image is not copied again and again."""
    turn = _UPRIGHT.get(image.getexif().get(_ORIENTATION, 1))
    image = _plain(pillow, image)
    width, height = image.size
    if channels == 3:
        side = min(width, height)
        left, top = (width - side) / 2, (height - side) / 2
        shape, box = (size, size), (left, top, left + side, top + side)
    else:
        scale = size / max(width, height)
        shape = max(1, round(width * scale)), max(1, round(height * scale))
        box = (0, 0, width, height)
    image = image.resize(shape, pillow.Resampling.LANCZOS, box=box)
    if turn is not None:
        image = image.transpose(getattr(pillow.Transpose, turn))
    paper = pillow.new("RGBA", (size, size), "white")
    corner = (size - image.width) // 2, (size - image.height) // 2
    paper.alpha_composite(image.convert("RGBA"), corner)
    return paper.convert("RGB" if channels == 3 else "L")


def _plain(pillow: Any, image: Any) -> Any:
    r"""Returns an image in 8 bits and in a mode that can be scaled."""
    if image.mode.startswith("I"):  # 16 bits, which convert() would cut off at 255
        array = np.asarray(image)
        array = array if array.dtype == np.uint16 else np.clip(array, 0, 65535)
        return pillow.fromarray((array >> 8).astype(np.uint8))
    if image.mode == "F":
        array = np.nan_to_num(np.asarray(image))
        array = array * 255 if array.max() <= 1 else array
        return pillow.fromarray(np.clip(array, 0, 255).astype(np.uint8))
    if image.mode in ("PA", "La", "RGBa") or "transparency" in image.info:
        # Of a palette, or one colour that is transparent.
        return image.convert("LA" if image.mode == "La" else "RGBA")
    if image.mode == "1":
        return image.convert("L")
    return image if image.mode in ("L", "LA", "RGB", "RGBA") else image.convert("RGB")
