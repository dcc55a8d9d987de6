r"""Where a file comes from: the user's data folder, the cache, or a download."""

import os
import pickle
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from filelock import FileLock

from fognn.utils.errors import FileError
from fognn.utils.files import user_path

SPLITS = ("train", "val", "test")
# What readers raise for a file that is truncated or of another format.
DAMAGED: tuple[type[Exception], ...] = (
    *(OSError, EOFError, ValueError, KeyError, RuntimeError, IndexError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    r"""Raises a :class:`FileError` for a file that the block cannot read."""
    try:
        yield
    except DAMAGED as error:
        raise FileError(
            f"{path} is truncated or corrupt, or not a file of this dataset ({error}): get it again"
        ) from error


def data_dir(data: str | Path | None = None) -> Path | None:
    r"""Returns the user's data folder: the argument, else :obj:`$FOGNN_DATA`, else :obj:`None`."""
    given = os.environ.get("FOGNN_DATA") or None if data is None else data
    folder = None if given is None else user_path(given)
    if folder is not None and not folder.is_dir():
        name = "FOGNN_DATA" if data is None else "data"
        raise FileError(f"{name} must name an existing folder, got {str(given)!r}")
    return folder


def cache_dir() -> Path:
    r"""Returns the cache: :obj:`$FOGNN_CACHE`, else :obj:`fognn` in the user's cache folder."""
    if own := os.environ.get("FOGNN_CACHE"):
        return user_path(own)
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path in the variable does not count.
    return user_path(shared if os.path.isabs(shared) else "~/.cache") / "fognn"


def find(name: str, data: str | Path | None = None) -> Path | None:
    r"""Returns the path of a file or folder, in the data folder or the cache, if it is there."""
    paths = [folder / name for folder in (data_dir(data), cache_dir()) if folder is not None]
    return next((path for path in paths if path.exists()), None)


def fetch(name: str, data: str | Path | None = None, hint: str = "get it by hand") -> Path:
    r"""Returns the path of a file: in the data folder, else in the cache, else downloaded if
    :obj:`registry.txt` has its address; the hint says how to get one that it has not."""
    path = find(name, data)
    if path is not None:
        return path
    target = cache_dir() / name
    if name not in _registry():
        raise FileError(
            f"{name} was not found in the data folder ({data_dir(data) or 'none is set'}) or the "
            f"cache, and cannot be downloaded: {hint}, and put it at {target}, or set FOGNN_DATA "
            "to a folder that has it"
        )
    sha256, url = _registry()[name]
    try:
        return retrieve(url, target, sha256)
    except FileError as error:
        raise FileError(f"{error}: check the network, or put it at {target}") from error


def retrieve(url: str, target: Path, sha256: str | None = None) -> Path:
    r"""Downloads a file with pooch, unless it is there: over TLS, with a progress bar, whole or not
    at all."""
    import pooch  # type: ignore[import-untyped]

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.exists():
            return target
        print(f"downloading {url} to {target}", file=sys.stderr, flush=True)
        pooch.get_logger().setLevel("WARNING")
        downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=30)
        try:
            pooch.retrieve(url, sha256, target.name, target.parent, downloader=downloader)
        except (OSError, ValueError) as error:
            offline = "ConnectionError" in type(error).__name__  # of requests, which pooch uses
            reason = "no connection" if offline else str(error).partition("\n")[0][:200]
            raise FileError(f"{url} could not be downloaded ({reason})") from error
        target.chmod(0o644)  # pooch's temporary file can be read by its owner alone
    return target


@cache
def _registry() -> dict[str, tuple[str, str]]:
    import pooch

    files = pooch.create(path=None, base_url="")
    files.load_registry(Path(__file__).with_name("registry.txt"))
    return {name: (digest, files.urls[name]) for name, digest in files.registry.items()}
