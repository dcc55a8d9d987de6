"""Images for few-shot learning, in a file as CIFAR-FS has it."""

from pathlib import Path
from typing import Any

import numpy as np

from fognn.experiments import protocol
from fognn.training import Config

CLASSES = {"train": 64, "val": 16, "test": 20}


def write_cifar(folder: Path, images: int = 2) -> Path:
    """Random images, another number in each split; returns the data folder."""
    generator = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for split, classes in CLASSES.items():
        arrays[f"x_{split}"] = generator.integers(0, 256, (classes, images, 32, 32, 3), np.uint8)
        arrays[f"c_{split}"] = np.array([f"{split}-{number}" for number in range(classes)])
    (folder / "cifar_fs").mkdir(parents=True)
    np.savez(folder / "cifar_fs" / "cifar_fs_100.npz", **arrays)
    return folder


def tiny_images(folder: Path, model: str = "gnn", **values: Any) -> Config:
    """A few-shot run of two epochs on the images of :func:`write_cifar`."""
    usual = {
        "data.folder": str(folder),
        "data.episodes": 6,
        "data.n_query": 1,
        "training.steps": 2,
        "training.batch_size": 4,
        "training.epochs": 2,
        "model.embedding": 8,
        "machine.threads": 1,
    }
    return protocol(
        "cifar-fs", model, 0, usual | {key.replace("__", "."): v for key, v in values.items()}
    )
