r"""fognn: second-order message passing for PyTorch Geometric.

The layer is :class:`FOG`; :class:`WithFOG` puts it beside any layer of PyG; :func:`create_model`
builds a network by name; :func:`train` trains one, and :func:`load` gives it back.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fognn.models import Task, create_model, list_models
    from fognn.nn import FOG, WithFOG, fog_widths
    from fognn.paper import train
    from fognn.training import Result, load

__version__ = "0.1.0.dev0"

__all__ = [
    "FOG",
    "Result",
    "Task",
    "WithFOG",
    "__version__",
    "create_model",
    "fog_widths",
    "list_models",
    "load",
    "train",
]

# Torch takes seconds to import, which `fognn --help` need not wait for.
_ROOMS = {
    name: room
    for room, names in {
        "nn": ("FOG", "WithFOG", "fog_widths"),
        "models": ("Task", "create_model", "list_models"),
        "training": ("Result", "load"),
        "paper": ("train",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(import_module(f"fognn.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'fognn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
