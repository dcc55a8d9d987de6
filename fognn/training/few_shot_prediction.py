r"""Predictions of a trained few-shot network for a user's own classes of images."""

from pathlib import Path

import numpy as np
import torch

from fognn.data.images import class_folders, query_files, read_image
from fognn.models import FewShotNet
from fognn.training.config import MachineConfig
from fognn.training.environment import device_of, threads_of
from fognn.training.networks import load_run
from fognn.training.prediction import Predictions
from fognn.utils import checks
from fognn.utils.files import user_path

_SUPPORT = 500  # images; the network compares each with each
_PAIRS = 2**17  # of images, that the network compares at once


def predict_images(
    run: str | Path,
    support: str | Path,
    query: str | Path,
    checkpoint: str | None = None,
    batch_size: int = 128,
    device: str = "auto",
    threads: int | None = None,
) -> Predictions:
    r"""Classifies images with a trained few-shot network by a few images of each class (the support
    set). Neither the classes nor the images need to be those of the training.

    :func:`fognn.data.read_image` prepares images of any size and any format that Pillow reads. Each
    query is classified on its own. A network that was trained for :math:`n` classes takes 2 to
    :math:`n`, and leaves the others out of the softmax. Classes may have any numbers of images, at
    most 500 in all; with other numbers than in the training, the accuracy may differ.

    Args:
        run, checkpoint, device, threads: As in :func:`fognn.predict`.
        support (str): A folder with one subfolder for each class, of the name of the class, with
            its images.
        query (str): An image, or a folder of images. Its subfolders are not read.
        batch_size (int, optional): The largest number of queries in a batch. Batches are smaller
            if the support set is large. (default: :obj:`128`)
    """
    checks.int_in_range("predict_images", "batch_size", batch_size, 1)
    place = device_of(device)
    net, _, _ = load_run(run, checkpoint)
    if not isinstance(net, FewShotNet):
        raise ValueError(
            f"predict_images: run must be of a few-shot network, got {str(run)!r}: use "
            "fognn.predict for a network of graphs"
        )
    classes, queries = class_folders(user_path(support)), query_files(user_path(query))
    files = [path for some in classes.values() for path in some]
    # The sizes of the first and of the last layer depend on the number of classes.
    if not 2 <= len(classes) <= net.n_way or len(files) > _SUPPORT:
        raise ValueError(
            f"support must have 2 to {net.n_way} classes, as in the training (data.n_way), with at "
            f"most {_SUPPORT} images in all, got {len(classes)} classes with {len(files):,} images"
        )
    labels = torch.tensor([n for n, some in enumerate(classes.values()) for _ in some])
    size = max(1, min(batch_size, _PAIRS // (len(files) + 1) ** 2))
    with threads_of(MachineConfig(threads=threads)), torch.no_grad():
        weight = next(net.to(place).parameters())
        shape = net.cnn.image_size, net.cnn.in_channels
        shown, asked = (
            torch.stack([read_image(path, *shape) for path in some]).to(weight).div_(255)
            for some in (files, queries)
        )
        given = shown[None], labels.to(place)[None]
        outputs = [net(*given, some[None])[0].cpu() for some in asked.split(size)]
    # The network has no example of the other classes, so their outputs mean nothing.
    probabilities = torch.cat(outputs)[:, : len(classes)].softmax(1)
    values = np.array(list(classes), dtype=object)[probabilities.argmax(1).numpy()]
    places = {"query": [str(path) for path in queries]}
    return Predictions(None, values, probabilities.numpy(), tuple(classes), places)
