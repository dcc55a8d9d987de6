r"""Training of one run: configuration, loop (on Lightning's Fabric), run folder, result."""

from typing import TYPE_CHECKING

from fognn.utils.errors import Stopped, TrainingError
from fognn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from fognn.training.checkpoint import load
    from fognn.training.config import (
        Config,
        DataConfig,
        MachineConfig,
        ModelConfig,
        TrainingConfig,
    )
    from fognn.training.evaluation import evaluate
    from fognn.training.few_shot_prediction import FewShotPrediction, predict_images
    from fognn.training.hub_export import export
    from fognn.training.prediction import predict
    from fognn.training.result import Result
    from fognn.training.run import fit

__all__ = [
    "Config",
    "DataConfig",
    "FewShotPrediction",
    "MachineConfig",
    "ModelConfig",
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
        "evaluation": ("evaluate",),
        "few_shot_prediction": ("FewShotPrediction", "predict_images"),
        "hub_export": ("export",),
        "checkpoint": ("load",),
        "prediction": ("predict",),
        "result": ("Result",),
        "run": ("fit",),
    },
)
