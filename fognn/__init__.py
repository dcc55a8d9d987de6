r"""fognn: second-order message passing for PyTorch Geometric.

The layer is :class:`FOG`; :class:`WithFOG` puts it beside any layer of PyG; :func:`create_model`
builds a network by name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fognn.models import Task, create_model, list_models
    from fognn.nn import FOG, WithFOG, fog_widths

__version__ = "0.1.0.dev0"

__all__ = ["FOG", "Task", "WithFOG", "__version__", "create_model", "fog_widths", "list_models"]

# Torch takes seconds to import, which `fognn --help` need not wait for.
_ROOMS = {"FOG": "nn", "WithFOG": "nn", "fog_widths": "nn"} | dict.fromkeys(
    ("Task", "create_model", "list_models"), "models"
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return getattr(import_module(f"fognn.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'fognn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
