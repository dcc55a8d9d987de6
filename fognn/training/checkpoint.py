r"""Checkpoints: written atomically, and read without running any code that they name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module

from fognn.models import Task
from fognn.models.registry import new_model
from fognn.models.tensor_file import whole_network
from fognn.models.weights import kept_file, read_weights
from fognn.training.config import Config
from fognn.training.given import given_module, is_given, load_given
from fognn.training.out_of_memory import network_too_large
from fognn.utils import checks
from fognn.utils.errors import FileError, FognnError
from fognn.utils.files import DAMAGE, user_path, write_whole
from fognn.utils.memory import memory_errors
from fognn.utils.torch_files import check_sums, load_torch

__all__ = [
    "content_of",
    "load",
    "load_run",
    "model_arguments",
    "read_checkpoint",
    "rebuild",
    "restore_best",
    "untrained_model",
    "write_checkpoint",
]

FORMAT = 1


def untrained_model(config: Config, task: Task | None) -> Module:
    r"""Returns the untrained network of a run, initialised with the run's seed.

    The caller's random state is not changed.

    Args:
        config (Config): The run.
        task (Task, optional): The inputs and outputs of the network; :obj:`None` for few-shot
            images.
    """
    with torch.random.fork_rng(devices=[]), memory_errors(network_too_large(config)):
        torch.manual_seed(config.seed)
        if is_given(config.model.name):
            return given_module(config.model.name, task, config.model.settings)
        return new_model(config.model.name, task, **model_arguments(config, task))


def model_arguments(config: Config, task: Task | None) -> dict[str, Any]:
    r"""Returns the arguments of :func:`fognn.create_model` for a run. Few-shot networks get their
    number of classes from the data."""
    own = {"n_way": config.data.n_way} if task is None else {}
    return own | config.model.settings


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
    r"""Reads a checkpoint, with :func:`fognn.utils.torch_files.load_torch`, which runs no code.

    Raises:
        ValueError: If the file does not exist.
        FileError: If the file is damaged, or is not a checkpoint of this version.
    """
    try:
        check_sums(path)
        content = load_torch(path)
    except FileNotFoundError as error:
        if (Path(path).parent / "metrics.csv").exists():
            raise FileError(f"{path} does not exist: {_remedy(Path(path))}") from error
        raise ValueError(f"{path} does not exist: the run has not finished an epoch yet") from error
    except DAMAGE as error:
        raise FileError(
            f"{path} is damaged ({type(error).__name__}): {_remedy(Path(path))}"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(f"{path} is not a checkpoint of this version of fognn")
    return content


@contextmanager
def content_of(path: Path) -> Iterator[None]:
    r"""Raises a :class:`FileError` or :class:`ValueError` that names a checkpoint if the block
    cannot use its content, such as weights that are not those of its network.

    Args:
        path (Path): The checkpoint.
    """
    try:
        yield
    except FognnError:
        raise
    except ValueError as error:  # a setting of the network, in a clear sentence
        raise ValueError(f"{path}: {error}") from error
    except DAMAGE as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reason = reason if len(reason) <= 300 else f"{reason[:300]} ..."
        raise FileError(
            f"{path} is not a whole checkpoint of its run ({reason}): {_remedy(Path(path))}"
        ) from error


def _remedy(path: Path) -> str:
    r"""Returns what to do about a checkpoint that is lost."""
    run = path.parent
    if (run / "result.json").exists():
        # Not only the same command: a run of a comparison is in its ledger, so that it is skipped.
        whole = run.parent if run.name.startswith("fold-") else run
        files = [run / "result.json", run / "last.ckpt"]
        if whole != run and (whole / "config.yaml").exists():
            files.append(whole / "result.json")
        else:
            whole = run
        return (
            f"remove {', '.join(map(str, files))} and train the run again (fognn train --config "
            f"{whole / 'config.yaml'} -o {whole} --no-ledger)"
        )
    if path.name == "last.ckpt":
        return "remove it to train from the beginning" if path.exists() else "train the run again"
    if (path.parent / "config.yaml").exists():
        return "resume the run, which writes it again if it can"
    return "copy it again from its run folder"


def restore_best(
    path: Path, config: Config, task: Task | None, saved: dict[str, Any], done: int, best: int
) -> bool:
    r"""Checks the checkpoint of the best epoch of a run that is resumed. If it is missing or
    damaged, writes it again from that of the last epoch.

    Args:
        path (Path): The checkpoint of the best epoch.
        config (Config): The run.
        task (Task, optional): The inputs and outputs of the network; :obj:`None` for few-shot
            images.
        saved (dict): The checkpoint of the last epoch.
        done (int): Number of epochs after which it was saved, or 0 if that was within an epoch.
        best (int): The best epoch, from 1.

    Returns:
        Whether it was written.

    Raises:
        FileError: If the best epoch is an earlier one, so that its weights are lost.
    """
    try:
        # After a kill between the two files it is one epoch ahead, and is written again.
        if read_checkpoint(path).get("epoch") in (best, len(saved["state"]["history"]) + 1):
            return False
        state = "of another epoch"
    except FileError:
        state = "damaged" if path.exists() else "missing"
    except ValueError:
        state = "missing"
    if done != best:
        raise FileError(
            f"{path} is {state}, and the weights of the best epoch, {best}, are in no other file: "
            f"remove {path.with_name('last.ckpt')} to train the run from the beginning"
        )
    write_checkpoint(path, config, task, {"model": saved["model"], "epoch": best})
    return True


def rebuild(content: dict[str, Any]) -> tuple[Module, Config, Task | None]:
    r"""Returns the trained network of a checkpoint, in evaluation mode, its configuration and its
    task.

    Args:
        content (dict): The result of :func:`read_checkpoint`.
    """
    config = Config.from_dict(content["config"], "checkpoint")
    task = None if content["task"] is None else Task(**content["task"])
    model = untrained_model(config, task)
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


def load_run(run: str | Path, checkpoint: str | None = None) -> tuple[Module, Config, Task | None]:
    r"""Loads the network like :func:`load`, and its configuration and task.

    Args:
        run (str): A run folder, a checkpoint in one, or the name of kept weights.
        checkpoint (str, optional): As in :func:`load`. (default: :obj:`None`)
    """
    kept = kept_file(run)
    if kept is None:
        path = checkpoint_file(run, checkpoint)
        content = read_checkpoint(path)
        with content_of(path):
            return rebuild(content)
    weights = read_weights(kept)
    epoch = "best" if weights.task is None else "last"
    if checkpoint not in (None, epoch):
        raise ValueError(
            f"load: checkpoint must be {epoch!r} for these kept weights, which are those of the "
            f"{epoch} epoch, got {checkpoint!r}"
        )
    with whole_network(kept):
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
