r"""Training of one run: configuration, loop (on Lightning's Fabric), run folder, result."""

from typing import TYPE_CHECKING

from fognn.utils.errors import Stopped, TrainingError
from fognn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from fognn.training.checkpoint import export, load
    from fognn.training.config import (
        Config,
        DataConfig,
        MachineConfig,
        ModelConfig,
        TrainingConfig,
    )
    from fognn.training.few_shot_prediction import predict_images
    from fognn.training.prediction import Predictions, evaluate, predict
    from fognn.training.run import fit
    from fognn.training.run_folder import Result

__all__ = [
    "Config",
    "DataConfig",
    "MachineConfig",
    "ModelConfig",
    "Predictions",
    "Result",
    "Stopped",
    "TrainingConfig",
    "TrainingError",
    "evaluate",
    "export",
    "fit",
    "load",
    "predict",
    "predict_images",
]

__getattr__ = lazy_names(
    __name__,
    {
        "config": ("Config", "DataConfig", "MachineConfig", "ModelConfig", "TrainingConfig"),
        "checkpoint": ("export", "load"),
        "few_shot_prediction": ("predict_images",),
        "prediction": ("Predictions", "evaluate", "predict"),
        "run": ("fit",),
        "run_folder": ("Result",),
    },
)
