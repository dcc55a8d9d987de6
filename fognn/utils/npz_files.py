r"""Reading of ``.npz`` files: every byte that is used is verified by a checksum."""

import zipfile
from collections.abc import Container
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fognn.utils.files import check_regular
from fognn.utils.memory import total_memory

__all__ = ["load_npz", "npz_names"]

_END = 22 + 2**16  # bytes of the end of a zip file with the longest comment
_MANY = 2**16 - 1  # stands for a larger number


def load_npz(
    path: str | Path, wanted: Container[str] | None = None
) -> dict[str, NDArray[np.generic]]:
    r"""Reads arrays of numbers and texts from a ``.npz`` file; no code that it names is run.

    :meth:`numpy.load` returns bytes for a member that is not an array, and does not compare the
    checksum if the header of an array has a smaller shape than was written.

    Args:
        path (str): The file.
        wanted (container of str, optional): The names of the arrays to read.
            (default: all of them)

    Raises:
        FileError: If the path is not a regular file.
        Exception: One of :obj:`fognn.utils.files.DAMAGE`, if the file is damaged, or declares more
            bytes than the machine has memory.
    """
    check_regular(Path(path))
    arrays: dict[str, NDArray[np.generic]] = {}
    with zipfile.ZipFile(path) as file:
        for member in _members(Path(path), file):
            # Opening compares the name in the member with that in the table of contents.
            with file.open(member) as content:
                name = member.filename.removesuffix(".npy")
                if wanted is None or name in wanted:
                    arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
                    if content.read(1):  # at the end of the member, zipfile compares the checksum
                        raise ValueError(f"{name} has more bytes than its shape says")
    return arrays


def npz_names(path: str | Path) -> list[str]:
    r"""Returns the names of the arrays of a ``.npz`` file, which are not read.

    Args:
        path (str): The file.
    """
    check_regular(Path(path))
    with zipfile.ZipFile(path) as file:
        return [member.filename.removesuffix(".npy") for member in _members(Path(path), file)]


def _members(path: Path, file: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    members = file.infolist()
    if _count(path) not in (len(members), _MANY):
        raise ValueError(f"its table of contents has {len(members)} arrays, it must have more")
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("an array is in the file twice")
    total, memory = sum(member.file_size for member in members), total_memory()
    if memory is not None and total > memory:
        raise ValueError(f"its arrays declare {total:,} bytes, more than the machine has memory")
    return members


def _count(path: Path) -> int:
    r"""Returns the number of members that the end of a zip file has, which zipfile ignores."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - _END))
        end = file.read()
    place = end.rindex(b"PK\x05\x06") + 10
    return int.from_bytes(end[place : place + 2], "little")
