r"""The loss and the metrics, for one rank or several."""

import warnings

import torch
import torch.nn.functional as F
from lightning.fabric import Fabric
from torch import Tensor
from torchmetrics import MeanAbsoluteError, Metric
from torchmetrics.classification import BinaryF1Score, MulticlassAccuracy, MulticlassRecall

from fognn.training.config import TrainingConfig

__all__ = ["HIGHER_IS_BETTER", "Meter", "loss_of"]

HIGHER_IS_BETTER = {"mae": False, "accuracy": True, "balanced_accuracy": True, "f1": True}


def loss_of(name: str, prediction: Tensor, target: Tensor, fabric: Fabric | None = None) -> Tensor:
    r"""Returns the loss of a batch that is divided over the ranks.

    Each rank gets its part of the loss, times the number of ranks. The mean over ranks, which DDP
    takes of the gradients, is then the loss of the whole batch, even if the ranks have different
    numbers of nodes.

    Args:
        name (str): ``"l1"``, ``"cross_entropy"`` or ``"balanced_cross_entropy"``.
        prediction (torch.Tensor): ``[N, classes]``, or ``[N, values]``.
        target (torch.Tensor): Classes ``[N]``, or values ``[N]`` or ``[N, values]``.
        fabric (Fabric, optional): The ranks; :obj:`None` if the batch is not divided.
            (default: :obj:`None`)
    """
    ranks = 1 if fabric is None else fabric.world_size
    if name == "l1":
        part = (prediction - target.view_as(prediction)).abs().sum()
        total = part.new_tensor(float(prediction.numel()))
    elif name == "cross_entropy":
        part = F.cross_entropy(prediction, target, reduction="sum")
        total = part.new_tensor(float(target.numel()))
    else:
        counts = torch.bincount(target, minlength=prediction.size(1)).to(torch.float64)
        counts = _sum(counts, fabric)
        nodes = counts.sum()
        weight = ((nodes - counts) / nodes * (counts > 0)).to(prediction.dtype)
        part = F.cross_entropy(prediction, target, weight, reduction="sum")
        # In a batch of a single class all weights are 0; its loss is 0, not NaN.
        least = torch.finfo(prediction.dtype).tiny
        return part * ranks / (counts.to(weight) * weight).sum().clamp_min(least)
    return part * ranks / _sum(total, fabric)


def _sum(value: Tensor, fabric: Fabric | None) -> Tensor:
    if fabric is None or fabric.world_size == 1:
        return value
    return fabric.all_reduce(value, reduce_op="sum")  # type: ignore[return-value]


class Meter:
    r"""Accumulates the loss and the metric of an epoch.

    The metric over items is that of all items together; the metric over batches is the mean of the
    metrics of the batches, as the public benchmark reports it. With several ranks, each rank's part
    of a batch counts as a batch.

    Args:
        training (TrainingConfig): The metric.
        classes (int): Number of classes, or of values.
        fabric (Fabric): The device and the ranks.
    """

    def __init__(self, training: TrainingConfig, classes: int, fabric: Fabric) -> None:
        self.fabric = fabric
        self.is_value = training.metric == "mae"
        self.scale = 100.0 if "accuracy" in training.metric else 1.0
        self.metric = _metric(training.metric, classes).to(fabric.device)
        self.metric.persistent(True)
        # The sum of the losses, the sum of the batches' metrics, the number of batches.
        self.sums = torch.zeros(3, dtype=torch.float64, device=fabric.device)

    def update(self, prediction: Tensor, target: Tensor, loss: Tensor) -> None:
        r"""Adds a batch."""
        answer = prediction.detach()
        answer = answer.float() if self.is_value else answer.argmax(dim=1)
        value = self.metric(answer, target.view_as(answer))
        self.sums += torch.stack([loss.detach(), value, value.new_ones(())]).to(self.sums)

    def compute(self) -> dict[str, float]:
        r"""Returns the ``"loss"``, and the metric over ``"batches"`` and over ``"items"``, of all
        ranks."""
        loss, value, batches = _sum(self.sums, self.fabric).tolist()
        with warnings.catch_warnings():
            # A rank may have had no batch, of which torchmetrics warns; the others have some.
            warnings.filterwarnings("ignore", message="The ``compute`` method")
            items = float(self.metric.compute())
        return {
            "loss": loss / batches,
            "batches": self.scale * value / batches,
            "items": self.scale * items,
        }

    def state_dict(self) -> dict[str, Tensor]:
        r"""Returns the state, to resume within an epoch."""
        return {"sums": self.sums, **self.metric.state_dict()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        r"""Restores the state of :meth:`state_dict`."""
        state = dict(state)
        self.sums.copy_(state.pop("sums"))
        self.metric.load_state_dict(state)


def _metric(name: str, classes: int) -> Metric:
    if name == "mae":
        return MeanAbsoluteError()
    if name == "f1":
        return BinaryF1Score(validate_args=False)
    if name == "accuracy":
        return MulticlassAccuracy(classes, average="micro", validate_args=False)
    return MulticlassRecall(classes, average="macro", validate_args=False)
