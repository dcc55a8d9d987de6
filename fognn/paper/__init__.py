r"""The paper as data: its rows, and the network of each."""

from fognn.paper.build import build
from fognn.paper.rows import Row, rows

__all__ = ["Row", "build", "rows"]
