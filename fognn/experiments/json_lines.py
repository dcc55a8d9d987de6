r"""A file of JSON lines with unique keys that several processes may write to."""

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError

from fognn.utils.files import write_whole

__all__ = ["JsonLines", "KeyedLine"]

_TIMEOUT = 120.0  # seconds to wait for the lock; a write takes milliseconds


class KeyedLine(BaseModel):
    r"""A line with a unique key. Fields of a later version are kept."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, allow_inf_nan=False)

    key: str

    def same(self) -> tuple[str, ...]:
        r"""Texts that no other line of the file has."""
        return (self.key,)

    def dump(self) -> bytes:
        r"""Returns the line: its own fields in their order, without those that are :obj:`None` by
        default, then others; nested keys are sorted."""
        fields = type(self).model_fields
        content = {k: v for k, v in self.model_dump().items() if v is not None or k not in fields}
        parts = (
            f"{json.dumps(name)}: {json.dumps(value, sort_keys=True, allow_nan=False)}"
            for name, value in content.items()
        )
        return ("{" + ", ".join(parts) + "}").encode()


Line = TypeVar("Line", bound=KeyedLine)


class JsonLines(Generic[Line]):
    r"""A file with one JSON object per line.

    The file is replaced in one step, so readers need no lock; writers take one. An invalid line,
    such as one of another version, is skipped with a warning, and stays in the file as it is.

    Args:
        path (Path): The file. It need not exist.
        kind (type): The pydantic model of a line.
    """

    def __init__(self, path: str | Path, kind: type[Line]) -> None:
        self.path = Path(path)
        self.kind = kind

    def read(self) -> list[Line]:
        r"""Returns the valid lines, in the order of the file."""
        return [line for _, line in self._lines() if line is not None]

    def add(self, line: Line) -> None:
        r"""Adds a line, or replaces the one with the same key."""
        self.change(lambda _: [line])

    def change(self, function: Callable[[list[Line]], Sequence[Line]]) -> None:
        r"""Adds or replaces several lines in one step, while no other process writes.

        Args:
            function (Callable): Takes the valid lines and returns those to add or to replace.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=_TIMEOUT):
            lines = self._lines()
            changed = function([line for _, line in lines if line is not None])
            new = {line.key: line.dump() for line in changed}
            # Other lines keep their text, so that those of a later version lose nothing.
            texts = [raw if line is None else new.pop(line.key, raw) for raw, line in lines]
            texts += new.values()
            if texts != [raw for raw, _ in lines]:
                with write_whole(self.path) as temporary:
                    temporary.write_bytes(b"".join(text + b"\n" for text in texts))

    def check(self, line: Line) -> None:
        r"""Raises a :class:`ValueError` for a line that does not belong into the file."""

    def _lines(self) -> list[tuple[bytes, Line | None]]:
        found: list[tuple[bytes, Line | None]] = []
        seen: dict[str, int] = {}
        # Not splitlines(), which also splits at characters that may occur within a JSON string.
        data = self.path.read_bytes() if self.path.exists() else b""
        for number, raw in enumerate(data.split(b"\n"), 1):
            if not raw.strip():
                continue
            line = None
            try:
                line = self.kind.model_validate_json(raw)
                self.check(line)
                _check_unique(line.same(), seen, number)
            except ValueError as error:
                line = None
                reason = _reason(error) if isinstance(error, ValidationError) else str(error)
                warnings.warn(f"{self.path}, line {number}, is skipped: {reason}", stacklevel=2)
            found.append((raw.strip() if line else raw, line))
        return found


def _check_unique(texts: Iterable[str], seen: dict[str, int], number: int) -> None:
    for text in texts:
        if text in seen:
            raise ValueError(f"it is the same run as line {seen[text]}: {text[:80]}")
    seen.update(dict.fromkeys(texts, number))


def _reason(error: ValidationError) -> str:
    first: Any = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])
