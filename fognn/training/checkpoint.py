r"""Checkpoints: written atomically, and read without running any code that they name."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module

from fognn.data.opening import is_python_name
from fognn.models import Task
from fognn.models.registry import new_model
from fognn.models.weights import kept_file, loading_errors, read_weights
from fognn.training.config import Config
from fognn.training.user_module import load_given, untrained_module
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

__all__ = [
    "content_of",
    "load",
    "load_run",
    "model_arguments",
    "read_checkpoint",
    "rebuild",
    "untrained_model",
    "write_checkpoint",
]

FORMAT = 1


def untrained_model(config: Config, task: Task | None, module: Module | None = None) -> Module:
    r"""Returns the untrained network of a run, initialised with the run's seed.

    The caller's random state is not changed.

    Args:
        config (Config): The run.
        task (Task, optional): The inputs and outputs of the network; :obj:`None` for few-shot
            images.
        module (torch.nn.Module, optional): The user's network, if the run has one.
            (default: :obj:`None`)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if module is not None:
            return untrained_module(module, task, config.model.settings)
        if is_python_name(config.model.name):
            raise ValueError(
                f"network {config.model.name!r} was given as a Python object: call fognn.train "
                "with the same object to resume its run, or fognn.load(run, module=network) to "
                "load its weights"
            )
        return new_model(config.model.name, task, **model_arguments(config, task))


def model_arguments(config: Config, task: Task | None) -> dict[str, Any]:
    r"""Returns the arguments of :func:`fognn.create_model` for a run. Few-shot networks get their
    number of classes from the data."""
    classes = {"n_way": config.data.n_way} if task is None else {}
    return classes | config.model.settings


def write_checkpoint(path: Path, config: Config, task: Task | None, state: dict[str, Any]) -> None:
    r"""Writes a checkpoint with all that is needed to rebuild the network.

    Args:
        path (Path): The file to write.
        config (Config): The run.
        task (Task, optional): The inputs and outputs of the network; :obj:`None` for few-shot
            images.
        state (dict): Tensors and plain values by name; ``"model"`` has the network's weights.
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
    r"""Reads a checkpoint; no code that it names is run.

    Raises:
        ValueError: If the file does not exist.
        FileError: If the file is truncated, corrupt or no checkpoint of this version.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist: the run has not finished an epoch yet")
    with content_of(path):
        with zipfile.ZipFile(path) as parts:  # torch does not compare the checksums
            if parts.testzip() is not None:
                raise zipfile.BadZipFile("wrong checksum")
        content = torch.load(path, map_location="cpu", weights_only=True)
        if content["format"] != FORMAT:
            raise FileError(f"{path} is not a checkpoint of this version of fognn")
    return dict(content)


@contextmanager
def content_of(path: Path) -> Iterator[None]:
    r"""Names a checkpoint in the errors of the block, which reads or uses its content.

    Args:
        path (Path): The checkpoint.
    """
    try:
        yield
    except FileError:
        raise
    except ValueError as error:  # a setting of the network, in a clear sentence
        raise ValueError(f"{path}: {error}") from error
    except Exception as error:  # whatever torch and zipfile raise for broken bytes
        raise FileError(
            f"{path} is truncated or corrupt, or not of this run ({type(error).__name__}): remove "
            f"the run in {path.parent} and train it again"
        ) from error


def rebuild(
    content: dict[str, Any], module: Module | None = None
) -> tuple[Module, Config, Task | None]:
    r"""Returns the trained network of a checkpoint, in evaluation mode, its configuration and its
    task.

    Args:
        content (dict): The result of :func:`read_checkpoint`.
        module (torch.nn.Module, optional): The user's network, if the run has one.
            (default: :obj:`None`)
    """
    config = Config.from_dict(content["config"], "checkpoint")
    task = None if content["task"] is None else Task(**content["task"])
    model = untrained_model(config, task, module)
    if config.precision == "64-true":
        model.double()
    model.load_state_dict(content["model"])
    return model.eval(), config, task


def load(run: str | Path, checkpoint: str | None = None, module: Module | None = None) -> Module:
    r"""Loads the trained network of a run, in evaluation mode.

    Args:
        run (str): A run folder, a checkpoint in one, a folder of :func:`fognn.training.export`, or
            the name of kept weights, such as ``"zinc/gcn+fog"``; a folder of that name comes
            first. The weights are searched as in :func:`fognn.create_model`.
        checkpoint (str, optional): ``"best"`` for the epoch with the best validation metric, or
            ``"last"``. (default: :obj:`"best"`; for kept weights the one that is kept:
            :obj:`"last"`, or :obj:`"best"` for few-shot images)
        module (torch.nn.Module, optional): The network that was given to :func:`fognn.train`, to
            load its weights. (default: :obj:`None`)
    """
    if module is not None:
        return load_given(module, read_checkpoint(checkpoint_file(run, checkpoint)), str(run))
    if (user_path(run) / "config.json").is_file():
        from fognn.models import PretrainedNet

        return PretrainedNet.from_pretrained(run)
    return load_run(run, checkpoint)[0]


def load_run(
    run: str | Path, checkpoint: str | None = None, module: Module | None = None
) -> tuple[Module, Config, Task | None]:
    r"""Loads the network like :func:`load`, and its configuration and task.

    Args:
        run (str): A run folder, a checkpoint in one, or the name of kept weights.
        checkpoint (str, optional): As in :func:`load`. (default: :obj:`None`)
        module (torch.nn.Module, optional): The user's network, if the run has one.
            (default: :obj:`None`)
    """
    kept = kept_file(run)
    if kept is None:
        path = checkpoint_file(run, checkpoint)
        content = read_checkpoint(path)
        with content_of(path):
            return rebuild(content, module)
    weights = read_weights(kept)
    epoch = "best" if weights.task is None else "last"
    if checkpoint not in (None, epoch):
        raise ValueError(
            f"load: checkpoint must be {epoch!r} for these kept weights, which are those of the "
            f"{epoch} epoch, got {checkpoint!r}"
        )
    with loading_errors(kept):
        return rebuild({"config": weights.config, "task": weights.task, "model": weights.tensors})


def checkpoint_file(run: str | Path, checkpoint: str | None = None) -> Path:
    r"""Returns the checkpoint of a run.

    Args:
        run (str): A run folder, or a checkpoint in one.
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`)
    """
    path, checkpoint = user_path(run), "best" if checkpoint is None else checkpoint
    if path.is_file():
        return path
    checks.one_of("load", "checkpoint", checkpoint, ("best", "last"))
    if not (path / "config.yaml").is_file():
        raise ValueError(f"run must be a run folder or a checkpoint, got {str(run)!r}")
    if (path / "fold-1").is_dir():
        raise ValueError(
            f"run must name one fold of a run over folds, such as {run}/fold-1, got {str(run)!r}"
        )
    return path / f"{checkpoint}.ckpt"
