r"""A file of JSON lines with unique keys that many processes may write to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fognn.utils.errors import FileError
from fognn.utils.files import disk_error, write_whole

__all__ = ["JsonlFile"]

_TIMEOUT = 120.0  # seconds to wait for the lock; a write takes milliseconds


class JsonlFile:
    r"""A file with one JSON object per line, each with a unique ``"key"``.

    The file is replaced atomically, so readers need no lock. Writers take a lock on a file in the
    same folder, which the system releases when a process ends; machines can share the file if their
    shared folder supports locks.

    Args:
        path (Path): The file. It need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def read(self) -> list[dict[str, Any]]:
        r"""Returns the objects, in the order of the file."""
        return [content for content, _ in self._lines()]

    def put(self, content: dict[str, Any]) -> None:
        r"""Adds an object, or replaces the one with the same key."""
        # Raises for an invalid object before the lock is taken.
        line = _dump(content)
        with self._lock():
            lines = {own["key"]: text for own, text in self._lines()}
            # Other lines keep their text, so that those of a later version lose nothing.
            lines[content["key"]] = line
            # Temporary files of a process that was killed while it wrote.
            for left in self.path.parent.glob(f".tmp-*-{self.path.name}"):
                left.unlink(missing_ok=True)
            with write_whole(self.path) as temporary:
                text = "".join(f"{line}\n" for line in lines.values())
                temporary.write_text(text, encoding="utf-8", newline="\n")

    def _lines(self) -> list[tuple[dict[str, Any], str]]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} must be a text file in UTF-8: {error}") from error
        found: list[tuple[dict[str, Any], str]] = []
        places: dict[str, int] = {}
        # Not splitlines(), which also splits at characters that may occur within a JSON string.
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            content = _load(line, f"{self.path}, line {number}")
            first = places.setdefault(content["key"], number)
            if first != number:
                raise ValueError(
                    f"{self.path}, line {number}: key must be unique, got {content['key']!r}, "
                    f"which line {first} has too; remove one of the two"
                )
            found.append((content, line.strip()))
        return found

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=_TIMEOUT)
        except Timeout as error:
            raise FileError(
                f"{self.path} could not be written, another process has held {lock.lock_file} for "
                f"{_TIMEOUT:.0f} seconds: end that process and try again"
            ) from error
        except OSError as error:
            raise disk_error(self.path, error) from error
        try:
            yield
        finally:
            lock.release()


def _dump(content: dict[str, Any]) -> str:
    r"""Returns an object as one line of JSON: its own keys in their order, nested keys sorted."""
    try:
        if not isinstance(content["key"], str):
            raise TypeError(f"key must be a str, got {content['key']!r}")
        parts = (
            f"{json.dumps(name)}: {json.dumps(value, sort_keys=True, allow_nan=False)}"
            for name, value in content.items()
        )
        return "{" + ", ".join(parts) + "}"
    except (TypeError, ValueError, KeyError) as error:
        key = content.get("key")
        raise ValueError(
            f"the line of key {key!r} must have plain, finite values: {error}"
        ) from error


def _load(line: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: must be one JSON object: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("key"), str):
        raise ValueError(f"{where}: must be a JSON object with a key, got {line[:60]!r}")
    return content


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")
