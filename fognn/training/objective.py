r"""A network on a batch, the loss and the metrics, for one rank or several."""

import math
import warnings
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor
from torch.nn import Module
from torchmetrics import MeanAbsoluteError, MeanSquaredError, Metric
from torchmetrics.classification import BinaryF1Score, MulticlassAccuracy, MulticlassRecall
from torchmetrics.functional.classification import binary_auroc, binary_average_precision
from torchmetrics.utilities import dim_zero_cat

from fognn.ops import adjacency
from fognn.training.config import RANKING, TrainingConfig
from fognn.training.data import RunData

LOWER_IS_BETTER = ("mae", "rmse")


def forward_batch(model: Module, batch: Any) -> tuple[Tensor, Tensor]:
    r"""Runs a network on a batch; returns its predictions and the targets."""
    if hasattr(batch, "support"):
        out = model(batch.support, batch.support_labels, batch.query)
        return out.flatten(0, 1), batch.query_labels.flatten()
    edge_attr = batch.edge_attr if "edge_attr" in batch else None
    # Plain tensors, because torch.compile would retrace PyG's EdgeIndex for each batch.
    edges = adjacency(batch.edge_index, batch.num_nodes)
    walks = {"rwse": batch.rwse} if "rwse" in batch else {}
    out = model(batch.x, edges, edge_attr, batch.batch, batch.num_graphs, **walks)
    # One graph: the nodes of a split.
    return (out[batch.mask], batch.y[batch.mask]) if "mask" in batch else (out, batch.y)


def evaluate_model(
    model: Module, loader: Iterable[Any], data: RunData, fabric: Fabric
) -> dict[str, float]:
    r"""Returns the scores of a split, see :meth:`Meter.compute`. Ranks evaluate whole batches, so
    that the average over batches does not depend on their number."""
    training = data.run.training
    meter = Meter(training, data.classes, fabric, data.queries)
    for buffer in model.buffers() if fabric.world_size > 1 else ():
        torch.distributed.broadcast(buffer, 0)  # the first rank writes the checkpoints
    model.eval()
    with torch.no_grad():
        for batch in islice(loader, fabric.global_rank, None, fabric.world_size):
            prediction, target = forward_batch(model, fabric.to_device(batch))
            loss = loss_of(training.loss, prediction, target, std=data.std)
            meter.update(prediction, target, loss)
    return meter.compute()


def loss_of(
    name: str,
    prediction: Tensor,
    target: Tensor,
    fabric: Fabric | None = None,
    std: Tensor | None = None,
) -> Tensor:
    r"""Returns the loss of a batch, without missing targets (NaN). Each rank gets its part of the
    loss times the number of ranks, because DDP takes the mean of the gradients over ranks."""
    ranks = 1 if fabric is None else fabric.world_size
    if name in ("l1", "mse", "bce"):
        target = target.view_as(prediction).to(prediction.dtype)
        known = target.isfinite()
        if name == "bce":
            filled = target.masked_fill(~known, 0.0)
            each = F.binary_cross_entropy_with_logits(prediction, filled, reduction="none")
        else:
            each = prediction - target
            each = each if std is None else each / std.to(each)
            each = each.abs() if name == "l1" else each.square()
        part = each.masked_fill(~known, 0.0).sum()
        total = part.new_tensor(float(known.sum()))
    elif name == "cross_entropy":
        part = F.cross_entropy(prediction, target, reduction="sum")
        total = part.new_tensor(float(target.numel()))
    else:
        counts = _sum(target.bincount(minlength=prediction.size(1)).double(), fabric)
        nodes = counts.sum()
        weight = ((nodes - counts) / nodes * (counts > 0)).to(prediction.dtype)
        part = F.cross_entropy(prediction, target, weight, reduction="sum")
        # In a batch of a single class all weights are 0; its loss is 0, not NaN.
        least = torch.finfo(weight.dtype).tiny
        return part * ranks / (counts.to(weight) * weight).sum().clamp_min(least)
    return part * ranks / _sum(total, fabric).clamp_min(1.0)


def _sum(value: Tensor, fabric: Fabric | None) -> Tensor:
    if fabric is None or fabric.world_size == 1:
        return value
    return fabric.all_reduce(value, reduce_op="sum")  # type: ignore[return-value]


