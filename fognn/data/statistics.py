r"""Statistics of a dataset, from its flat tensors (PyG's summaries loop over all graphs and have
no labels)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from fognn.data.few_shot import ImageSet
from fognn.data.targets import count_values

__all__ = ["Counts", "ImageCounts", "count", "count_graphs", "count_images"]


@dataclass(frozen=True)
class Counts:
    r"""Counts of some graphs. The sum of the counts of two splits is that of both together.

    Args:
        nodes (torch.Tensor): The number of nodes of each graph.
        edges (torch.Tensor): The number of directed edges of each graph.
        classes (torch.Tensor, optional): The number of labels of each class.
            (default: :obj:`None`)
        labels (torch.Tensor, optional): Labels that are real numbers. (default: :obj:`None`)
    """

    nodes: Tensor
    edges: Tensor
    classes: Tensor | None = None
    labels: Tensor | None = None

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            torch.cat([self.nodes, other.nodes]),
            torch.cat([self.edges, other.edges]),
            _sum_of_classes(self.classes, other.classes),
            _both(self.labels, other.labels),
        )

    def statistics(self) -> dict[str, float]:
        r"""Returns the statistics by name, in the order in which they are printed."""
        out: dict[str, float] = {
            "graphs": len(self.nodes),
            "nodes": int(self.nodes.sum()),
            "edges": int(self.edges.sum()),
            "nodes, mean": self.nodes.double().mean().item(),
            "nodes, fewest": int(self.nodes.min()),
            "nodes, most": int(self.nodes.max()),
            "edges, mean": self.edges.double().mean().item(),
        }
        if self.classes is not None:
            out["classes"] = len(self.classes)
            total = int(self.classes.sum())
            for label, many in enumerate(self.classes.tolist()):
                out[f"label {label}, share"] = many / total
        if self.labels is not None and len(self.labels):
            out["label, mean"] = self.labels.double().mean().item()
            if len(self.labels) > 1:
                out["label, s.d."] = self.labels.double().std().item()
        return out


@dataclass(frozen=True)
class ImageCounts:
    r"""Counts of a set of images.

    Args:
        classes (torch.Tensor): The number of images of each class.
        height (int): Their height.
        width (int): Their width.
    """

    classes: Tensor
    height: int
    width: int

    def __add__(self, other: "ImageCounts") -> "ImageCounts":
        # Splits of few-shot data have classes of their own.
        return ImageCounts(torch.cat([self.classes, other.classes]), self.height, self.width)

    def statistics(self) -> dict[str, float]:
        r"""Returns the statistics by name, in the order in which they are printed."""
        return {
            "images": int(self.classes.sum()),
            "classes": len(self.classes),
            "images a class, fewest": int(self.classes.min()),
            "images a class, most": int(self.classes.max()),
            "height": self.height,
            "width": self.width,
        }


def count(dataset: Any) -> Counts | ImageCounts:
    r"""Returns the counts of a dataset of graphs or of a set of images."""
    return count_images(dataset) if isinstance(dataset, ImageSet) else count_graphs(dataset)


def count_graphs(dataset: InMemoryDataset | Sequence[Data]) -> Counts:
    r"""Counts nodes, edges and labels without a loop over graphs.

    Args:
        dataset (InMemoryDataset or list of Data): The graphs, at least one.
            Each has :obj:`x` and :obj:`edge_index`, and may have :obj:`y`.
    """
    if not len(dataset):
        raise ValueError("count_graphs: dataset must have a graph, it has none")
    if not isinstance(dataset, InMemoryDataset):
        data, slices, _ = _collated(list(dataset))
    else:
        whole = dataset if dataset._indices is None else dataset.copy()
        data, slices = whole._data, whole.slices
        if slices is None:  # PyG keeps a single graph without slices
            data, slices, _ = _collated([data])
    classes = labels = None
    if "y" in data:
        if data.y.is_floating_point():
            labels = data.y.reshape(-1)
            labels = labels[~labels.isnan()]  # missing ones
        else:
            count_values("count_graphs: dataset", "y", [data.y])  # raises for too many classes
            classes = data.y.reshape(-1).bincount()
    return Counts(slices["x"].diff(), slices["edge_index"].diff(), classes, labels)


def count_images(images: ImageSet) -> ImageCounts:
    r"""Counts the images of each class."""
    height, width = images.images.shape[2:]
    return ImageCounts(images.labels.bincount(minlength=len(images.classes)), height, width)


def _collated(graphs: list[Data]) -> Any:
    from torch_geometric.data.collate import collate

    # Without increments edges keep the numbers of their graph; only the slices matter here.
    data, slices, rest = collate(Data, graphs, increment=False, add_batch=False)
    return data, slices, rest


def _sum_of_classes(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return None
    size = max(len(a), len(b))
    return sum((torch.nn.functional.pad(t, (0, size - len(t))) for t in (a, b)), a.new_zeros(size))


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return None if a is None or b is None else torch.cat([a, b])
