r"""Lightning's loggers, in addition to ``metrics.csv``."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fognn.training.config import Config
from fognn.utils import checks

__all__ = ["LOGGERS", "check_logger", "make_logger"]

LOGGERS = ("tensorboard", "mlflow", "wandb")


def check_logger(name: str) -> None:
    r"""Raises if a logger is unknown or not installed."""
    checks.one_of("train", "logger", name, LOGGERS)
    if find_spec(name) is None:
        raise ImportError(f"logger {name!r} is not installed: pip install {name}")


def make_logger(name: str, folder: Path, config: Config) -> Any:
    r"""Returns a logger that writes into the run folder, unless its own environment variables name
    another place.

    Args:
        name (str): One of :obj:`LOGGERS`.
        folder (Path): The run folder.
        config (Config): The run, logged as hyperparameters.
    """
    check_logger(name)
    logger: Any
    if name == "tensorboard":
        from lightning.fabric.loggers.tensorboard import TensorBoardLogger

        logger = TensorBoardLogger(folder, name="tensorboard", version="")
    elif name == "mlflow":
        from lightning.pytorch.loggers import MLFlowLogger

        logger = MLFlowLogger("fognn", run_name=folder.name, save_dir=str(folder / "mlruns"))
    else:
        from lightning.pytorch.loggers import WandbLogger

        logger = WandbLogger(name=folder.name, save_dir=folder, project="fognn")
    if name != "tensorboard":
        # TensorBoard would create a separate run for the hyperparameters.
        logger.log_hyperparams(config.to_dict())
    return logger
