r"""fognn: second-order message passing for PyTorch Geometric.

The layer is :class:`FOG`; :class:`WithFOG` puts it beside any layer of PyG; :func:`create_model`
builds a network by name.
"""

from fognn.models import Task, create_model, list_models
from fognn.nn import FOG, WithFOG, fog_widths

__version__ = "0.1.0.dev0"

__all__ = ["FOG", "Task", "WithFOG", "__version__", "create_model", "fog_widths", "list_models"]
