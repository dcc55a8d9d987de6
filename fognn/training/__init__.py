r"""Training of one run: configuration, loop (on Lightning's Fabric), run folder, result."""

from fognn.training.config import Config, DataConfig, MachineConfig, ModelConfig, TrainingConfig
from fognn.training.few_shot_prediction import predict_images
from fognn.training.networks import export, load
from fognn.training.prediction import Predictions, evaluate, predict
from fognn.training.run import fit
from fognn.training.run_folder import Result
from fognn.utils.errors import Stopped, TrainingError

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
