r"""The paper as data: its rows, their networks, their training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fognn.paper.build import build
from fognn.paper.rows import Row, rows

if TYPE_CHECKING:
    from fognn.paper.protocols import config_of, protocol
    from fognn.paper.train_one import train

__all__ = ["Row", "build", "config_of", "protocol", "rows", "train"]

# Who only reads the rows need not wait for Lightning.
_LATER = {"config_of": "protocols", "protocol": "protocols", "train": "train_one"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"fognn.paper.{_LATER[name]}"), name)
    raise AttributeError(f"module 'fognn.paper' has no attribute {name!r}")
