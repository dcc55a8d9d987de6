r"""Loggers beside ``metrics.csv``, from Lightning."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fognn.training.config import Config
from fognn.utils import checks

__all__ = ["LOGGERS", "check_logger", "make_logger"]

LOGGERS = ("tensorboard", "mlflow", "wandb")


def check_logger(name: str) -> None:
    r"""Refuses a logger that is not known or not installed."""
    checks.one_of("train", "logger", name, LOGGERS)
    if find_spec(name) is None:
        raise ImportError(f"logger {name!r} is not installed: pip install {name}")


def make_logger(name: str, folder: Path, config: Config) -> Any:
    r"""A logger that writes into the run folder, or where its own settings (environment
    variables) say.

    Args:
        name: One of :obj:`LOGGERS`.
        folder: The run folder.
        config: Its values are logged as hyperparameters.
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
        # TensorBoard would make a run of its own for them.
        logger.log_hyperparams(config.to_dict())
    return logger
