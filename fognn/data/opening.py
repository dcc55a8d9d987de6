r"""Opens the user's data: files, datasets of PyG by name, or Python objects."""

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, Dataset
from torch_geometric.utils import degree

from fognn.data.graph_files import MASKS, check_graphs, level_of, read_graphs
from fognn.data.molecules import MoleculeTable, is_csv, read_molecules
from fognn.data.pyg_datasets import PREFIX, open_pyg
from fognn.data.sources import SPLITS
from fognn.data.splits import column_split
from fognn.data.targets import targets_from_tensors
from fognn.data.user_data import UserData
from fognn.utils.files import user_path

PYTHON = "python:"
"""The beginning of the names of Python objects."""


def open_user_data(
    source: Any,
    *,
    smiles: str = "smiles",
    target: str | None = None,
    split_column: str | None = None,
    task: str = "auto",
    skip_bad: bool = False,
    folder: str | Path | None = None,
) -> UserData:
    r"""Opens the user's data.

    Args:
        source (str, Path or object): A csv file of molecules (``.csv`` or ``.csv.gz``); a file or
            folder for :func:`fognn.data.read_graphs`; a name for :func:`fognn.data.open_pyg`; or a
            dataset of PyG, a list of :class:`~torch_geometric.data.Data`, one of them, or a dict
            (or tuple) of these for training, validation and test.
        smiles (str, optional): csv file: the column of the SMILES. (default: :obj:`"smiles"`)
        target (str, optional): csv file: the column to learn, or several with commas between them.
            (default: :obj:`None`)
        split_column (str, optional): csv file: the column of the splits. (default: :obj:`None`)
        task (str, optional): ``"auto"``, ``"regression"`` or ``"classification"``.
            (default: :obj:`"auto"`)
        skip_bad (bool, optional): csv file: skip unreadable lines. (default: :obj:`False`)
        folder (str or Path, optional): The data folder, for a dataset of PyG.
            (default: :obj:`$FOGNN_DATA`)
    """
    if isinstance(source, UserData):
        return source
    if not isinstance(source, str | Path):
        parts = _parts(source)
        kind = type(source["train"] if isinstance(source, Mapping) else source).__name__
        return _of_parts(PYTHON + kind.lower(), parts, task)
    if str(source).startswith(PREFIX):
        return _of_parts(str(source), open_pyg(str(source), folder), task)
    if str(source).startswith(PYTHON):
        raise ValueError(
            f"data {str(source)!r} were given as a Python object: call fognn.train with the same "
            "object, which resumes the run"
        )
    path = user_path(source)
    if is_csv(path):
        table = read_molecules(path, smiles, target or "", split_column, task, skip_bad)
        return _of_parts(str(path), {"all": table.graphs}, task, table)
    if split_column is not None:
        raise ValueError(f"data.split_column must be None for {path}, which is not a csv file")
    return _of_parts(str(path), {"all": read_graphs(path)}, task)


def fill_inputs(
    graphs: Sequence[Data], node_input: str | None = None
) -> tuple[list[Data], str, list[str]]:
    r"""Returns copies of graphs that all have :obj:`x`, what it is, and what to tell the user.
    Without features, nodes get ``"degree"``, log(1 + in-degree), or ``"constant"``, 1; by default
    the latter if all have the same degree."""
    new = [copy(graph) for graph in graphs]
    if new[0].x is not None:
        return new, "x", []
    degrees = [degree(g.edge_index[1], g.num_nodes, torch.float32) for g in new]
    if node_input is None:
        every = torch.cat(degrees)
        node_input = "constant" if bool((every == every[0]).all()) else "degree"
    for graph, count in zip(new, degrees, strict=True):
        graph.x = (count.log1p() if node_input == "degree" else torch.ones_like(count))[:, None]
    what = "log(1 + in-degree)" if node_input == "degree" else "the constant 1"
    return new, node_input, [f"nodes have no features: {what} is taken"]


def _parts(source: Any) -> dict[str, list[Any]]:
    r"""Returns the graphs of a Python object, by split if it has several."""
    if isinstance(source, tuple) and not any(isinstance(part, Data) for part in source):
        source = dict(zip(SPLITS, source, strict=False)) if len(source) == len(SPLITS) else {}
    if isinstance(source, Mapping) and set(source) != set(SPLITS):
        raise ValueError(
            f"train: data must have three parts, {', '.join(SPLITS)}, in a tuple or a dict, got "
            f"{', '.join(map(str, source)) or 'another number'}"
        )
    parts = {s: source[s] for s in SPLITS} if isinstance(source, Mapping) else {"all": source}
    found = {}
    for split, part in parts.items():
        part = [part] if isinstance(part, Data) else part
        if not isinstance(part, Dataset | Sequence) or isinstance(part, str) or not len(part):
            raise ValueError(
                "train: data must be a PyG dataset, a list of Data or one Data, with one type of "
                f"nodes and edges, got {type(part).__name__}"
            )
        found[split] = [part[number] for number in range(len(part))]
    return found


