r"""Networks: an encoder, blocks, a head; all of them by name."""

from fognn.models.few_shot_net import FewShotNet
from fognn.models.graph_net import GraphNet
from fognn.models.registry import create_model, list_models
from fognn.models.summary import count_parameters, summary
from fognn.models.task import TASKS, Task

__all__ = [
    "TASKS",
    "FewShotNet",
    "GraphNet",
    "Task",
    "count_parameters",
    "create_model",
    "list_models",
    "summary",
]
