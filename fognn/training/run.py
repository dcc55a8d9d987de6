r"""Training of a run, over one or all folds."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch.nn import Module

from fognn.data import UserData
from fognn.data.opening import is_python_name
from fognn.training.config import Config
from fognn.training.data import data_fingerprint, folds_of
from fognn.training.environment import device_of
from fognn.training.folds import fit_folds
from fognn.training.loggers import LOGGERS
from fognn.training.loop import fit_one
from fognn.training.result import Result
from fognn.training.run_folder import finished
from fognn.training.user_data import check_user_data, is_user_data, open_data
from fognn.training.user_module import module_name
from fognn.utils import checks
from fognn.utils.files import user_path

__all__ = ["fit"]


def fit(
    config: Config,
    folder: str | Path,
    *,
    data: UserData | None = None,
    module: Module | None = None,
    command: str | None = None,
    quiet: bool = False,
    logger: str | None = None,
    again: bool = False,
) -> Result:
    r"""Trains a run, resumes an interrupted one, or reads a finished one. A run with fewer epochs
    and otherwise the same settings is resumed, too: the result is that of a run which had the new
    number of epochs from the beginning.

    Args:
        config (Config): The run.
        folder (str): The run folder. It must be new, empty or the folder of this run.
        data (UserData, optional): The user's data, if they are open already. (default: those that
            ``config.data`` names)
        module (torch.nn.Module, optional): The user's network, of which a copy is trained.
            (default: the network that ``config.model`` names)
        command (str, optional): The command that repeats the run, for messages and
            ``result.json``. (default: ``fognn train --config FOLDER/config.yaml -o FOLDER``)
        quiet (bool, optional): If set to :obj:`True`, shows no progress. (default: :obj:`False`)
        logger (str, optional): ``"tensorboard"``, ``"mlflow"`` or ``"wandb"``, in addition to
            ``metrics.csv``. (default: :obj:`None`)
        again (bool, optional): If set to :obj:`True`, removes what the folder has of this run, and
            trains it anew. (default: :obj:`False`)

    Returns:
        The result.

    Raises:
        ValueError: If a setting is invalid, or the folder is not empty and not of this run.
        TrainingError: If the loss is not finite, a rank ends, or another process uses the folder.
        Stopped: If the run was interrupted (Ctrl-C or SIGTERM); its state is saved.
    """
    folder = user_path(folder)
    if module is not None:
        keep = bool(config.model.settings.get("keep_weights"))
        name = module_name(module, keep, folder_named=True)
        config = config.with_values({"model.name": name})
    if command is None:
        command = f"fognn train --config {folder / 'config.yaml'} -o {folder}"
        if is_python_name(config.data.name) or is_python_name(config.model.name):
            command = f"fognn.train(data, model, seed={config.seed}, ...), with the same objects"
    if data is not None and is_python_name(data.name):
        config = config.with_values({"data.name": data.name})
    done = (folder / "result.json").exists() and not again
    there = data is not None or Path(config.data.name).exists()
    if is_user_data(config.data) and (there or not done):
        data = data or open_data(config.data)
    if done:
        _check_same_data(folder, config, data)
    else:  # raises before the folder is created
        device_of(config.machine.device)
        if data is not None:
            check_user_data(config, data)
        if logger is not None:
            checks.one_of("train", "logger", logger, LOGGERS)
            if find_spec(logger) is None:
                raise ImportError(f"logger {logger!r} is not installed: pip install {logger}")
    rest: dict[str, Any] = {
        **{"data": data, "module": module, "command": command},
        **{"quiet": quiet, "logger": logger, "again": again},
    }
    if folds_of(config.data, data):
        return fit_folds(config, folder, fit, **rest)
    return fit_one(config, folder, **rest)


def _check_same_data(folder: Path, config: Config, data: UserData | None) -> None:
    r"""Raises if a finished run has the settings of this one, but was trained on other data."""
    if data is None or finished(folder, config) is None:
        return
    if Result.read(folder).fingerprint not in ("", data_fingerprint(config, data)):
        raise ValueError(
            f"data {config.data.name!r} have changed since the run in {folder} was finished: name "
            "another folder, or train it anew (--again, again=True)"
        )
