r"""One run: a task, the fit loop on Lightning's Fabric, its folder."""

from fognn.training.config import Config, DataConfig, MachineConfig, ModelConfig, TrainingConfig
from fognn.training.evaluation import evaluate
from fognn.training.export import export
from fognn.training.loading import load
from fognn.training.prediction import predict
from fognn.training.result import Result
from fognn.training.run import fit
from fognn.utils.errors import Stopped, TrainingError

__all__ = [
    "Config",
    "DataConfig",
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
]
