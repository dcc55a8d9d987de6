r"""Errors that are not caused by a wrong argument (those are a :class:`ValueError`)."""

__all__ = ["FileError", "FognnError", "Stopped", "TrainingError"]


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
