r"""fognn: second-order message passing for PyTorch Geometric.

The layer is :class:`FOG`; :class:`WithFOG` puts it beside any layer of PyG; :func:`create_model`
builds a network by name; :func:`train` trains one, :func:`load` loads it, and :func:`predict`
predicts with it; :func:`compare` tells whether FOG helps on your data.
"""

from typing import TYPE_CHECKING

from fognn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from fognn.experiments import train
    from fognn.experiments.compare import compare
    from fognn.models import Task, create_model, list_models
    from fognn.nn import FOG, WithFOG, fog_widths
    from fognn.training import Result, load, predict

__version__ = "0.1.0.dev0"

__all__ = [
    "FOG",
    "Result",
    "Task",
    "WithFOG",
    "__version__",
    "compare",
    "create_model",
    "fog_widths",
    "list_models",
    "load",
    "predict",
    "train",
]

__getattr__ = lazy_names(
    __name__,
    {
        "nn": ("FOG", "WithFOG", "fog_widths"),
        "models": ("Task", "create_model", "list_models"),
        "training": ("Result", "load", "predict"),
        "experiments": ("train",),
        "experiments.compare": ("compare",),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