class Meter:
    r"""Accumulates the loss and the metric of an epoch, without missing targets (NaN).

    The metric over batches is the mean of the metrics of the batches (of each rank), as in the
    public benchmark, and for ROC-AUC and average precision that over all items. An episode of
    images is :obj:`queries` consecutive items."""

    def __init__(
        self, training: TrainingConfig, classes: int, fabric: Fabric, queries: int | None = None
    ) -> None:
        self.fabric, self.queries = fabric, queries
        self.kind = {"l1": "values", "mse": "values", "bce": "yes/no"}.get(training.loss, "classes")
        self.name, self.ranking = training.metric, training.metric in RANKING
        self.scale = 100.0 if "accuracy" in training.metric else 1.0
        answers = 2 if self.kind == "yes/no" else classes
        self.metric = _METRICS[training.metric](answers).to(fabric.device)
        doubles: dict[str, Any] = {"dtype": torch.float64, "device": fabric.device}
        self.sums = torch.zeros(3, **doubles)  # of losses, of the batches' metrics, of batches
        self.counts = torch.zeros((2, answers), **doubles)  # of each class as answer, as target
        self.episodes = torch.zeros(3, **doubles)  # sums of 1, of accuracies, of their squares

    def update(self, prediction: Tensor, target: Tensor, loss: Tensor) -> None:
        r"""Adds a batch."""
        answer, known = self._answers(prediction.detach(), target)
        value = loss.new_zeros(())
        if self.ranking:
            self.metric.update(answer, known)
        elif known.numel():
            value = self.metric(answer, known)
        self.sums += torch.stack([loss.detach(), value, value.new_ones(())]).to(self.sums)
        if self.kind != "values" and not self.ranking:
            size = self.counts.size(1)
            self.counts += torch.stack([part.bincount(minlength=size) for part in (answer, known)])
        if self.queries is not None:
            right = (prediction.argmax(dim=1) == target).view(-1, self.queries)
            each = right.double().mean(dim=1)
            self.episodes += torch.stack([torch.ones_like(each), each, each.square()]).sum(dim=1)

    def _answers(self, prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns the answers and targets that the metric compares."""
        if self.kind == "classes":
            if not self.ranking:
                return prediction.argmax(dim=1), target
            columns = F.one_hot(target, prediction.size(1)).float()
            first = 1 if prediction.size(1) == 2 else 0  # of two classes, one column says all
            return prediction.float().softmax(dim=1)[:, first:], columns[:, first:]
        target, prediction = target.view_as(prediction).float(), prediction.float()
        if self.ranking:
            return prediction, target
        known = target.isfinite()
        if self.kind == "yes/no":
            return (prediction[known] > 0).long(), target[known].long()
        return (prediction, target) if bool(known.all()) else (prediction[known], target[known])

    def compute(self) -> dict[str, float]:
        r"""Returns the ``"loss"`` and the metric over ``"batches"`` and ``"items"`` of all ranks;
        for images also the half-width of the 95 % ``"interval"`` over episodes; and as
        ``"majority"`` the metric again, if always the most frequent class would have it, too."""
        loss, value, batches = _sum(self.sums, self.fabric).tolist()
        with warnings.catch_warnings():
            # A rank may have had no batch, of which torchmetrics warns; the others have some.
            warnings.filterwarnings("ignore", message="The ``compute`` method")
            items = self.scale * float(self.metric.compute())
        batch = items if self.ranking else self.scale * value / batches
        scores = {"loss": loss / batches, "batches": batch, "items": items}
        if self.queries is not None:
            count, total, squares = _sum(self.episodes, self.fabric).tolist()
            variance = max(0.0, squares - total * total / count) / max(1.0, count - 1)
            scores["interval"] = 100 * 1.96 * math.sqrt(variance / count)
            return scores
        answers, targets = _sum(self.counts, self.fabric)
        constant = answers.count_nonzero() == 1 and answers.argmax() == targets.argmax()
        if constant or (self.name == "roc_auc" and abs(items - 0.5) < 1e-6):
            scores["majority"] = items
        return scores


class ColumnMean(Metric):
    r"""The mean of a binary metric over the columns that have both classes, as in the Open Graph
    Benchmark; NaN without such columns."""

    full_state_update = False
    prediction: list[Tensor]
    target: list[Tensor]

    def __init__(self, score: Callable[..., Tensor]) -> None:
        super().__init__()
        self.score = score
        self.add_state("prediction", default=[], dist_reduce_fx="cat")
        self.add_state("target", default=[], dist_reduce_fx="cat")

    def update(self, prediction: Tensor, target: Tensor) -> None:
        self.prediction.append(prediction)
        self.target.append(target)

    def compute(self) -> Tensor:
        predictions, targets = dim_zero_cat(self.prediction), dim_zero_cat(self.target)
        scores = []
        for prediction, target in zip(predictions.t(), targets.t(), strict=True):
            known = target.isfinite()
            if len(target[known].unique()) > 1:
                # Ranks, because torchmetrics takes the sigmoid, which makes large numbers equal.
                order = prediction[known].unique(return_inverse=True)[1].to(torch.float64)
                order /= max(1.0, float(order.max()))
                scores.append(self.score(order, target[known].long()))
        return torch.stack(scores).mean() if scores else predictions.new_tensor(math.nan)


# By the number of classes.
_METRICS: dict[str, Callable[[int], Metric]] = {
    "mae": lambda _: MeanAbsoluteError(),
    "rmse": lambda _: MeanSquaredError(squared=False),
    "roc_auc": lambda _: ColumnMean(binary_auroc),
    "average_precision": lambda _: ColumnMean(binary_average_precision),
    "f1": lambda _: BinaryF1Score(validate_args=False),
    "accuracy": lambda classes: MulticlassAccuracy(classes, average="micro", validate_args=False),
    "balanced_accuracy": lambda classes: MulticlassRecall(classes, validate_args=False),
}
