r"""One graph whose nodes are split into training, validation and test nodes by masks."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from fognn.data.graph_checks import GraphList, tensor_of
from fognn.data.graph_files import load_pt
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, check_regular, user_path
from fognn.utils.npz_files import load_npz, npz_names

__all__ = ["MASKS", "has_masks", "is_single_graph", "read_single_graph", "single_graph"]

MASKS = ("train_mask", "val_mask", "test_mask")
# The names of the layout of the "heterophilous graphs" files, with PyG's names for them.
_OTHER_NAMES = {
    "node_features": "x",
    "node_labels": "y",
    **{f"{mask}s": mask for mask in MASKS},
}
_NAMES = ("x", "edge_index", "edges", "edge_attr", "y", *MASKS)


def is_single_graph(path: str | Path) -> bool:
    r"""Returns whether a file is one for :meth:`read_single_graph` and not for
    :meth:`read_graphs`: a :obj:`.npz` or :obj:`.pt` file that has a :obj:`train_mask` or
    :obj:`train_masks`, or has edges but not the :obj:`n` of several graphs.

    Args:
        path (str or Path): The file. A folder, a missing file and one with another ending are not.
    """
    path = user_path(path)
    if not path.is_file() or path.suffix.lower() not in (".npz", ".pt"):
        return False
    if path.suffix.lower() == ".npz":
        try:
            return _is_one_graph(npz_names(path))
        except DAMAGE:
            return False  # read_graphs names the damage
    # Mapped, because only the names are needed.
    content = load_pt(path, mmap=True)
    if isinstance(content, dict):
        return _is_one_graph(content)
    return any(has_masks(graph) for graph in content if isinstance(graph, Data))


def _is_one_graph(names: Iterable[str]) -> bool:
    found = set(names)
    edges = not found.isdisjoint(("edge_index", "edges")) and "n" not in found
    return edges or not found.isdisjoint(("train_mask", "train_masks"))


def has_masks(graph: Data) -> bool:
    r"""Returns whether a graph has a mask of training nodes."""
    return "train_mask" in graph


def read_single_graph(path: str | Path, labels: bool = True) -> Data:
    r"""Reads one graph with masks of its training, validation and test nodes.

    * :obj:`.npz`, with the names of :class:`~torch_geometric.data.Data`: :obj:`edge_index`,
      :obj:`y`, optionally :obj:`x` and :obj:`edge_attr`, and :obj:`train_mask`, :obj:`val_mask`
      and :obj:`test_mask` of shape ``[nodes]`` or ``[nodes, splits]``.
    * :obj:`.npz`, with the names of the "heterophilous graphs" files: :obj:`node_features`,
      :obj:`node_labels`, :obj:`edges` (``[edges, 2]``, each undirected edge once or twice), and
      :obj:`train_masks`, :obj:`val_masks` and :obj:`test_masks` of shape ``[splits, nodes]``.
    * :obj:`.pt`: a :class:`~torch_geometric.data.Data` with masks, alone or in a list, a dict of
      tensors, or the data and slices of an :class:`~torch_geometric.data.InMemoryDataset`. As in
      :meth:`read_graphs`, none of a file's code is run.

    See :meth:`single_graph` for the result and for the :class:`ValueError` that a wrong graph
    raises. A file that cannot be read raises a :class:`~fognn.data.FileError`.

    Args:
        path (str or Path): The file.
        labels (bool, optional): If set to :obj:`False`, leaves out labels and masks, and the file
            needs none. (default: :obj:`True`)
    """
    path = user_path(path)
    if not path.exists():
        raise FileError(f"{path} is not there: name a .pt or .npz file of one graph with masks")
    check_regular(path)
    if path.suffix.lower() == ".npz":
        return single_graph(str(path), _read_npz(path), labels)
    content = load_pt(path)
    if isinstance(content, list):
        if len(content) != 1 or not isinstance(content[0], Data):
            raise ValueError(f"{path} must have one graph if it has masks, got {len(content)}")
        content = content[0].to_dict()
    return single_graph(str(path), content, labels)


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        return load_npz(path, {*_NAMES, *_OTHER_NAMES})
    except DAMAGE as error:
        raise FileError(
            f"{path} is not a whole .npz file of numbers ({error}): write it again, with "
            "numpy.savez"
        ) from error


def single_graph(where: str, values: Mapping[str, Any], labels: bool = True) -> Data:
    r"""Checks one graph with masks, or without any.

    Returns a :class:`~torch_geometric.data.Data` with :obj:`edge_index`, :obj:`y`,
    :obj:`num_nodes` and, if given, :obj:`x`, :obj:`edge_attr` and the three masks as :obj:`bool`
    tensors of shape ``[nodes, splits]``. A mask of a single split is that of all splits.
    :obj:`x` of several columns of only 0 and 1 (bags of words) is :obj:`torch.float32`.

    A node without a label has :obj:`y` -1, or NaN, and must not be in a mask. Masks that overlap
    or select no node raise a :class:`ValueError` with the number of the split, from 1.

    Args:
        where (str): The beginning of the error message for a wrong graph.
        values (dict): Arrays or tensors, with the names of :meth:`read_single_graph`.
        labels (bool, optional): As in :meth:`read_single_graph`. (default: :obj:`True`)
    """
    given = {_OTHER_NAMES.get(name, name): value for name, value in values.items()}
    given = {name: value for name, value in given.items() if value is not None}
    masked = any(mask in given for mask in MASKS)
    for name in ("y", *MASKS) if masked and labels else ("y",) if labels else ():
        if name not in given:
            raise ValueError(f"{where} must have {name}, it has only {sorted(given)}")
    masks = {}
    if masked and labels:
        masks = _masks(where, given, [mask for mask in MASKS if f"{mask}s" in values])
    graph = _inputs(where, given, masks)
    if labels:
        graph.y = _labels(where, given["y"], graph.num_nodes or 0)
        graph.update(masks)
        _check_splits(where, graph)
    return graph


def _inputs(where: str, given: Mapping[str, Any], masks: Mapping[str, Tensor]) -> Data:
    r"""Returns the graph without labels and masks."""
    values = {name: given[name] for name in ("x", "edge_index", "edge_attr") if name in given}
    nodes = given.get("num_nodes")
    if "x" not in given:
        rows = next((given[name] for name in ("train_mask", "y") if name in given), None)
        rows = masks.get("train_mask", rows)
        nodes = nodes if rows is None or np.ndim(rows) == 0 else len(rows)
    if "edges" in given:
        count = len(given["x"]) if np.ndim(given.get("x", 0)) else nodes
        values["edge_index"] = _both_directions(where, given, count)
    checked = GraphList()
    checked.add(where, Data(**values, num_nodes=nodes))
    graph = checked.graphs[0]
    if masks and graph.num_nodes != len(masks["train_mask"]):
        raise ValueError(
            f"{where}: train_mask must have a row for each of {graph.num_nodes} nodes, got "
            f"{len(masks['train_mask'])}"
        )
    if "x" in graph and _is_bag_of_words(graph.x):
        graph.x = graph.x.float()
    graph.num_nodes = graph.num_nodes
    return graph


def _masks(where: str, given: Mapping[str, Any], by_split: list[str]) -> dict[str, Tensor]:
    masks = {}
    for name in MASKS:
        value = given[name]
        # Bytes of the same storage: tensor_of allows no bool for an attribute of integers.
        if isinstance(value, np.ndarray) and value.dtype == bool:
            value = value.view(np.uint8)
        elif isinstance(value, Tensor) and value.dtype == torch.bool:
            value = value.view(torch.uint8)
        mask = tensor_of(where, name, value)
        mask = mask.t() if name in by_split and mask.dim() == 2 else mask
        mask = mask.unsqueeze(1) if mask.dim() == 1 else mask
        if mask.dim() != 2 or 0 in mask.shape:
            form = "[splits, nodes]" if name in by_split else "[nodes] or [nodes, splits]"
            raise ValueError(
                f"{where}: {name} must have shape {form}, got {list(np.shape(given[name]))}"
            )
        if ((mask != 0) & (mask != 1)).any():
            wrong = int(mask[(mask != 0) & (mask != 1)][0])
            raise ValueError(f"{where}: {name} must be True or False for each node, got {wrong}")
        masks[name] = mask.bool()
    nodes = masks["train_mask"].size(0)
    splits = max(mask.size(1) for mask in masks.values())
    for name, mask in masks.items():
        if mask.size(0) != nodes or mask.size(1) not in (1, splits):
            raise ValueError(
                f"{where}: {name} must have {nodes} nodes and {splits} splits like the other "
                f"masks, got {mask.size(0)} and {mask.size(1)}"
            )
        masks[name] = mask.expand(nodes, splits).contiguous()
    return masks


def _both_directions(where: str, given: Mapping[str, Any], nodes: int | None) -> Tensor:
    for name in ("edge_index", "edge_attr"):
        if name in given:
            raise ValueError(
                f"{where} must not have {name} beside edges, which are undirected and without "
                "features: give edge_index of shape [2, edges] instead of edges"
            )
    edges = tensor_of(where, "edges", given["edges"])
    if edges.dim() != 2 or edges.size(1) != 2:
        raise ValueError(f"{where}: edges must have shape [edges, 2], got {list(edges.shape)}")
    # Here and not by GraphList alone, because to_undirected needs numbers of nodes.
    nodes = int(edges.max()) + 1 if nodes is None and edges.numel() else nodes or 0
    wrong = checks.outside(edges, nodes)
    if wrong is not None:
        raise ValueError(
            f"{where}: edges must lie in 0..{nodes - 1}, the nodes of the graph, got {wrong}"
        )
    return to_undirected(edges.t(), num_nodes=nodes)


def _is_bag_of_words(x: Tensor) -> bool:
    several = not x.is_floating_point() and x.dim() == 2 and x.size(1) > 1
    return several and bool(((x == 0) | (x == 1)).all())


def _labels(where: str, value: Any, nodes: int) -> Tensor:
    y = tensor_of(where, "y", value)
    y = y.squeeze(1) if y.dim() == 2 and y.size(1) == 1 else y
    if y.dim() not in (1, 2) or y.size(0) != nodes:
        raise ValueError(
            f"{where}: y must have a row for each of {nodes} nodes, got shape {list(y.shape)}"
        )
    if y.is_floating_point():
        if y.isinf().any():
            raise ValueError(f"{where}: y must be finite, or NaN for a node without label, got inf")
    elif y.dim() == 2 or int(y.min()) < -1:
        found = f"shape {list(y.shape)}" if y.dim() == 2 else int(y.min())
        raise ValueError(
            f"{where}: y of integers must be classes from 0 in a single dimension, or -1 for a "
            f"node without label, got {found}; values to learn must be floating point"
        )
    return y


def _check_splits(where: str, graph: Data) -> None:
    y: Any = graph.y
    # A node with several values has a label if one of them is given.
    labelled = ~y.isnan().reshape(len(y), -1).all(1) if y.is_floating_point() else y >= 0
    if not labelled.any():
        raise ValueError(f"{where}: y must have a label for at least one node, got none")
    for split in range(graph.train_mask.size(1) if "train_mask" in graph else 0):
        masks = {name: graph[name][:, split] for name in MASKS}
        number = f"split {split + 1}"
        for name, mask in masks.items():
            if not mask.any():
                raise ValueError(f"{where}: {name} of {number} must select a node, got none")
            if (mask & ~labelled).any():
                node = int((mask & ~labelled).nonzero()[0])
                raise ValueError(
                    f"{where}: {name} of {number} must select nodes with a label only, got node "
                    f"{node} with y {y[node].tolist()}"
                )
        for one, other in (MASKS[:2], MASKS[::2], MASKS[1:]):
            if common := int((masks[one] & masks[other]).sum()):
                raise ValueError(
                    f"{where}: {one} and {other} of {number} must not overlap, got {common} nodes "
                    "in both"
                )
