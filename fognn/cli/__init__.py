r"""The command ``fognn``: each command parses its arguments, calls one function and prints.

What a command needs is imported inside it, so that ``fognn --help`` does not wait for torch.
"""

from fognn.cli import data, paper, run, show  # noqa: F401, they register their commands
from fognn.cli.app import app, main

__all__ = ["app", "main"]
