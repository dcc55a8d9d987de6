"""Folders of images as a user has them, and an untrained few-shot network to classify them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import BatchNorm1d, BatchNorm2d

from fognn.experiments import protocol
from fognn.training.networks import untrained_model, write_checkpoint

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
    """A checkpoint of an untrained small network, with norms that have seen images, so that its
    answers differ between images."""
    usual = {"model.embedding": 8, "machine.threads": 1}
    own = {name.replace("__", "."): value for name, value in values.items()}
    config = protocol(data, "gnn+fog", 0, usual | own)
    net: Any = untrained_model(config, None)
    size, channels = net.cnn.image_size, net.cnn.in_channels
    for module in net.modules():
        if isinstance(module, BatchNorm1d | BatchNorm2d):
            module.momentum = None  # the mean over all batches
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(3):  # only the norms learn from it
            images = torch.rand(8, net.n_way + 1, channels, 4, 4)
            images = images.repeat_interleave(size // 4, 3).repeat_interleave(size // 4, 4)
            net(images[:, 1:], torch.arange(net.n_way).expand(8, -1), images[:, 0])
    if config.precision == "64-true":
        net.double()
    write_checkpoint(path, config, None, {"model": net.state_dict()})
    return path
