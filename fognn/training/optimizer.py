r"""The optimizer of a run and the schedule of its learning rate."""

import math
from collections.abc import Iterable
from typing import Any

from torch.nn import Parameter
from torch.optim import Adam, AdamW
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau, StepLR

from fognn.training.config import Config, TrainingConfig


def make_optimizer(config: Config, parameters: Iterable[Parameter]) -> Adam:
    r"""Returns the optimizer of a run, for the weights of its network."""
    training = config.training
    kind = AdamW if training.optimizer == "adamw" else Adam
    # A fused step divides by the scale of 16-mixed itself, after the clipping, which needs
    # gradients that are divided already.
    fused = training.clip is None or config.precision != "16-mixed"
    return kind(parameters, lr=training.lr, weight_decay=training.weight_decay, fused=fused)


def cosine_factor(training: TrainingConfig, steps: int, step: int) -> float:
    r"""Returns the factor of the learning rate in an optimizer step, from 0, for so many steps in
    an epoch: a line up to 1, then half a cosine to ``min_lr / lr`` at the end of the last epoch."""
    warm, last = training.warmup * steps, training.epochs * steps
    if step < warm:
        return (step + 1) / warm
    lowest = training.min_lr / training.lr
    done = min(1.0, (step - warm) / (last - warm))
    return lowest + (1 - lowest) * (1 + math.cos(math.pi * done)) / 2


def make_schedule(training: TrainingConfig, optimizer: Adam, steps: int) -> Any:
    r"""Returns torch's scheduler: of a cosine for each of so many optimizer steps in an epoch,
    otherwise for each epoch."""
    if training.schedule == "plateau":
        return ReduceLROnPlateau(optimizer, factor=training.factor, patience=training.patience)
    if training.schedule == "step":
        return StepLR(optimizer, training.step, training.factor)
    if training.schedule == "cosine":
        return LambdaLR(optimizer, lambda step: cosine_factor(training, steps, step))
    return LambdaLR(optimizer, lambda epoch: 1.0)
