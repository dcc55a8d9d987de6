r"""Where a file comes from: the user's data folder, the cache, or a download."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from fognn.utils.errors import FileError
from fognn.utils.files import user_path

__all__ = ["Source", "cache_dir", "data_dir", "fetch", "find", "made_once", "retrieve"]


@dataclass(frozen=True)
class Source:
    r"""Where one file comes from.

    Args:
        path (str): Relative path with forward slashes, the same inside a data folder and inside
            the cache, *e.g.*, :obj:`"zinc/zinc12k.npz"`.
        url (str, optional): The official address. (default: :obj:`None`)
        sha256 (str, optional): SHA-256 of the file. (default: :obj:`None`)
        hint (str, optional): What a user can do to get the file by hand. (default: :obj:`""`)
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    hint: str = ""


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


def find(name: str, data: str | Path | None = None) -> Path | None:
    r"""Looks for a file or folder in the data folder, then in the cache. Downloads nothing.

    Args:
        name (str): Its relative path.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    for folder in (data_dir(data), cache_dir()):
        if folder is not None and (folder / name).exists():
            return folder / name
    return None


def fetch(source: Source, data: str | Path | None = None) -> Path:
    r"""Returns the path of a file: in the data folder, else in the cache, else downloaded.

    Args:
        source (Source): The file.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """
    path = find(source.path, data)
    if path is not None:
        return path
    target = cache_dir() / source.path
    if source.url is None:
        folder = data_dir(data)
        place = f"in {folder} nor " if folder else ""
        raise FileError(
            f"{source.path} is neither {place}in the cache: {source.hint or 'get it by hand'}, and "
            f"put it at {target}, or set FOGNN_DATA to a folder that has it"
        )
    try:
        return retrieve(source.url, target, source.sha256)
    except FileError as error:
        raise FileError(f"{error}: check the network, or put it at {target}") from error


def retrieve(url: str, target: Path, sha256: str | None = None) -> Path:
    r"""Downloads a file with pooch: over TLS, with a progress bar, whole or not at all.

    Args:
        url (str): The address.
        target (Path): The file to write. If it is there, it is not downloaded again.
        sha256 (str, optional): The SHA-256 that it must have. (default: not checked)
    """
    import pooch  # type: ignore[import-untyped]

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.exists():
            return target
        print(f"downloading {url} to {target}", file=sys.stderr, flush=True)
        pooch.get_logger().setLevel("WARNING")
        downloader = None
        if url.startswith("http"):
            downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=30)
        try:
            pooch.retrieve(url, sha256, target.name, target.parent, downloader=downloader)
        except (OSError, ValueError) as error:  # those of requests are OSErrors
            reason = str(error).partition("\n")[0]
            raise FileError(
                f"{url} could not be downloaded ({type(error).__name__}: {reason[:200]})"
            ) from error
        target.chmod(0o644)  # pooch's temporary file can be read by its owner alone
    return target


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    r"""Returns a folder of the cache, which is made whole or not at all when it is first asked for.

    Args:
        name (str): The folder, relative to the cache.
        make (callable): Fills the folder that it gets.
    """
    target = cache_dir() / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.exists():
            print(f"{name.removeprefix('pyg/')}: downloading to {target}", file=sys.stderr)
            place = Path(tempfile.mkdtemp(prefix=".tmp-", dir=target.parent))
            try:
                make(place)
                place.chmod(0o755)
                place.rename(target)
            finally:
                shutil.rmtree(place, ignore_errors=True)
    return target
