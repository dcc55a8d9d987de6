r"""Many runs: the paper as data (its rows, their networks and training), the ledger of measured
runs, the reproduction of tables, and the comparison of networks with and without FOG."""

from typing import TYPE_CHECKING

from fognn.experiments.rows import TABLES, Row, extra_rows, get_row, rows
from fognn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from fognn.experiments.protocols import build, config_of, protocol
    from fognn.experiments.train_one import train

__all__ = [
    "TABLES",
    "Row",
    "build",
    "config_of",
    "extra_rows",
    "get_row",
    "protocol",
    "rows",
    "train",
]

# The command line reads the names of the tables, which does not need torch.
_LAZY = {"protocols": ("build", "config_of", "protocol"), "train_one": ("train",)}
__getattr__ = lazy_names(__name__, _LAZY)
