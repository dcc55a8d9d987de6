r"""Where a file comes from: a folder of the user, the cache, or its official address."""

import os
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from filelock import FileLock

from fognn.datasets.download import download
from fognn.utils.errors import FileError
from fognn.utils.files import disk_error, sha256_of, write_whole

__all__ = ["FileError", "Source", "cache_dir", "data_dir", "fetch", "find", "sha256_of"]


@dataclass(frozen=True)
class Source:
    r"""Where one file comes from.

    Args:
        path (str): Relative path with forward slashes, the same inside a data
            folder and inside the cache, *e.g.*, :obj:`"zinc/zinc12k.npz"`.
        url (str, optional): The official address (http or https).
        sha256 (str, optional): SHA-256 of the whole file, in lower case
            hexadecimal. An address without it is never downloaded.
        hint (str, optional): What a user can do to get the file by hand.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    hint: str = ""

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.path)
        if not parts.name or parts.is_absolute() or ".." in parts.parts or "\\" in self.path:
            raise ValueError(f"Source: path must be relative and without '..', got {self.path!r}")
        if self.url is not None and not self.url.startswith(("https://", "http://")):
            raise ValueError(f"Source: url must begin with https:// or http://, got {self.url!r}")
        if self.sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise ValueError(
                f"Source: sha256 must be 64 lower case hexadecimal digits, got {self.sha256!r}"
            )


def data_dir(data: str | Path | None = None) -> Path | None:
    r"""The user's data folder: the argument, else :obj:`$FOGNN_DATA`, else :obj:`None`."""
    name = "data"
    if data is None:
        name, data = "FOGNN_DATA", os.environ.get("FOGNN_DATA") or None
    if data is None:
        return None
    folder = Path(data).expanduser()
    if not folder.is_dir():
        raise FileError(f"{name} must name an existing folder, got {str(data)!r}")
    return folder


def cache_dir() -> Path:
    r"""The cache: :obj:`$FOGNN_CACHE`, else :obj:`fognn` in the user's cache folder."""
    own = os.environ.get("FOGNN_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path in the variable does not count.
    base = Path(shared) if os.path.isabs(shared) else Path("~/.cache").expanduser()
    return base / "fognn"


def find(source: Source, data: str | Path | None = None) -> Path | None:
    r"""Looks for a file in the user's folder, then in the cache; downloads nothing.

    A file in the user's folder counts as it is. A file in the cache counts only
    if it is the right one. Downloads get their name there after their checksum
    was right; beside each lies a stamp (:obj:`NAME.sha256`: checksum, size,
    time of change). While size and time agree with the stamp the file is
    trusted without reading it; otherwise it is read and its checksum decides.
    So a truncated, half-copied or edited file is never used. Damage that keeps
    both size and time (a failing disk) is not seen. A source without a
    checksum has nothing to compare with: its file in the cache counts as it is.

    Args:
        source (Source): What to look for.
        data (str or Path, optional): The user's folder, see :meth:`data_dir`.
    """
    folder = data_dir(data)
    if folder is not None and (folder / source.path).is_file():
        return folder / source.path
    return _find_cached(source)


def fetch(source: Source, data: str | Path | None = None) -> Path:
    r"""Gets a file from the user's folder, else the cache, else its official address.

    A file of the user whose checksum differs is used all the same, with a
    warning. A download goes on where an earlier one stopped, shows its progress
    in a terminal, and enters the cache only when its checksum is right. Two
    processes that ask at once download once. Whatever goes wrong is a
    :class:`FileError` of one sentence.

    Args:
        source (Source): What to get.
        data (str or Path, optional): The user's folder, see :meth:`data_dir`.
    """
    path = find(source, data)
    target = cache_dir() / source.path
    if path is not None:
        if path != target and source.sha256 is not None and sha256_of(path) != source.sha256:
            warnings.warn(
                f"{path} is used as it is, but it is not the official file: its SHA-256 is "
                f"{sha256_of(path)}, the official one is {source.sha256}",
                stacklevel=2,
            )
        return path
    if source.url is None or source.sha256 is None:
        raise _missing(source, data_dir(data), target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock"):
            # Who held the lock before us may have done the work.
            if _find_cached(source) is None:
                download(source.url, source.sha256, target)
                _stamp(target, source.sha256)
    except OSError as error:
        raise disk_error(target, error) from error
    return target


def _missing(source: Source, folder: Path | None, target: Path) -> FileError:
    where = f"in {folder} and in the cache" if folder else "in the cache (no FOGNN_DATA is set)"
    todo = source.hint or (f"get it from {source.url}" if source.url else "get it by hand")
    if target.is_file():
        return FileError(
            f"{target} is damaged: its SHA-256 is {sha256_of(target)}, it must be "
            f"{source.sha256}; remove it, then: {todo}"
        )
    return FileError(
        f"{source.path} is not {where}, and it cannot be downloaded: {todo}, and put it at {target}"
    )


def _stamp_of(path: Path, sha256: str) -> str:
    status = path.stat()
    return f"{sha256} {status.st_size} {status.st_mtime_ns}\n"


def _stamp(path: Path, sha256: str) -> None:
    with write_whole(path.with_name(f"{path.name}.sha256")) as temporary:
        temporary.write_text(_stamp_of(path, sha256))


def _find_cached(source: Source) -> Path | None:
    path = cache_dir() / source.path
    if not path.is_file():
        return None
    if source.sha256 is None:
        return path
    stamp = path.with_name(f"{path.name}.sha256")
    if stamp.is_file() and stamp.read_bytes() == _stamp_of(path, source.sha256).encode():
        return path
    if sha256_of(path) != source.sha256:
        return None
    # A cache that cannot be written is still a good cache: it is only read again next time.
    with suppress(OSError, FileError):
        _stamp(path, source.sha256)
    return path
