r"""Errors that are not caused by a wrong argument (those are a :class:`ValueError`)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class FognnError(RuntimeError):
    r"""Base class of fognn's errors. The message is one sentence with the cause and, if there is
    one, the remedy; the command line prints it without a traceback."""


class FileError(FognnError):
    r"""A file cannot be read, written or downloaded."""


class TrainingError(FognnError):
    r"""A run cannot continue."""


class Stopped(KeyboardInterrupt):
    r"""A run was interrupted (Ctrl-C or SIGTERM) and has saved its state. The message has the
    command that resumes it."""


def first_problem(error: "ValidationError", prefix: str = "") -> str:
    r"""Returns the first problem that pydantic found, on one line: the name of the value, what it
    must be, and what it is."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    place = ".".join(str(part) for part in first["loc"])
    if not place:  # a check of several values, whose message names them
        return f"{prefix}{message}"
    got = "" if first["type"] == "missing" else f", got {repr(first['input'])[:200]}"
    return f"{prefix}{place}: {message}{got}"
