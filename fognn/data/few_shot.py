r"""Sets of images for few-shot learning: the base class, and CIFAR-FS."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor
from torch.utils.data import Dataset

from fognn.data.graph_files import DAMAGED
from fognn.data.sources import Source, fetch
from fognn.data.split_dataset import read_npz
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import write_whole

__all__ = ["CIFARFS", "ImageSet", "image_module", "kept_images"]


class ImageSet(Dataset[tuple[Tensor, int]]):
    r"""Images in memory and their classes. An item is an image, :obj:`float` in :math:`[0, 1]` of
    shape :obj:`[C, H, W]`, and the number of its class.

    Args:
        images (torch.Tensor): All images, :obj:`uint8` of shape :obj:`[N, C, H, W]`.
        labels (torch.Tensor): The number of each image's class.
        classes (sequence of str): The names of the classes.
        transform (callable, optional): Applied to each image when it is read.
            (default: :obj:`None`)
    """

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        classes: Sequence[str],
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if images.dim() != 4 or images.dtype != torch.uint8 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"ImageSet: images must be uint8 of shape [N, C, H, W] with N labels, got "
                f"{images.dtype} {list(images.shape)} and {list(labels.shape)}"
            )
        self.images = images
        self.labels = labels.to(torch.int64)
        self.classes = list(classes)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__}: no image {index}, there are {len(self)}")
        return self.read(torch.tensor([index % len(self)]))[0], int(self.labels[index])

    def read(self, index: Tensor) -> Tensor:
        r"""Returns images by number, :obj:`float` of shape :obj:`[len(index), C, H, W]`."""
        images = self.images[index].contiguous().float().div_(255)
        if self.transform is None:
            return images
        return torch.stack([self.transform(image) for image in images])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} images, {len(self.classes)} classes)"


class CIFARFS(ImageSet):
    r"""CIFAR-FS, from the `"Meta-learning with differentiable closed-form solvers"
    <https://arxiv.org/abs/1805.08136>`_ paper: the classes of CIFAR-100 split into 64 for
    training, 16 for validation and 20 for testing, 32x32 in colour.

    It is read from :obj:`cifar_fs/cifar_fs_100.npz`, which holds the first 100 of each class's
    600 images: :obj:`x_{train,val,test}`, :obj:`uint8` of shape
    :obj:`[classes, images, 32, 32, 3]`, and the names :obj:`c_{train,val,test}`. A file with more
    images of each class can take its place.

    Args:
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied to each image when it is read.
            (default: :obj:`None`)
    """

    source = Source(
        "cifar_fs/cifar_fs_100.npz",
        hint="make it from CIFAR-100 and the split of Bertinetto et al., as the docstring of "
        "fognn.data.CIFARFS describes it",
    )

    def __init__(
        self,
        split: str = "train",
        data: str | Path | None = None,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        checks.one_of("CIFARFS", "split", split, ("train", "val", "test"))
        path = fetch(self.source, data)
        x, names = read_npz(path, [f"x_{split}", f"c_{split}"])
        if x.ndim != 5 or len(x) != len(names):
            raise FileError(
                f"{path} is not a CIFAR-FS file: x_{split} must have shape [classes, images, 32, "
                f"32, 3], got {list(x.shape)}"
            )
        images = torch.from_numpy(x).flatten(0, 1).permute(0, 3, 1, 2)
        labels = torch.arange(len(x)).repeat_interleave(x.shape[1])
        super().__init__(images, labels, names.tolist(), transform)


def image_module(owner: str) -> Any:
    r"""Returns Pillow's :obj:`Image`; Pillow is an optional dependency."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f'{owner} reads image files with Pillow: pip install "fognn[vision]"'
        ) from error
    return Image


def kept_images(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    r"""Returns what :obj:`make` returns, stored in the file :obj:`path` by the first call and
    mapped into memory by later ones.

    If several processes call it at once, one of them does the work.

    Args:
        path (Path): The file. Its name must contain everything that the content depends on.
        make (callable): Returns tensors and lists of strings by name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        try:
            content: dict[str, Any] = torch.load(path, weights_only=True, mmap=True)
        except DAMAGED:
            content = make()
            with write_whole(path) as temporary:
                torch.save(content, temporary)
    return content
