r"""A file of JSON lines with unique keys that many processes may write to."""

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fognn.utils.errors import FileError
from fognn.utils.files import check_regular, disk_error, remove_left, write_whole

__all__ = ["JsonlFile"]

_TIMEOUT = 120.0  # seconds to wait for the lock; a write takes milliseconds


@dataclass(frozen=True)
class _Line:
    r"""A line of the file; ``wrong`` says why it is skipped, and is empty for a valid line."""

    number: int
    raw: bytes
    content: dict[str, Any]
    wrong: str = ""


class JsonlFile:
    r"""A file with one JSON object per line, each with a unique ``"key"``.

    The file is replaced atomically, so readers need no lock. Writers take a lock on a file in the
    same folder, which the system releases when a process ends; machines can share the file if their
    shared folder supports locks.

    An invalid line, such as one of another version, does not affect the others: it is skipped with
    a warning, and stays in the file as it is.

    Args:
        path (Path): The file. It need not exist.
        check (Callable, optional): Raises a :class:`ValueError` for an object that is not valid.
            (default: :obj:`None`)
    """

    def __init__(self, path: Path, check: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.path = Path(path)
        self._check = check

    def read(self) -> list[dict[str, Any]]:
        r"""Returns the valid objects, in the order of the file; warns of each line that is not."""
        lines = self._lines()
        for line in lines:
            if line.wrong:
                warn_skipped(self.path, line.number, line.content.get("key"), line.wrong)
        return [line.content for line in lines if not line.wrong]

    def put(self, content: dict[str, Any]) -> None:
        r"""Adds an object, or replaces the valid one with the same key."""
        _dump(content)  # raises for an invalid object before the lock is taken
        self.change(lambda _: [content])

    def change(self, function: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        r"""Adds or replaces several objects in one step, under the lock.

        Args:
            function (Callable): Takes the valid objects and returns those to add or to replace.
        """
        with self._lock():
            lines = self._lines()
            changed = function([line.content for line in lines if not line.wrong])
            new = {content["key"]: _dump(content).encode() for content in changed}
            # Other lines keep their text, so that those of a later version lose nothing.
            texts = [
                line.raw if line.wrong else new.pop(line.content["key"], line.raw) for line in lines
            ]
            texts += new.values()
            if texts == [line.raw for line in lines]:
                return
            remove_left(self.path)
            with write_whole(self.path) as temporary:
                temporary.write_bytes(b"".join(line + b"\n" for line in texts))

    def _lines(self) -> list[_Line]:
        if not self.path.exists() and not self.path.is_symlink():
            return []
        check_regular(self.path)
        data = self.path.read_bytes()
        found: list[_Line] = []
        places: dict[str, int] = {}
        # Not splitlines(), which also splits at characters that may occur within a JSON string.
        for number, raw in enumerate(data.split(b"\n"), 1):
            if not raw.strip():
                continue
            content: dict[str, Any] = {}
            try:
                content = _load(raw)
                if self._check is not None:
                    self._check(content)
                if content["key"] in places:
                    raise ValueError(
                        f"key must be unique, got {content['key']!r}, which line "
                        f"{places[content['key']]} has too; remove one of the two"
                    )
            except ValueError as error:
                found.append(_Line(number, raw, content, str(error)))
                continue
            places[content["key"]] = number
            found.append(_Line(number, raw.strip(), content))
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


def _load(raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"must be text in UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"must be one JSON object: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("key"), str):
        raise ValueError(f"must be a JSON object with a key, got {raw[:60].decode()!r}")
    return content


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def warn_skipped(path: Path, number: int, key: Any, wrong: str) -> None:
    r"""Warns of a line that is skipped. Python shows the same warning once.

    Args:
        path (Path): The file.
        number (int): The number of the line, from 1.
        key (str): The key of the line, if it is known.
        wrong (str): The reason.
    """
    named = f", {key!r}" if isinstance(key, str) else ""
    warnings.warn(
        f"{path}, line {number}{named}: {wrong}; the line is skipped, and kept in the file",
        stacklevel=1,
    )
