r"""How a run ends when it does not end well."""

__all__ = ["Stopped", "TrainingError"]


class TrainingError(RuntimeError):
    r"""A run cannot go on: one sentence that says why, and what to do."""


class Stopped(KeyboardInterrupt):
    r"""A run was asked to stop, and has saved what it had: one sentence says how to go on."""
