r"""Statistics of a dataset, from its flat tensors (PyG's summaries loop over all graphs and have
no labels)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.data.collate import collate

from fognn.data.few_shot import ImageSet
from fognn.data.user_data import UserData

__all__ = ["Counts", "ImageCounts", "count", "describe"]


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
        classes = labels = None
        if self.classes is not None and other.classes is not None:
            size = max(len(self.classes), len(other.classes))
            both = (self.classes, other.classes)
            classes = torch.stack([pad(part, (0, size - len(part))) for part in both]).sum(0)
        if self.labels is not None and other.labels is not None:
            labels = torch.cat([self.labels, other.labels])
        nodes, edges = torch.cat([self.nodes, other.nodes]), torch.cat([self.edges, other.edges])
        return Counts(nodes, edges, classes, labels)

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
    r"""Returns the counts of a set of images, or of nodes, edges and labels of graphs, without a
    loop over an :class:`~torch_geometric.data.InMemoryDataset`.

    Args:
        dataset (ImageSet, InMemoryDataset or list of Data): The images, or the graphs, with
            :obj:`x` and :obj:`edge_index`, and maybe :obj:`y`.
    """
    if isinstance(dataset, ImageSet):
        height, width = dataset.images.shape[2:]
        images = dataset.labels.bincount(minlength=len(dataset.classes))
        return ImageCounts(images, height, width)
    data, slices = _flat(dataset)
    classes: Tensor | None = None
    labels: Tensor | None = None
    if "y" in data and data.y.is_floating_point():
        y = data.y.reshape(-1)
        labels = y[~y.isnan()]  # missing ones
    elif "y" in data:
        y = data.y.reshape(-1)
        classes = y[y >= 0].bincount()
    return Counts(slices["x"].diff(), slices["edge_index"].diff(), classes, labels)


def describe(data: UserData, how: str | None = None, fold: int | None = None) -> dict[str, Any]:
    r"""Returns what there is to know about the user's data, as numbers and texts by name: sizes,
    features, the kind of the targets, the share of each class, the splits, and what was skipped.

    Args:
        data (UserData): The data.
        how (str, optional): The split, see :meth:`UserData.splits`. (default: :obj:`None`)
        fold (int, optional): The number of the split. (default: :obj:`None`)
    """
    counts = count(data.graphs).statistics()
    found: dict[str, Any] = {
        name: value for name, value in counts.items() if not name.startswith(("label", "classes"))
    }
    for kind, name in (("node", "x"), ("edge", "edge_attr")):
        value = data.graphs[0].get(name)
        if value is not None:
            what = "numbers" if value.is_floating_point() else "tokens"
            found[f"{kind} features"] = f"{value.shape[1:].numel()} {what}"
    if data.node_input != "x":
        found["node features"] = f"none, {data.node_input} is taken"
    found[f"target of each {data.level}"] = str(data.targets)
    items = torch.arange(len(data.graphs)) if data.nodes is None else data.nodes
    if data.nodes is not None:
        found["labelled nodes"] = len(data.nodes)
    found |= _balance(data, data.targets_of(items))
    for split, part in data.splits(how, fold=fold).items():
        found[f"split {split}"] = len(part)
    if data.num_splits > 1:
        found["splits"] = f"number {fold or 1} of {data.num_splits}"
    if data.skipped:
        found["left out"] = len(data.skipped)
        found["of these, cannot be read"] = data.bad
    return found


def _balance(data: UserData, y: Tensor) -> dict[str, float]:
    targets = data.targets
    if targets.kind == "classes":
        shares = y[y >= 0].bincount(minlength=targets.columns) / (y >= 0).sum()
        names = targets.classes or tuple(map(str, range(targets.columns)))
        return {
            f"class {name}, share": value
            for name, value in zip(names, shares.tolist(), strict=True)
        }
    columns = y.reshape(len(y), -1).double()
    names = targets.names or tuple(map(str, range(targets.columns)))
    found: dict[str, float] = {}
    for name, column in zip(names, columns.t(), strict=True):
        known = column[~column.isnan()]
        one = "" if len(names) == 1 else f"{name}, "
        if targets.kind == "yes/no":
            found[f"{one}share of yes"] = known.mean().item()
        else:
            found[f"{one}target, mean"] = known.mean().item()
            found[f"{one}target, s.d."] = known.std().item() if len(known) > 1 else 0.0
    return found


def _flat(dataset: InMemoryDataset | Sequence[Data]) -> tuple[Any, Any]:
    if isinstance(dataset, InMemoryDataset):
        whole = dataset if dataset._indices is None else dataset.copy()
        if whole.slices is not None:  # PyG keeps a single graph without slices
            return whole._data, whole.slices
        dataset = [whole[0]]
    # Without increments edges keep the numbers of their graph; only the slices matter here.
    data, slices, _ = collate(Data, list(dataset), increment=False, add_batch=False)
    return data, slices
