r"""The optimizer of a run and the schedule of its learning rate."""

import math
import warnings
from collections.abc import Iterable

from torch.nn import Parameter
from torch.optim import Adam, AdamW
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau, StepLR

from fognn.training.config import Config, TrainingConfig

__all__ = ["Schedule", "cosine_factor", "make_optimizer"]


def make_optimizer(config: Config, parameters: Iterable[Parameter]) -> Adam:
    r"""Returns the optimizer of a run, for the weights of its network."""
    training = config.training
    kind = AdamW if training.optimizer == "adamw" else Adam
    # A fused step divides by the scale of 16-mixed itself, after the clipping, which needs
    # gradients that are divided already.
    fused = training.clip is None or config.precision != "16-mixed"
    return kind(parameters, lr=training.lr, weight_decay=training.weight_decay, fused=fused)


def cosine_factor(training: TrainingConfig, steps: int, step: int) -> float:
    r"""Returns the factor of the highest learning rate in an optimizer step :math:`t`, from 0, of
    the schedule ``"cosine"``, for so many steps in an epoch.

    With :math:`w` steps of warm-up and :math:`T` steps in all, it is :math:`(t + 1) / w` for
    :math:`t < w`, and then half a cosine from 1 at :math:`t = w` to ``min_lr / lr`` at
    :math:`t = T`, the end of the last epoch.
    """
    warm, last = training.warmup * steps, training.epochs * steps
    if step < warm:
        return (step + 1) / warm
    lowest = training.min_lr / training.lr
    done = min(1.0, (step - warm) / (last - warm))
    return lowest + (1 - lowest) * (1 + math.cos(math.pi * done)) / 2


class Schedule:
    r"""The schedule of the learning rate of a run: torch's scheduler, called after each optimizer
    step (cosine) or after each epoch (plateau, step).

    The rate of a cosine depends only on the number of steps done, so that a run which is stopped
    and resumed within an epoch has the same rates.

    Args:
        training (TrainingConfig): The schedule.
        optimizer (Adam): The optimizer.
        steps (int): Number of optimizer steps in an epoch.
    """

    def __init__(self, training: TrainingConfig, optimizer: Adam, steps: int) -> None:
        self.training, self.optimizer, self.steps = training, optimizer, steps
        self.scheduler: LRScheduler | None = None
        if training.schedule == "plateau":
            self.scheduler = ReduceLROnPlateau(
                optimizer, factor=training.factor, patience=training.patience
            )
        elif training.schedule == "step":
            self.scheduler = StepLR(optimizer, training.step, training.factor)
        elif training.schedule == "cosine":
            self.scheduler = LambdaLR(
                optimizer, lambda step: cosine_factor(training, self.steps, step)
            )

    @property
    def rate(self) -> float:
        r"""The learning rate of the next step."""
        return float(self.optimizer.param_groups[0]["lr"])

    def first_rate(self, epoch: int) -> float:
        r"""Returns the learning rate of the first step of the current epoch, from 0."""
        if self.training.schedule != "cosine":
            return self.rate  # that of the whole epoch
        return self.training.lr * cosine_factor(self.training, self.steps, epoch * self.steps)

    def end_step(self) -> None:
        r"""Sets the learning rate after an optimizer step."""
        if isinstance(self.scheduler, LambdaLR):
            self._advance(self.scheduler)

    def end_epoch(self, loss: float) -> None:
        r"""Sets the learning rate after an epoch with a validation loss."""
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(loss)
        elif isinstance(self.scheduler, StepLR):
            self._advance(self.scheduler)

    @staticmethod
    def _advance(scheduler: LRScheduler) -> None:
        with warnings.catch_warnings():
            # A run resumed after the last batch of an epoch has made no optimizer step yet, and
            # with 16-mixed a step whose gradients overflow is skipped.
            warnings.filterwarnings("ignore", message="Detected call of .lr_scheduler.step")
            scheduler.step()

    def state_dict(self) -> dict | None:
        r"""Returns the state of torch's scheduler, for a checkpoint."""
        return None if self.scheduler is None else self.scheduler.state_dict()

    def load_state_dict(self, state: dict | None) -> None:
        r"""Restores the state of :meth:`state_dict`."""
        if self.scheduler is not None and state is not None:
            self.scheduler.load_state_dict(state)
