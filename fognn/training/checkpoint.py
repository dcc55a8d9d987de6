r"""Checkpoints: written whole, read without running any code."""

import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module

from fognn.models import Task, create_model
from fognn.training.config import Config
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, write_whole
from fognn.utils.torch_files import load_torch

__all__ = [
    "load",
    "load_run",
    "model_arguments",
    "read_checkpoint",
    "rebuild",
    "untrained_model",
    "write_checkpoint",
]

FORMAT = 1


def untrained_model(config: Config, task: Task | None) -> Module:
    r"""The untrained network of a run, its weights drawn from the run's seed.

    The random numbers of the caller are as they were before.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return create_model(config.model.name, task, **model_arguments(config, task))


def model_arguments(config: Config, task: Task | None) -> dict[str, Any]:
    r"""The settings of the network; of images the number of classes is in the data."""
    own = {"n_way": config.data.n_way} if task is None else {}
    return own | config.model.settings


def write_checkpoint(path: Path, config: Config, task: Task | None, state: dict[str, Any]) -> None:
    r"""Writes a checkpoint that stands for itself: how the network is built is in it.

    Args:
        path: Where.
        config: The run.
        task: What the network reads and answers.
        state: Tensors and plain values by name; ``"model"`` holds the network's weights.
    """
    content = {
        "format": FORMAT,
        "config": config.to_dict(),
        "task": None if task is None else asdict(task),
        **state,
    }
    with write_whole(path) as temporary:
        torch.save(content, temporary)


def read_checkpoint(path: Path) -> dict[str, Any]:
    r"""Reads a checkpoint. It cannot make Python run anything: ``weights_only=True``, and none of
    the names that PyG adds to torch's list."""
    try:
        content = load_torch(path)
        with zipfile.ZipFile(path) as parts:  # torch does not look at the checksums
            if (broken := parts.testzip()) is not None:
                raise ValueError(f"the checksum of {broken} is wrong")
    except FileNotFoundError as error:
        raise ValueError(f"{path} is not there: the run has not finished an epoch yet") from error
    except DAMAGE as error:
        raise FileError(
            f"{path} is damaged ({type(error).__name__}): remove it to train from the beginning"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(f"{path} is no checkpoint of this version of fognn")
    return content


def rebuild(content: dict[str, Any]) -> tuple[Module, Config, Task | None]:
    r"""The trained network of a checkpoint, ready to predict, and how it was made."""
    config = Config.from_dict(content["config"], "checkpoint")
    task = None if content["task"] is None else Task(**content["task"])
    model = untrained_model(config, task)
    if config.precision == "64-true":
        model.double()
    model.load_state_dict(content["model"])
    return model.eval(), config, task


def load(run: str | Path, checkpoint: str = "best") -> Module:
    r"""The trained network of a run, in evaluation mode, ready to predict.

    Args:
        run: A run folder, a checkpoint in one, or a folder of :func:`fognn.training.export`.
        checkpoint: ``"best"``, the best validation epoch, or ``"last"``.
    """
    if (Path(run).expanduser() / "config.json").is_file():
        from fognn.models import PretrainedNet

        return PretrainedNet.from_pretrained(run)
    return load_run(run, checkpoint)[0]


def load_run(run: str | Path, checkpoint: str = "best") -> tuple[Module, Config, Task | None]:
    r"""The network like :func:`load`, and how it was made."""
    path = Path(run).expanduser()
    if path.is_file():
        return rebuild(read_checkpoint(path))
    checks.one_of("load", "checkpoint", checkpoint, ("best", "last"))
    if not (path / "config.yaml").is_file():
        raise ValueError(f"run must be a run folder or a checkpoint, got {str(run)!r}")
    if (path / "fold-1").is_dir():
        raise ValueError(f"run {str(run)!r} has a network for each fold: name one, as {run}/fold-1")
    return rebuild(read_checkpoint(path / f"{checkpoint}.ckpt"))
