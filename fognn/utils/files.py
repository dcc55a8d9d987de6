r"""Atomic file writes, and safe unpacking of zip archives."""

import errno
import hashlib
import os
import pickle
import re
import shutil
import stat
import struct
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from fognn.utils.errors import FileError

__all__ = [
    "DAMAGE",
    "check_regular",
    "disk_error",
    "read_text",
    "remove_left",
    "sha256_of",
    "unzip",
    "user_path",
    "write_whole",
]

# The exceptions that numpy, zipfile and torch raise for truncated or corrupted files.
DAMAGE = (
    *(OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, RuntimeError),
    *(ArithmeticError, MemoryError, struct.error, pickle.UnpicklingError),
    # Of numpy, which parses the header of an array as Python source.
    *(SyntaxError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error),
)
# Disk full, quota exceeded, file too large.
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Deflate alone reaches 1,000 to 1; images and text of a dataset stay far below 100 to 1.
_BOMB_RATIO = 100
_BOMB_FLOOR = 256 * 2**20


def disk_error(path: Path, error: OSError) -> FileError:
    r"""Returns the :class:`FileError` for an :class:`OSError` of writing to :obj:`path`.

    Args:
        path (Path): The file or folder that could not be written.
        error (OSError): The cause.
    """
    if error.errno in _DISK_FULL:
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


def user_path(path: str | Path) -> Path:
    r"""Returns a path with a leading ``~`` or ``~user`` replaced by the home directory.

    Raises:
        FileError: If there is no such user, or no home directory.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise FileError(
            f"{path} begins with a home directory that is not known: name the folder in full, or "
            "set HOME (FOGNN_CACHE for the cache)"
        ) from error


def check_regular(path: Path) -> None:
    r"""Raises a :class:`FileError` unless a path names a regular file, or a link to one. A pipe
    or a device could block, or never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror}): name another file") from error
    if not stat.S_ISREG(mode):
        kind = {
            **{stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"},
            **{stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"},
        }.get(stat.S_IFMT(mode), "something else")
        raise FileError(f"{path} must be a regular file, it is {kind}")


def read_text(path: Path) -> str:
    r"""Returns the text of a regular file.

    Raises:
        FileNotFoundError: If there is no such file.
        FileError: If it is not a regular file, or cannot be read.
        ValueError: If it is not in UTF-8.
    """
    path = Path(path)
    if path.exists() or path.is_symlink():
        check_regular(path)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8: {error}") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror}): name another file") from error


def sha256_of(path: Path) -> str:
    r"""Returns the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    r"""Writes a file atomically: yields a temporary path in the same folder to write to.

    At the end of the block the temporary file replaces :obj:`path` in one step. If the block
    raises, the temporary file is removed and :obj:`path` is unchanged. Both names have the same
    suffix, because :meth:`numpy.savez` and others depend on it.

    Args:
        path (Path): The file to write. Missing folders are created.
    """
    path = Path(path)
    temporary = path.with_name(f".tmp-{uuid.uuid4().hex}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        # Without fsync, a power failure could leave an empty file under the final name.
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        if _is_disk_full(error):
            reason = getattr(error, "strerror", None) or str(error)
            raise disk_error(path, OSError(errno.ENOSPC, reason)) from error
        # Other errors of the block are not about this file. A block that writes nothing is a bug.
        about = isinstance(error, OSError) and error.filename in _names(temporary)
        if not about or isinstance(error, FileNotFoundError):
            raise
        raise disk_error(path, cast(OSError, error)) from error
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            temporary.unlink()


def remove_left(path: Path) -> None:
    r"""Removes temporary files of processes that were killed while they wrote a file."""
    for left in path.parent.glob(f".tmp-*-{path.name}"):
        left.unlink(missing_ok=True)


def _names(path: Path) -> set[str | Path]:
    r"""Returns a file and its folders, as an :class:`OSError` may name them."""
    return {name for place in (path, *path.parents) for name in (place, str(place))}


def _is_disk_full(error: OSError | RuntimeError) -> bool:
    # numpy and torch report a short write with messages of their own and no errno.
    messages = r"requested and \d+ written|PytorchStreamWriter|unexpected pos|iostream error"
    return getattr(error, "errno", None) in _DISK_FULL or bool(re.search(messages, str(error)))


def unzip(archive: Path, folder: Path) -> None:
    r"""Unpacks a zip file into :obj:`folder`.

    All members are checked before the first one is written. Members are unpacked into a temporary
    folder first, so a damaged archive leaves no files behind.

    Args:
        archive (Path): The zip file.
        folder (Path): The folder to unpack into. It is created if it does not exist; files of the
            same name are replaced.

    Raises:
        FileError: If the archive is damaged; has a member that would be written outside the folder
            (``..``, an absolute path, a drive letter, a backslash), a link, or an encrypted
            member; or declares more than 100 times its own size (and more than 256 MiB).
    """
    archive, folder = Path(archive), Path(folder)
    staging = folder.with_name(f".tmp-{uuid.uuid4().hex}-{folder.name}")
    try:
        with zipfile.ZipFile(archive) as file:
            _check_members(archive, file.infolist())
            staging.mkdir(parents=True)
            file.extractall(staging)
        _move(staging, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise FileError(
            f"{archive} is damaged or not a zip file ({error}): remove it and download it again"
        ) from error
    except FileNotFoundError as error:
        raise FileError(f"{error.filename} does not exist: name an existing zip file") from error
    except OSError as error:
        raise disk_error(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_members(archive: Path, members: list[zipfile.ZipInfo]) -> None:
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
                f"{archive} is not safe to unpack: its member {name!r} would be written outside "
                "the folder; download the archive from its official address"
            )
        if stat.S_ISLNK(member.external_attr >> 16):
            raise FileError(
                f"{archive} is not safe to unpack: its member {name!r} is a link; "
                "download the archive from its official address"
            )
        if member.flag_bits & 1:
            raise FileError(
                f"{archive} cannot be unpacked: its member {name!r} is encrypted; "
                "download the archive from its official address"
            )
    # zipfile never reads more than the declared size, so it is enough to check those.
    total, limit = sum(m.file_size for m in members), archive.stat().st_size * _BOMB_RATIO
    if total > max(limit, _BOMB_FLOOR):
        raise FileError(
            f"{archive} is not safe to unpack: its members declare {total:,} bytes, more than "
            f"{_BOMB_RATIO} times its own size; download the archive from its official address"
        )


def _move(staging: Path, folder: Path) -> None:
    if not folder.exists():
        os.replace(staging, folder)
        return
    home = folder.resolve()
    for path in sorted(staging.rglob("*")):
        target = folder / path.relative_to(staging)
        # A link that is already in the folder could redirect a member to another folder.
        if not target.parent.resolve().is_relative_to(home):
            raise FileError(
                f"{target} must be inside {folder}, but {target.parent} is a link out of it; "
                "remove the link"
            )
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            os.replace(path, target)
