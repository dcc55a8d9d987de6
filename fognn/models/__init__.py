r"""Networks (an encoder, blocks, a head), and the registry that builds them by name."""

from typing import TYPE_CHECKING

from fognn.models.budget import equal_size
from fognn.models.few_shot_net import FewShotNet
from fognn.models.graph_net import GraphNet
from fognn.models.hosts import register_host
from fognn.models.registry import TASKS, Task, count_parameters, create_model, list_models
from fognn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from fognn.models.weights import PretrainedNet as PretrainedNet

# PretrainedNet is not here: an import of everything must work without safetensors.
__all__ = [
    "TASKS",
    "FewShotNet",
    "GraphNet",
    "Task",
    "count_parameters",
    "create_model",
    "equal_size",
    "list_models",
    "register_host",
]

__getattr__ = lazy_names(__name__, {"weights": ("PretrainedNet",)})
