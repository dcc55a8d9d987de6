r"""The paper as data: its rows, their networks and training, and the ledger of measured runs; and
rows of our own on other data; and many runs, on this machine or on many."""

from typing import TYPE_CHECKING

from fognn.experiments.build import build
from fognn.experiments.rows import Row, get_row, own_rows, rows
from fognn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from fognn.experiments.protocols import config_of, protocol
    from fognn.experiments.train_one import train

__all__ = ["Row", "build", "config_of", "get_row", "own_rows", "protocol", "rows", "train"]

# Reading the rows does not need Lightning, which is slow to import.
__getattr__ = lazy_names(
    __name__, {"protocols": ("config_of", "protocol"), "train_one": ("train",)}
)
