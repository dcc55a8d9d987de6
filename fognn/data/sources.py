r"""Where a file comes from: the user's data folder, the cache, or a download."""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from filelock import FileLock
from torch_geometric.datasets import GNNBenchmarkDataset

from fognn.utils.errors import FileError
from fognn.utils.files import disk_error, sha256_of, user_path, write_whole

__all__ = [
    "Source",
    "benchmark_file",
    "benchmark_source",
    "cache_dir",
    "data_dir",
    "fetch",
    "find",
    "pyg_download",
]

_TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Source:
    r"""Where one file comes from.

    Args:
        path (str): Relative path with forward slashes, the same inside a data folder and inside
            the cache, *e.g.*, :obj:`"zinc/zinc12k.npz"`.
        url (str, optional): The official address (http or https). (default: :obj:`None`)
        sha256 (str, optional): SHA-256 of the whole file, in lower case hexadecimal. An address
            without it is never downloaded. (default: :obj:`None`)
        hint (str, optional): What a user can do to get the file by hand. (default: :obj:`""`)
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
    r"""Returns the user's data folder: the argument, else :obj:`$FOGNN_DATA`, else :obj:`None`."""
    name = "data"
    if data is None:
        name, data = "FOGNN_DATA", os.environ.get("FOGNN_DATA") or None
    if data is None:
        return None
    folder = user_path(data)
    if not folder.is_dir():
        raise FileError(f"{name} must name an existing folder, got {str(data)!r}")
    return folder


def cache_dir() -> Path:
    r"""Returns the cache: :obj:`$FOGNN_CACHE`, else :obj:`fognn` in the user's cache folder."""
    own = os.environ.get("FOGNN_CACHE")
    if own:
        return user_path(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path in the variable does not count.
    base = Path(shared) if os.path.isabs(shared) else user_path("~/.cache")
    return base / "fognn"


def find(source: Source, data: str | Path | None = None) -> Path | None:
    r"""Looks for a file in the data folder, then in the cache. Downloads nothing.

    A file in the data folder is taken as it is. A file in the cache is taken if its SHA-256 is
    right, or if :obj:`source` has none.

    Args:
        source (Source): The file.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    folder = data_dir(data)
    if folder is not None and (folder / source.path).is_file():
        return folder / source.path
    path = cache_dir() / source.path
    right = path.is_file() and (source.sha256 is None or sha256_of(path) == source.sha256)
    return path if right else None


def fetch(source: Source, data: str | Path | None = None) -> Path:
    r"""Returns the path of a file: in the data folder, else in the cache, else downloaded.

    A file in the data folder whose SHA-256 differs from the official one is used with a warning.
    A download gets its name in the cache only when it is whole and its SHA-256 is right. If two
    processes ask at once, one of them downloads. A failure raises a
    :class:`~fognn.data.FileError` of one line that says what to do.

    Args:
        source (Source): The file.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
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
            # Another process may have finished the download while this one waited.
            if find(source, data) is None:
                _download(source.url, source.sha256, target)
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


def _download(url: str, sha256: str, target: Path) -> None:
    from pooch import HTTPDownloader  # type: ignore[import-untyped]
    from requests.exceptions import HTTPError, RequestException

    by_hand = f"or get {url} by hand and put it at {target}"
    # Not pooch.retrieve: it logs to stderr, and its file can be read by its owner alone.
    downloader = HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=_TIMEOUT)
    try:
        with write_whole(target) as temporary:
            downloader(url, str(temporary), None)
            got = sha256_of(temporary)
            if got != sha256:
                raise FileError(
                    f"{url} gave a wrong file and it was removed: its SHA-256 is {got}, it must "
                    f"be {sha256}; try again later, {by_hand}"
                )
    except HTTPError as error:
        answer = str(error).partition(" for url")[0]
        raise FileError(f"{url} answered {answer}: try again later, {by_hand}") from error
    except RequestException as error:
        raise FileError(
            f"{url} could not be downloaded ({_cause(error)}): check the network, {by_hand}"
        ) from error


def _cause(error: BaseException) -> BaseException:
    r"""Returns what went wrong below the layers of requests, whose own messages are long."""
    while type(error).__module__.startswith(("requests", "urllib3")) and error.__context__:
        error = error.__context__
    return error


@contextmanager
def pyg_download(name: str, folder: Path, last: Path, instead: str) -> Iterator[None]:
    r"""Guards a download by PyG, which knows no lock and takes half a file for a whole one.

    Other processes wait. If the block fails or is interrupted before the download is complete,
    the folder is removed.

    Args:
        name (str): The dataset, for the error message.
        folder (Path): The folder into which PyG downloads.
        last (Path): The file that PyG writes last; with it the download is complete.
        instead (str): What the user can do if the download fails.
    """
    lock = FileLock(f"{folder}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise disk_error(folder, error) from error
    complete = last.is_file()
    try:
        yield
    except BaseException as error:
        if not complete:
            shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, Exception):
            raise
        # PyG raises whatever its network libraries do.
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        advice = f"remove {folder} and try again" if complete else "check the network"
        raise FileError(f"PyG could not get {name} ({reason}): {advice}, or {instead}") from error
    finally:
        lock.release()


class _BenchmarkFiles(GNNBenchmarkDataset):
    r"""PyG's addresses, names and download. PyG's own reading is left out: for a file that names
    other things than tensors, :obj:`fs.torch_load` falls back to running it."""

    def _process(self) -> None:
        r"""Makes no processed file."""

    def load(self, *args: object) -> None:
        r"""Reads no processed file."""


def benchmark_source(name: str) -> Source:
    r"""Returns the raw file of :class:`~torch_geometric.datasets.GNNBenchmarkDataset` with the
    root folder :obj:`benchmarking_gnns`."""
    stem = PurePosixPath(GNNBenchmarkDataset.urls[name]).stem
    return Source(f"benchmarking_gnns/{name}/raw/{stem}.pt")


def benchmark_file(name: str, data: str | Path | None = None) -> Path:
    r"""Returns the path of an official file of the "Benchmarking Graph Neural Networks" paper; if
    it is neither in the data folder nor in the cache, PyG downloads it.

    Args:
        name (str): :obj:`"PATTERN"`, :obj:`"CLUSTER"` or :obj:`"TSP"`.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    source = benchmark_source(name)
    path = find(source, data)
    if path is None:
        path = cache_dir() / source.path
        root = path.parents[2]
        by_hand = f"unpack {GNNBenchmarkDataset.urls[name]} so that its file is {path}"
        with pyg_download(name, root / name, path, by_hand):
            _BenchmarkFiles(str(root), name)
            if not path.is_file():
                raise FileNotFoundError(f"the archive has no {path.name}")
    return path
