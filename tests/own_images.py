"""Folders of images as a user has them, and an untrained few-shot network to classify them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fognn.paper import protocol
from fognn.training.checkpoint import untrained_model, write_checkpoint

COLOURS = {"blue": (20, 40, 220), "green": (30, 200, 60), "red": (220, 30, 20)}


def write_image(path: Path, seed: int = 0, size: tuple[int, int] = (40, 30), **more: Any) -> Path:
    """An image of random squares in one of three colours."""
    random = np.random.default_rng(seed)
    squares = random.integers(0, 128, (4, 4, 3)) + np.array([*COLOURS.values()][seed % 3]) // 2
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(squares.astype(np.uint8)).resize(size, Image.Resampling.NEAREST)
    image.save(path, **more)
    return path


def write_support(folder: Path, classes: Mapping[str, int]) -> Path:
    """A folder with so many images of each class."""
    for number, (name, images) in enumerate(classes.items()):
        for image in range(images):
            write_image(folder / name / f"{image}.png", 3 * image + number)
    return folder


def untrained_few_shot(path: Path, data: str = "cifar-fs", **values: Any) -> Path:
    """A checkpoint of a small network as it was drawn, whose answers differ between images."""
    usual = {"model.embedding": 8, "machine.threads": 1}
    own = {name.replace("__", "."): value for name, value in values.items()}
    config = protocol(data, "gnn+fog", 0, usual | own)
    net = untrained_model(config, None)
    for name, tensor in net.state_dict().items():
        if name.endswith("last.lin_rel.weight") or name.endswith("last.lin_root.weight"):
            tensor *= 50
    if config.precision == "64-true":
        net.double()
    write_checkpoint(path, config, None, {"model": net.state_dict()})
    return path
