r"""Files written whole or not at all, and zip archives that cannot write outside a folder."""

import errno
import hashlib
import os
import pickle
import re
import shutil
import stat
import struct
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fognn.utils.errors import FileError

__all__ = ["DAMAGE", "disk_error", "sha256_of", "unzip", "write_whole"]

# What numpy, zipfile and torch raise for files that are cut short or have a wrong byte.
DAMAGE = (
    *(OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, RuntimeError),
    *(ArithmeticError, MemoryError, struct.error, pickle.UnpicklingError),
    *(zipfile.BadZipFile, zlib.error),
)
# What an operating system says when there is no room: full, over quota, over the limit of a file.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Deflate alone reaches 1,000 to 1; pictures and text of a dataset stay far below 100 to 1.
_BOMB_RATIO = 100
_BOMB_FLOOR = 256 * 2**20


def disk_error(path: Path, error: OSError) -> FileError:
    r"""Says in one sentence why :obj:`path` could not be written."""
    if error.errno in _NO_ROOM:
        return FileError(
            f"{path} could not be written, the disk is full ({error.strerror}): free some space, "
            "or name a folder on another disk (FOGNN_CACHE for the cache, root= for a dataset, "
            "-o for a run)"
        )
    return FileError(
        f"{path} could not be written ({error.strerror or error}): check that its folder is "
        "writable, or name another one (FOGNN_CACHE for the cache, root= for a dataset, -o for a "
        "run)"
    )


def sha256_of(path: Path) -> str:
    r"""The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    r"""Gives a temporary path beside :obj:`path` to write to.

    When the block ends well the temporary file takes the place of :obj:`path`
    in one step; when it fails the temporary file is removed and :obj:`path` is
    as it was. The temporary name ends like the real one, because
    :meth:`numpy.savez` and others look at the ending.

    Args:
        path (Path): Where the file shall be. Missing folders are made.
    """
    path = Path(path)
    temporary = path.with_name(f".tmp-{uuid.uuid4().hex}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        # Data first, then the name: a power cut must not leave a named, empty file.
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        if not _no_room(error):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise disk_error(path, OSError(errno.ENOSPC, reason)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _no_room(error: OSError | RuntimeError) -> bool:
    # numpy and torch report a short write with words of their own and no errno.
    words = r"requested and \d+ written|PytorchStreamWriter|unexpected pos|iostream error"
    return getattr(error, "errno", None) in _NO_ROOM or bool(re.search(words, str(error)))


def unzip(archive: Path, folder: Path) -> None:
    r"""Unpacks a zip file into :obj:`folder`.

    All members are judged before the first one is written. An archive with a
    member that would leave the folder (``..``, an absolute name, a drive
    letter, a backslash), with a link, or with far more data than its size can
    honestly hold is refused as a whole. Members are unpacked to a temporary
    folder first, so a damaged archive leaves nothing behind.

    Args:
        archive (Path): The zip file.
        folder (Path): Where its members go. Made if it is not there; files of
            the same name are replaced.
    """
    archive, folder = Path(archive), Path(folder)
    staging = folder.with_name(f".tmp-{uuid.uuid4().hex}-{folder.name}")
    try:
        with zipfile.ZipFile(archive) as file:
            _judge(archive, file.infolist())
            staging.mkdir(parents=True)
            file.extractall(staging)
        _move(staging, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise FileError(
            f"{archive} is not a whole zip file ({error}): remove it and get it again"
        ) from error
    except FileNotFoundError as error:
        raise FileError(f"{error.filename} is not there: name an existing zip file") from error
    except OSError as error:
        raise disk_error(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _judge(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    for member in members:
        name = member.filename
        if (
            not name
            or name.startswith("/")
            or "\\" in name
            or re.match(r"[A-Za-z]:", name)
            or ".." in name.split("/")
        ):
            raise FileError(
                f"{archive} is refused: its member {name!r} would be written outside the folder; "
                "get the archive from its official address"
            )
        if stat.S_ISLNK(member.external_attr >> 16):
            raise FileError(
                f"{archive} is refused: its member {name!r} is a link; "
                "get the archive from its official address"
            )
        if member.flag_bits & 1:
            raise FileError(
                f"{archive} is refused: its member {name!r} is encrypted; "
                "get the archive from its official address"
            )
    # zipfile never reads more than the declared size, so the declared sizes are the true limit.
    total, limit = sum(m.file_size for m in members), archive.stat().st_size * _BOMB_RATIO
    if total > max(limit, _BOMB_FLOOR):
        raise FileError(
            f"{archive} is refused: its members declare {total:,} bytes, more than {_BOMB_RATIO} "
            "times its own size; get the archive from its official address"
        )


def _move(staging: Path, folder: Path) -> None:
    if not folder.exists():
        os.replace(staging, folder)
        return
    home = folder.resolve()
    for path in sorted(staging.rglob("*")):
        target = folder / path.relative_to(staging)
        # A link that stands in the folder already could lead a member out of it.
        if not target.parent.resolve().is_relative_to(home):
            raise FileError(
                f"{target} is refused: {target.parent} is a link out of {folder}; remove the link"
            )
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            os.replace(path, target)
