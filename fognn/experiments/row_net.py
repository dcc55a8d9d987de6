"""The network of a row of the paper."""

import dataclasses
from typing import Any

from torch.nn import Module

from fognn.experiments.rows import Row
from fognn.models import TASKS
from fognn.models.registry import has_fog, new_model

# The study of limitations uses the same network as ZINC; all its atoms have the same type.
_TASKS = {"ZINC-without-node-features": "zinc"}
# Image size, and number of channels.
IMAGES = {"miniImageNet": (84, 3), "CIFAR-FS": (32, 3), "Omniglot": (28, 1)}


def build(row: Row, **settings: Any) -> Module:
    r"""Builds the network of a row, with exactly the printed number of parameters.

    Args:
        row (Row): A row of :func:`fognn.experiments.rows`.
        **settings (optional): Settings to change, as in :func:`fognn.models.create_model`:
            ``norm="sym"`` gives the GCN of the paper's equation (the default for GCN+FOG),
            ``aggr="mean"`` its GraphSAGE, ``gate="after"`` its GatedGCN; ``benchmark=True`` gives
            the GraphSAGE of the public benchmark, whose figures the paper quotes.
    """
    task = None
    if not row.few_shot:
        task = TASKS[_TASKS.get(row.dataset, row.dataset.lower())]
        task = dataclasses.replace(task, encodings=row.values.get("data.rwse", 0))
    return new_model(name_of(row), task, **(model_settings(row) | settings))


def name_of(row: Row) -> str:
    r"""Returns the name of a row's network in :func:`fognn.list_models`."""
    return f"fewshot-{row.model}".lower() if row.few_shot else row.model.lower()


def model_settings(row: Row) -> dict[str, Any]:
    r"""Returns the settings of a row's network, as :func:`fognn.models.create_model` takes
    them."""
    if row.few_shot:
        # The images of the paper's rows have the size that the networks have by default.
        return {"layers": row.layers} | ({} if row.table else image_settings(row.dataset))
    own: dict[str, Any] = {
        "channels": row.channels[0],
        "layers": row.layers,
        "dropout": row.dropout,
    }
    if row.h1 is not None:
        own |= {"h1": row.h1, "h2": row.h2, "fog_channels": row.p}
    if has_fog(name_of(row)):
        own["fog_act_first"] = True
    if row.norm is not None:
        own["norm"] = row.norm
    if row.heads is not None:
        own["heads"] = row.heads[0]
    return own | dict(row.settings)


def image_settings(dataset: str) -> dict[str, Any]:
    r"""Returns the size and the channels of a dataset's images, as settings of a network.

    Args:
        dataset (str): The dataset; its name may end in the numbers of classes and of shots.
    """
    size, channels = IMAGES[next(name for name in IMAGES if dataset.startswith(name))]
    return {"image_size": size, "image_channels": channels}
