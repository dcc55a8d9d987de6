r"""The command ``fognn``: each command parses its arguments, calls one function and prints.

Commands import their function when they are called, so that ``fognn --help`` does not import torch.
"""

from fognn.cli import data, paper, run  # noqa: F401, they register their commands
from fognn.cli.options import app, main

__all__ = ["app", "main"]
