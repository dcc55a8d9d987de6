r"""Lightning's loggers, in addition to ``metrics.csv``."""

from pathlib import Path
from typing import Any

from fognn.training.config import Config

__all__ = ["LOGGERS", "make_logger"]

LOGGERS = ("tensorboard", "mlflow", "wandb")


def make_logger(name: str, folder: Path, config: Config) -> Any:
    r"""Returns a logger that writes into the run folder, unless its own environment variables name
    another place.

    Args:
        name (str): One of :obj:`LOGGERS`.
        folder (Path): The run folder.
        config (Config): The run, logged as hyperparameters.
    """
    logger: Any
    if name == "tensorboard":
        from lightning_fabric.loggers.tensorboard import TensorBoardLogger

        # TensorBoard would create a separate run for the hyperparameters.
        return TensorBoardLogger(folder, name="tensorboard", version="")
    if name == "mlflow":
        from lightning.pytorch.loggers import MLFlowLogger

        logger = MLFlowLogger("fognn", run_name=folder.name, save_dir=str(folder / "mlruns"))
    else:
        from lightning.pytorch.loggers import WandbLogger

        logger = WandbLogger(name=folder.name, save_dir=folder, project="fognn")
    logger.log_hyperparams(config.to_dict())
    return logger
