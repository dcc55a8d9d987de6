r"""Predictions of a trained few-shot network for a user's own classes of images."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fognn.data.image_files import class_folders, query_files, read_image
from fognn.models import FewShotNet
from fognn.training.checkpoint import load_run
from fognn.training.config import Config, MachineConfig
from fognn.training.environment import device_of
from fognn.training.fabric import threads_of
from fognn.utils import checks
from fognn.utils.files import user_path

__all__ = ["FewShotPrediction", "predict_images"]

_CLASSES = range(2, 21)
_SUPPORT = 500  # images; the network compares each with each
_PAIRS = 2**17  # of images, that the network compares at once


@dataclass(frozen=True)
class FewShotPrediction:
    r"""The result of :func:`predict_images`.

    Args:
        classes (list): The names of the classes.
        queries (list): The files of the queries.
        probabilities (torch.Tensor): ``[queries, classes]``.
        query_images (torch.Tensor): The queries as the network got them, ``uint8`` of shape
            ``[queries, C, H, W]``.
        support (list): The files of the support set.
        support_images (torch.Tensor): ``uint8`` of shape ``[len(support), C, H, W]``.
        support_labels (torch.Tensor): The class of each, from 0.
        notes (list): In which respects the support set differs from those of the training.
    """

    classes: list[str]
    queries: list[Path]
    probabilities: Tensor
    query_images: Tensor
    support: list[Path]
    support_images: Tensor
    support_labels: Tensor
    notes: list[str]

    @property
    def predicted(self) -> list[str]:
        r"""The class with the largest probability, for each query."""
        return [self.classes[best] for best in self.probabilities.argmax(1).tolist()]

    def to_csv(self) -> str:
        r"""Returns the text of a csv file with the columns ``query``, ``class`` and
        ``probability_NAME`` for each class."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["query", "class", *(f"probability_{name}" for name in self.classes)])
        rows = zip(self.queries, self.predicted, self.probabilities.tolist(), strict=True)
        writer.writerows([str(path), best, *row] for path, best, row in rows)
        return text.getvalue()


def predict_images(
    run: str | Path,
    support: str | Path,
    query: str | Path,
    checkpoint: str | None = None,
    batch_size: int = 128,
    device: str = "auto",
    threads: int | None = None,
) -> FewShotPrediction:
    r"""Classifies images with a trained few-shot network by a few images of each class (the support
    set). Neither the classes nor the images need to be those of the training.

    Images may have any size and any format that Pillow reads; they are prepared by
    :func:`fognn.data.read_image`. Each query is classified on its own.

    A network that was trained for :math:`n` classes takes 2 to :math:`n`, and at most 20. With
    fewer than :math:`n`, the outputs of the other classes are left out of the softmax. Classes may
    have any numbers of images, also unequal ones, at most 500 in all.

    Args:
        run (str): A run folder, a checkpoint in one, or the name of kept weights, see
            :func:`fognn.load`.
        support (str): A folder with one subfolder for each class, of the name of the class, with
            its images.
        query (str): An image, or a folder of images. Its subfolders are not read.
        checkpoint (str, optional): ``"best"`` or ``"last"``. (default: :obj:`"best"`)
        batch_size (int, optional): The largest number of queries in a batch. Batches are smaller
            if the support set is large. (default: :obj:`128`)
        device (str, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`"auto"`)
        threads (int, optional): As in :class:`~fognn.training.MachineConfig`.
            (default: :obj:`None`)
    """
    checks.int_in_range("predict_images", "batch_size", batch_size, 1)
    machine, place = MachineConfig(threads=threads), device_of(device)
    net, config, _ = load_run(run, checkpoint)
    if not isinstance(net, FewShotNet):
        raise ValueError(
            f"run must be of a few-shot network, which takes support and query, got {str(run)!r}: "
            f"use fognn predict RUN INPUT -o FILE for a network of graphs (fognn.training.predict)"
        )
    folder = user_path(support)
    classes, queries = class_folders(folder), query_files(user_path(query))
    _check(folder, classes, net.n_way, config)
    files = [path for some in classes.values() for path in some]
    labels = torch.tensor([n for n, some in enumerate(classes.values()) for _ in some])
    size = max(1, min(batch_size, _PAIRS // (len(files) + 1) ** 2))
    with threads_of(machine):
        shape = net.cnn.image_size, net.cnn.in_channels
        images = [torch.stack([read_image(p, *shape) for p in some]) for some in (files, queries)]
        net.to(place)
        outputs = list(_outputs(net, images[0], labels, images[1], size))
    # The network has no example of the other classes, so their outputs mean nothing.
    probabilities = torch.cat(outputs)[:, : len(classes)].softmax(1)
    notes = _notes(classes, net.n_way, config.data.k_shot)
    return FewShotPrediction(
        list(classes), queries, probabilities, images[1], files, images[0], labels, notes
    )


def _outputs(
    net: FewShotNet, support: Tensor, labels: Tensor, queries: Tensor, batch_size: int
) -> Iterator[Tensor]:
    r"""Yields the logits of each batch of queries, ``[batch, n_way]``, on the CPU."""
    weight = next(net.parameters())
    support, labels = _scaled(support, weight)[None], labels.to(weight.device)[None]
    with torch.no_grad():
        for some in queries.split(batch_size):
            yield net(support, labels, _scaled(some, weight)[None])[0].cpu()


def _scaled(images: Tensor, like: Tensor) -> Tensor:
    return images.to(like).div_(255)


def _check(folder: Path, classes: dict[str, list[Path]], n_way: int, config: Config) -> None:
    many = len(classes)
    if many not in _CLASSES:
        raise ValueError(
            f"support must have {_CLASSES[0]} to {_CLASSES[-1]} classes, one subfolder for each, "
            f"got {many} in {str(folder)!r}"
        )
    if many > n_way:
        # The sizes of the first and of the last layer depend on the number of classes.
        shots = f" --set data.k_shot={config.data.k_shot}" if config.data.k_shot > 1 else ""
        raise ValueError(
            f"support must have at most {n_way} classes, the number that the network was trained "
            f"for, got {many} in {str(folder)!r}: train one for {many} (fognn train "
            f"{config.data.name.lower()} {config.model.name} --set data.n_way={many}{shots})"
        )
    images = sum(map(len, classes.values()))
    if images > _SUPPORT:
        raise ValueError(
            f"support must have at most {_SUPPORT} images in all, got {images:,} in {str(folder)!r}"
        )


def _notes(classes: dict[str, list[Path]], n_way: int, k_shot: int) -> list[str]:
    notes = []
    if len(classes) < n_way:
        notes.append(
            f"trained for {n_way} classes, got {len(classes)}: the other outputs are left out of "
            "the probabilities"
        )
    counts = sorted({len(files) for files in classes.values()})
    if counts != [k_shot]:
        found = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        notes.append(
            f"trained with {k_shot} image{'s' * (k_shot > 1)} of each class, got {found}: any "
            "number works, the accuracy may differ from that of the training"
        )
    return notes
