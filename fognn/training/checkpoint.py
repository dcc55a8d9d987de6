r"""Checkpoints: written atomically, and networks that are built from them."""

import zipfile
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.nn import Module

from fognn.data.opening import is_python_name
from fognn.models import Task
from fognn.models.registry import new_model
from fognn.models.weights import PretrainedNet, kept_file, loading_errors, read_weights
from fognn.training.config import Config
from fognn.training.data import user_data_name
from fognn.training.run_folder import Result
from fognn.training.user_module import untrained_module
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import user_path, write_whole

FORMAT = 1


def untrained_model(config: Config, task: Task | None, module: Module | None = None) -> Module:
    r"""Returns the network of a run, or a copy of the user's, initialised with the run's seed."""
    name = config.model.name
    if module is None and is_python_name(name):
        raise ValueError(
            f"network {name!r} was given as a Python object: call fognn.train with the same object "
            "to resume its run, or fognn.load(run, module=network) to load its weights"
        )
    if module is not None and not is_python_name(name):
        raise ValueError(f"module must be None for the network {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        if module is not None:
            return untrained_module(module, task, config.model.settings)
        return new_model(name, task, **_arguments(config, task))


def _arguments(config: Config, task: Task | None) -> dict[str, Any]:
    # Few-shot networks get their number of classes from the data.
    classes = {"n_way": config.data.n_way} if task is None else {}
    return classes | config.model.settings


def write_checkpoint(path: Path, config: Config, task: Task | None, state: dict[str, Any]) -> None:
    r"""Writes a checkpoint: what rebuilds the network, and its state, such as ``"model"``."""
    whole = {"format": FORMAT, "config": config.to_dict(), "task": task and asdict(task), **state}
    with write_whole(path) as temporary:
        torch.save(whole, temporary)


def read_checkpoint(path: Path) -> dict[str, Any]:
    r"""Reads a checkpoint; no code that it names is run."""
    if not Path(path).is_file():
        raise ValueError(f"{path} does not exist: the run has not finished an epoch yet")
    try:
        with zipfile.ZipFile(path) as parts:  # torch does not compare the checksums
            if parts.testzip() is not None:
                raise zipfile.BadZipFile("wrong checksum")
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']}")
    except Exception as error:  # whatever torch and pickle raise for broken bytes
        raise FileError(
            f"{path} is truncated or corrupt, or of another version of fognn "
            f"({type(error).__name__}): remove the run and train it again"
        ) from error
    return content


def rebuild(
    content: dict[str, Any], module: Module | None = None
) -> tuple[Module, Config, Task | None]:
    r"""Returns the trained network of a checkpoint, its configuration and its task."""
    config = Config.from_dict(content["config"], "checkpoint")
    task = None if content["task"] is None else Task(**content["task"])
    model = untrained_model(config, task, module)
    if config.precision == "64-true":
        model.double()
    model.load_state_dict(content["model"])
    return model.eval(), config, task


def load(
    run: str | Path | Result, checkpoint: str | None = None, module: Module | None = None
) -> Module:
    r"""Loads the trained network of a run, in evaluation mode.

    Args:
        run (str or Result): What :func:`fognn.train` returned, a run folder, a checkpoint in one, a
            folder of :func:`fognn.training.export`, or the name of kept weights, such as
            ``"zinc/gcn+fog"``; a folder of that name comes first. The weights are searched as in
            :func:`fognn.create_model`.
        checkpoint (str, optional): ``"best"`` for the epoch with the best validation metric, or
            ``"last"``. (default: :obj:`"best"`; for kept weights the one that is kept)
        module (torch.nn.Module, optional): The network that was given to :func:`fognn.train`, to
            load its weights.
    """
    run = run.folder if isinstance(run, Result) else run
    if module is None and (user_path(run) / "config.json").is_file():
        return PretrainedNet.from_pretrained(run)
    net: Any = load_run(run, checkpoint, module)[0]
    if module is None:
        return net
    module.load_state_dict(net.module.state_dict())
    return module.eval()


def load_run(
    run: str | Path | Result, checkpoint: str | None = None, module: Module | None = None
) -> tuple[Module, Config, Task | None]:
    r"""Loads the network like :func:`load`, and its configuration and task."""
    run = run.folder if isinstance(run, Result) else run
    kept, path = kept_file(run), user_path(run)
    if kept is None:
        if not path.is_file():
            checks.one_of("load", "checkpoint", checkpoint or "best", ("best", "last"))
            if not (path / "config.yaml").is_file():
                raise ValueError(f"run must be a run folder or a checkpoint, got {str(run)!r}")
            if (path / "fold-1").is_dir():
                raise ValueError(f"run must name one fold like {run}/fold-1, got {str(run)!r}")
            path /= f"{checkpoint or 'best'}.ckpt"
        return rebuild(read_checkpoint(path), module)
    weights = read_weights(kept)
    epoch = "best" if weights.task is None else "last"
    checks.one_of("load", "checkpoint", checkpoint or epoch, (epoch,))
    content = {"config": weights.config, "task": weights.task, "model": weights.tensors}
    with loading_errors(kept):
        return rebuild(content, module)


def export(run: str | Path, folder: str | Path, checkpoint: str | None = None) -> Path:
    r"""Writes the network of a run as a Hugging Face folder: ``config.json``,
    ``model.safetensors`` (float32) and a model card with the data and the score of the run.
    Nothing is uploaded. :class:`fognn.models.PretrainedNet` and :func:`load` read it.

    Args:
        run, checkpoint: As in :func:`fognn.load`.
        folder (str): The folder to write, new or empty. It is written whole or not at all.
    """
    folder = user_path(folder)
    if folder.is_file() or any(folder.glob("*")):
        raise ValueError(f"export: folder must be new or empty, got {str(folder)!r}")
    net, config, task = load_run(run, checkpoint)
    name = config.model.name
    exported = PretrainedNet(name, task, **_arguments(config, task))
    exported.module.load_state_dict(net.state_dict())
    data = user_data_name(config.data)  # without its folder, which is of no use to others
    text = f"Trained on `{data}`, with seed {config.seed}."
    if checkpoint in (None, "best") and (user_path(run) / "result.json").exists():
        result = Result.read(user_path(run))
        split = "val" if result.test is None else "test"
        score = result.metrics[f"{split}/{result.metric}"]
        text += f" {split.capitalize()} {result.metric.replace('_', ' ')}: {score:.4f}."
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".tmp-", dir=folder.parent) as temporary:
        whole = Path(temporary, folder.name)
        exported.save_pretrained(whole, f"{name} for {data}", text)
        if folder.exists():
            folder.rmdir()
        whole.rename(folder)
    return folder
