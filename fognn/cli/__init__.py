r"""The command ``fognn``: each command parses its arguments, calls one function and prints.

Commands import their function when they are called, so that ``fognn --help`` does not import torch.
"""

# They register their commands, in the order of fognn --help.
from fognn.cli import run, paper, data  # noqa: F401, I001
from fognn.cli.options import app, main

__all__ = ["app", "main"]
