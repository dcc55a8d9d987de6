r"""Statistics of a dataset, from its flat tensors."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fognn.data.images import ImageSet
from fognn.data.pack import read_columns
from fognn.data.user_data import UserData

Counts = dict[str, Tensor]


def count(dataset: Any) -> Counts:
    r"""Returns the :obj:`images` of each class and their :obj:`shape`; or the :obj:`nodes` and
    :obj:`edges` of each graph, and the :obj:`labels` that are not missing."""
    if isinstance(dataset, ImageSet):
        images = dataset.labels.bincount(minlength=len(dataset.classes))
        return {"images": images, "shape": torch.tensor(dataset.images.shape[2:])}
    nodes, columns = read_columns(dataset)
    found = {"nodes": nodes, "edges": columns["edge_index"].sizes}
    if "y" in columns:
        y = torch.as_tensor(columns["y"].values).reshape(-1)
        missing = y.isnan() if y.is_floating_point() else y < 0
        found["labels"] = y[~missing]
    return found


def joined(counts: Sequence[Counts]) -> Counts:
    r"""Returns the counts of several splits together."""
    return {name: torch.cat([part[name] for part in counts]) for name in counts[0]}


def statistics(counts: Counts) -> dict[str, float]:
    r"""Returns the statistics of counts by name, in the order in which they are printed."""
    if "images" in counts:
        images = counts["images"]
        return {
            "images": int(images.sum()),
            "classes": len(images),
            "images a class, fewest": int(images.min()),
            "images a class, most": int(images.max()),
            "height": int(counts["shape"][0]),
            "width": int(counts["shape"][1]),
        }
    nodes, edges, labels = counts["nodes"], counts["edges"], counts.get("labels")
    found: dict[str, float] = {
        "graphs": len(nodes),
        "nodes": int(nodes.sum()),
        "edges": int(edges.sum()),
        "nodes, mean": nodes.double().mean().item(),
        "nodes, fewest": int(nodes.min()),
        "nodes, most": int(nodes.max()),
        "edges, mean": edges.double().mean().item(),
    }
    if labels is None or not len(labels):
        return found
    if labels.is_floating_point():
        spread = {"label, s.d.": labels.double().std().item()} if len(labels) > 1 else {}
        return found | {"label, mean": labels.double().mean().item()} | spread
    shares = (labels.bincount() / len(labels)).tolist()
    found["classes"] = len(shares)
    return found | {f"label {label}, share": share for label, share in enumerate(shares)}


def describe(data: UserData, how: str | None = None, fold: int | None = None) -> dict[str, Any]:
    r"""Returns what there is to know about the user's data and a split, see
    :meth:`UserData.splits`, as numbers and texts by name."""
    counts = count(data.graphs)
    del counts["labels"]
    found: dict[str, Any] = {**statistics(counts)}
    for kind, name in (("node", "x"), ("edge", "edge_attr")):
        if name in data.graphs[0]:
            value = data.graphs[0][name]
            what = "numbers" if value.is_floating_point() else "tokens"
            found[f"{kind} features"] = f"{value.shape[1:].numel()} {what}"
    if data.node_input != "x":
        found["node features"] = f"none, {data.node_input} is taken"
    found[f"target of each {data.level}"] = str(data.targets)
    if data.nodes is not None:
        found["labelled nodes"] = len(data.nodes)
    found |= _balance(data)
    found |= {f"split {split}": len(part) for split, part in data.splits(how, fold=fold).items()}
    if data.num_splits > 1:
        found["splits"] = f"number {fold or 1} of {data.num_splits}"
    if data.skipped:
        found["left out"] = len(data.skipped)
        found["of these, cannot be read"] = data.bad
    return found


def _balance(data: UserData) -> dict[str, float]:
    kind, labels, y = data.targets.kind, data.targets.labels, data.targets_of(data.items)
    if kind == "classes":
        shares = (y[y >= 0].bincount(minlength=len(labels)) / (y >= 0).sum()).tolist()
        return {f"class {name}, share": share for name, share in zip(labels, shares, strict=True)}
    found: dict[str, float] = {}
    for name, column in zip(labels, y.reshape(len(y), -1).double().t(), strict=True):
        known = column[~column.isnan()]
        one = "" if len(labels) == 1 else f"{name}, "
        found[one + ("share of yes" if kind == "yes/no" else "target, mean")] = known.mean().item()
        if kind == "values":
            found[f"{one}target, s.d."] = known.std().item() if len(known) > 1 else 0.0
    return found
