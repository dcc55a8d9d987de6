r"""The network and the loaders of a run."""

from dataclasses import dataclass

from torch.nn import Module

from fognn.data import UserData
from fognn.models import Task
from fognn.training.checkpoint import untrained_model
from fognn.training.config import Config
from fognn.training.data import Loader, open_split, task_of
from fognn.training.user_data import is_user_data, open_data

__all__ = ["Parts"]


@dataclass
class Parts:
    r"""The network and the loaders of a run.

    Args:
        task (Task, optional): The inputs and outputs of the network; :obj:`None` for few-shot
            images.
        classes (int): Number of classes, or of values.
        net (torch.nn.Module): The untrained network.
        train (Loader): The training batches of this rank.
        val (Loader): The validation batches.
        data (UserData, optional): The user's data. (default: :obj:`None`)
    """

    task: Task | None
    classes: int
    net: Module
    train: Loader
    val: Loader
    data: UserData | None = None

    @classmethod
    def of(
        cls,
        config: Config,
        rank: int = 0,
        world_size: int = 1,
        data: UserData | None = None,
        module: Module | None = None,
    ) -> "Parts":
        r"""Builds the network and opens the loaders."""
        if data is None and is_user_data(config.data):
            data = open_data(config.data)
        task = task_of(config.data, data)
        return cls(
            task,
            task.out_channels if task is not None else config.data.n_way,
            untrained_model(config, task, module),
            open_split(config, "train", rank, world_size, data),
            open_split(config, "val", data=data),
            data,
        )
