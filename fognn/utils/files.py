r"""Paths of the user, checksums, and files that are written whole or not at all."""

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fognn.utils.errors import FileError

# What torch.save raises on a full disk, without an errno.
_TORCH = ("PytorchStreamWriter", "unexpected pos", "iostream error")


def user_path(path: str | Path) -> Path:
    r"""Returns a path with a leading ``~`` or ``~user`` replaced by the home directory."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise FileError(f"{path}: {error}") from error


def sha256_of(path: Path) -> str:
    r"""Returns the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    r"""Writes a file atomically: yields a temporary path in the same folder to write to.

    At the end of the block the temporary file replaces :obj:`path` in one step. If the block
    raises, the temporary file is removed and :obj:`path` is unchanged. Both names have the same
    suffix, because :meth:`numpy.savez` and others depend on it. Missing folders are created.
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
    except OSError as error:
        # Other errors of the block, of a file that it reads, are not about this file.
        if error.filename is None or Path(error.filename) in (temporary, path, *path.parents):
            raise FileError(f"{path} could not be written: {error.strerror or error}") from error
        raise
    except RuntimeError as error:
        if any(word in str(error) for word in _TORCH):
            raise FileError(f"{path} could not be written: {error}") from error
        raise
    finally:
        if temporary.exists():
            temporary.unlink()
