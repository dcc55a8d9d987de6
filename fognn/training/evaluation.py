r"""Evaluation of a network on a split."""

import statistics
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.nn import Module

from fognn.ops import adjacency
from fognn.training.checkpoint import load_run
from fognn.training.config import Config, TrainingConfig
from fognn.training.data import open_split, queries_of
from fognn.training.fabric import make_fabric, threads_of
from fognn.training.objective import Meter, loss_of, std_of
from fognn.utils.files import user_path

__all__ = ["evaluate", "evaluate_model", "forward_batch"]


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
    model: Module,
    loader: Iterable[Any],
    training: TrainingConfig,
    classes: int,
    fabric: Fabric,
    std: Tensor | None = None,
    queries: int | None = None,
) -> dict[str, float]:
    r"""Returns the ``"loss"`` of a split, and its metric over ``"batches"`` and over ``"items"``;
    for few-shot images also the half-width of the ``"interval"``, see
    :class:`~fognn.training.objective.Meter`.

    Ranks evaluate whole batches in turn, so that the average over batches does not depend on the
    number of ranks.

    Args:
        model (torch.nn.Module): The network.
        loader (iterable): The batches of the split.
        training (TrainingConfig): The loss and the metric.
        classes (int): Number of classes, or of values.
        fabric (Fabric): The devices and ranks.
        std (torch.Tensor, optional): As in :func:`~fognn.training.objective.loss_of`.
            (default: :obj:`None`)
        queries (int, optional): The number of queries of an episode. (default: :obj:`None`)
    """
    meter = Meter(training, classes, fabric, queries)
    model.eval()
    with torch.no_grad():
        for batch in islice(loader, fabric.global_rank, None, fabric.world_size):
            prediction, target = forward_batch(model, fabric.to_device(batch))
            loss = loss_of(training.loss, prediction, target, std=std)
            meter.update(prediction, target, loss)
    return meter.compute()


def evaluate(
    run: str | Path,
    split: str = "test",
    checkpoint: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    data: str | Path | None = None,
    batch_size: int | None = None,
) -> dict[str, float]:
    r"""Evaluates a trained run on one of its splits.

    Args:
        run (str): A run folder, a checkpoint in one, or the name of kept weights, such as
            ``"zinc/gcn+fog"``, see :func:`fognn.load`.
        split (str, optional): ``"train"``, ``"val"`` or ``"test"``. (default: :obj:`"test"`)
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`;
            for kept weights the one that is kept, see :func:`fognn.load`)
        device (str, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`"auto"`)
        threads (int, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`None`)
        data (str, optional): The folder with the files of the datasets, if it is not that of the
            training. (default: :obj:`None`)
        batch_size (int, optional): Number of graphs, or of nodes with sampled neighbours, in a
            batch. The average over batches depends on it. (default: that of the training)

    Returns:
        The loss, and the metric over batches and over items, with the names of the columns of
        ``metrics.csv``; for few-shot images also the half-width of the 95 % interval over
        episodes, as ``accuracy_interval``. For a run over folds, the mean over folds, each at its
        own checkpoint.
    """
    folds = sorted(user_path(run).glob("fold-*/config.yaml"))
    if folds:
        if not (user_path(run) / "result.json").is_file():
            raise ValueError(
                f"run must have finished all its folds, or name one of them, such as {run}/fold-1, "
                f"got {str(run)!r}"
            )
        each = [
            evaluate(p.parent, split, checkpoint, device, threads, data, batch_size) for p in folds
        ]
        return {name: statistics.fmean(score[name] for score in each) for name in each[0]}
    net, config, task = load_run(run, checkpoint)
    config = _here(config, device, threads, data, batch_size)
    with threads_of(config.machine):
        fabric = make_fabric(config)
        classes = task.out_channels if task is not None else config.data.n_way
        loader = open_split(config, split)
        model, std = fabric.setup(net), std_of(task)
        queries = queries_of(config.data)
        scores = evaluate_model(model, loader, config.training, classes, fabric, std, queries)
    metric = config.training.metric
    return {name if name == "loss" else f"{metric}_{name}": scores[name] for name in scores}


def _here(
    config: Config,
    device: str,
    threads: int | None,
    data: str | Path | None,
    batch_size: int | None,
) -> Config:
    r"""Returns the configuration for one process of this machine."""
    here = {"device": device, "threads": threads, "ranks": 1, "compile": False}
    changes: dict[str, Any] = {f"machine.{name}": value for name, value in here.items()}
    if data is not None:
        changes["data.folder"] = str(data)
    if batch_size is not None:
        changes["training.batch_size"] = batch_size
    return config.with_values(changes)