def _digest(parts: Mapping[str, Sequence[Any]]) -> str:
    r"""Returns a checksum of the content of each split, in order."""
    digest = hashlib.sha256()
    for split, graphs in parts.items():
        digest.update(f"{split} {len(graphs)}\n".encode())
        for graph in graphs:
            for key, value in sorted(graph.to_dict().items()):
                digest.update(f"{key} ".encode())
                if isinstance(value, Tensor):
                    array = value.detach().cpu().contiguous()
                    digest.update(f"{array.dtype} {list(array.shape)}\n".encode())
                    digest.update(array.flatten().view(torch.uint8).numpy().tobytes())
                elif isinstance(value, str | int | float):
                    digest.update(f"{value}\n".encode())
    return digest.hexdigest()[:12]


def _of_parts(
    name: str, parts: Mapping[str, Sequence[Data]], task: str, table: MoleculeTable | None = None
) -> UserData:
    r"""Returns the data of graphs by split; those of a csv file have targets and splits there."""
    items = [graph for part in parts.values() for graph in part]
    where = "data" if name.startswith(PYTHON) else name
    graphs = check_graphs(where, items)
    if name.startswith(PYTHON):
        name += f"-{len(items)}-{_digest(parts)}"
    if "y" not in graphs[0]:
        raise ValueError(f"{where}, graph 0 must have y, the target to learn")
    level = level_of(where, graphs)
    one = len(graphs) == 1 and level == "node"
    x = graphs[0].x if one else None
    if x is not None and x.dim() == 2 and x.size(1) > 1 and bool(((x == 0) | (x == 1)).all()):
        graphs[0].x = x.float()  # a bag of words
    ys = [graph.y for graph in graphs]
    table = table or MoleculeTable([], [], 0)
    targets = table.targets
    if targets is None:
        targets, ys = targets_from_tensors(where, ys, task, unlabelled=one)
    nodes, masks = _node_splits(where, graphs[0]) if one else (None, None)
    graphs, node_input, notes = fill_inputs(graphs)
    graphs = [
        Data(**{key: graph[key] for key in ("x", "edge_index", "edge_attr") if key in graph}, y=y)
        for graph, y in zip(graphs, ys, strict=True)
    ]
    smiles = [item.smiles for item in items] if all("smiles" in item for item in items) else []
    data = UserData(name, graphs, level, targets, node_input, smiles, nodes=nodes, masks=masks)
    data.notes = [f"target of each {level}: {targets}", *notes]
    data.rows, data.bad = table.rows, len(table.bad)
    data.skipped = sorted(set(range(table.total)) - set(table.rows))
    if len(parts) > 1:
        numbers = torch.arange(len(graphs)).split([len(part) for part in parts.values()])
        data.given = dict(zip(parts, numbers, strict=True))
    if table.splits:
        data.given = column_split(f"{name}: the split column", table.splits)
    if table.unlabelled:
        data.notes.append(f"{table.unlabelled:,} molecules without a target are left out")
    if table.bad:
        data.notes.append(
            f"{len(table.bad):,} of {table.total:,} lines cannot be read and are left out, the "
            f"first is line {table.bad[0].line}: {table.bad[0].reason}"
        )
    return data


def _node_splits(where: str, graph: Data) -> tuple[Tensor, dict[str, Tensor] | None]:
    r"""Returns the labelled nodes of a graph, and the masks of its splits."""
    y = graph.y.reshape(graph.num_nodes, -1)
    labelled = ~(y.isnan() if y.is_floating_point() else y < 0).all(1)
    nodes = labelled.nonzero().flatten()
    if not any(name in graph for name in MASKS):
        return nodes, None
    given = [graph[name] for name in MASKS if name in graph]
    shapes = [list(mask.shape) for mask in given]
    if len(given) < 3 or any(len(s) > 2 or s[0] != graph.num_nodes for s in shapes):
        raise ValueError(
            f"{where}: {', '.join(MASKS)} must have shape [nodes] or [nodes, splits] for "
            f"{graph.num_nodes} nodes, got {shapes}"
        )
    wide = torch.broadcast_tensors(*(mask.reshape(graph.num_nodes, -1) for mask in given))
    used = torch.stack(wide).long()  # [3, nodes, splits]
    wrong = {
        "must not overlap": (used.sum(0) > 1).any(),
        "must each select a node": not used.any(1).all(),
        "must select nodes with a label only": (used.any(0) & ~labelled[:, None]).any(),
    }
    for rule, broken in wrong.items():
        if broken:
            raise ValueError(f"{where}: {', '.join(MASKS)} {rule}")
    return nodes, dict(zip(SPLITS, wide, strict=True))
