r"""Networks (an encoder, blocks, a head), and the registry that builds them by name."""

from typing import TYPE_CHECKING, Any

from fognn.models.basic_gnn import with_fog
from fognn.models.budget import equal_size
from fognn.models.few_shot_net import FewShotNet
from fognn.models.graph_net import GraphNet
from fognn.models.hosts import register_host
from fognn.models.registry import count_parameters, create_model, list_models
from fognn.models.task import TASKS, Task

if TYPE_CHECKING:
    from fognn.models.hub import PretrainedNet as PretrainedNet

# PretrainedNet is not here: an import of everything must work without huggingface_hub.
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
    "with_fog",
]


def __getattr__(name: str) -> Any:
    # huggingface_hub is an extra, and slow to import.
    if name == "PretrainedNet":
        from fognn.models.hub import PretrainedNet

        return PretrainedNet
    raise AttributeError(f"module 'fognn.models' has no attribute {name!r}")
