r"""The user's own data: a csv file of molecules, a file or folder of graphs, one graph with masks,
or a dataset of PyG by name."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from fognn.data.graph_checks import GraphList
from fognn.data.graph_files import read_graphs
from fognn.data.pyg_datasets import is_pyg_name, open_pyg
from fognn.data.single_graph import (
    MASKS,
    has_masks,
    is_single_graph,
    read_single_graph,
    single_graph,
)
from fognn.data.smiles_csv import column_names, read_molecules
from fognn.data.splits import FEWEST, SPLITS, column_split, random_split, scaffold_split
from fognn.data.targets import Targets, targets_from_tensors
from fognn.utils.files import user_path

__all__ = ["NODE_INPUTS", "OwnData", "fill_inputs", "read_own_data"]

NODE_INPUTS = ("x", "degree", "constant")


@dataclass(frozen=True)
class OwnData:
    r"""The user's own graphs, all of one form.

    Args:
        name (str): The file or folder, for error messages.
        graphs (list): The graphs, with :obj:`x`, :obj:`edge_index`, :obj:`y`, and :obj:`edge_attr`
            if there are edge features.
        level (str): Whether a row of :obj:`y` belongs to a ``"graph"``, a ``"node"`` or an
            ``"edge"``.
        targets (Targets): The kind of the targets.
        node_input (str, optional): ``"x"``; or what takes its place in graphs without it,
            ``"degree"`` or ``"constant"``. (default: :obj:`"x"`)
        smiles (list, optional): The molecules, for the scaffold split. (default: :obj:`[]`)
        total (int, optional): Number of molecules of the file, also of those that cannot be read.
            (default: :obj:`0`)
        given (dict, optional): The splits that the data have themselves: indices of graphs.
            (default: :obj:`None`)
        nodes (torch.Tensor, optional): If the data are one graph whose nodes are divided into
            splits, the nodes that have a label. (default: :obj:`None`)
        masks (dict, optional): The splits of the nodes, ``[nodes, splits]``.
            (default: :obj:`None`)
        notes (list, optional): What was found in the data, for the user. (default: :obj:`[]`)
    """

    name: str
    graphs: list[Data]
    level: str
    targets: Targets
    node_input: str = "x"
    smiles: list[str] = field(default_factory=list)
    total: int = 0
    given: dict[str, Tensor] | None = None
    nodes: Tensor | None = None
    masks: dict[str, Tensor] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def items(self) -> Tensor:
        r"""The indices that are divided into splits: of the graphs, or of the nodes of the only
        graph."""
        return torch.arange(len(self.graphs)) if self.nodes is None else self.nodes

    @property
    def num_splits(self) -> int:
        r"""The number of times that the data are divided into training, validation and test."""
        return 1 if self.masks is None else self.masks["train"].size(1)

    def splits(
        self, how: str | None, order: Tensor, fraction: float = 1.0, fold: int | None = None
    ) -> dict[str, Tensor]:
        r"""Returns the indices of the graphs, or of the nodes of the only graph, of each split.

        Args:
            how (str, optional): ``"random"``, ``"scaffold"``, or :obj:`None` or ``"all"``: the
                data's own splits, or ``"random"`` if they have none.
            order (torch.Tensor): A random permutation of as many numbers as there are items.
            fraction (float, optional): Fraction of each split to use. (default: :obj:`1.0`)
            fold (int, optional): The number of the split, from 1, of data with several.
                (default: 1)
        """
        if how == "all" and self.num_splits == 1:
            raise ValueError(
                f"config: data.split must not be 'all' for {self.name}, which does not have "
                "several splits"
            )
        if fold is not None and how in ("random", "scaffold"):
            raise ValueError(f"config: data.fold must be None with data.split {how!r}, got {fold}")
        if fold is not None and fold > self.num_splits:
            raise ValueError(
                f"config: data.fold must be in 1..{self.num_splits}, the splits of {self.name}, "
                f"got {fold}"
            )
        if how == "scaffold":
            if not self.smiles:
                raise ValueError(
                    f"config: data.split must not be 'scaffold' for {self.name}, which has no "
                    "molecules as SMILES"
                )
            found = scaffold_split(self.smiles, self.total)
        elif how != "random" and self.masks is not None:
            number = (fold or 1) - 1
            found = {s: mask[:, number].nonzero().flatten() for s, mask in self.masks.items()}
        elif how is None and self.given is not None:
            found = self.given
            if "val" not in found:
                # Of a dataset with training and test only, a tenth of the training validates.
                train = order[torch.isin(order, found["train"])]
                cut = max(1, len(train) // 10)
                held = {"val": train[:cut].sort().values, "train": train[cut:].sort().values}
                found = found | held
        else:
            if len(order) < FEWEST:
                raise ValueError(
                    f"{self.name} must have at least {FEWEST} {self._unit}s, to train, validate "
                    f"and test on, got {len(order)}"
                )
            return self._checked(random_split(self.items[order], fraction))
        used = {s: items[: max(1, round(len(items) * fraction))] for s, items in found.items()}
        return self._checked(used, fold or 1)

    @property
    def _unit(self) -> str:
        return "graph" if self.nodes is None else "labelled node"

    def _checked(self, splits: dict[str, Tensor], number: int = 1) -> dict[str, Tensor]:
        for split in SPLITS:
            if not len(splits[split]):
                raise ValueError(
                    f"{self.name}: the {split} split must have at least one {self._unit}, got none"
                )
        name = self.name if self.num_splits == 1 else f"{self.name}, split {number}"
        check_targets(name, self.targets, {s: self.targets_of(i) for s, i in splits.items()})
        return splits

    def targets_of(self, items: Tensor) -> Tensor:
        r"""Returns :obj:`y` of some items, in one tensor."""
        if self.nodes is not None:
            return torch.as_tensor(self.graphs[0].y)[items]
        return torch.cat([self.graphs[item].y for item in items.tolist()])


def check_targets(name: str, targets: Targets, ys: dict[str, Tensor]) -> None:
    r"""Raises unless the training split has all classes of the others.

    Args:
        name (str): The beginning of error messages.
        targets (Targets): The kind of the targets.
        ys (dict): The targets of each split.
    """
    if targets.kind == "values":
        if bool(ys["train"].isnan().all(dim=0).any()):
            raise ValueError(f"{name}: the train split must have a value in each target column")
        return
    if targets.kind == "classes":
        known = set(ys["train"].unique().tolist())
        for split, y in ys.items():
            extra = sorted(set(y.unique().tolist()) - known - {-1})
            if extra:
                shown = targets.classes[extra[0]] if targets.classes else extra[0]
                raise ValueError(
                    f"{name}: class {shown!r} is in the {split} split, so it must be in the train "
                    "split, which does not have it"
                )
        return
    y = ys["train"].reshape(len(ys["train"]), -1)
    for column in range(y.size(1)):
        found = y[:, column]
        missing = [value for value in (0, 1) if not bool((found == value).any())]
        if missing:
            shown = f"column {targets.names[column]!r}" if targets.names else f"column {column}"
            raise ValueError(
                f"{name}: {shown} must have both 0 and 1 in the train split, it has no {missing[0]}"
            )


def read_own_data(
    path: str | Path,
    smiles_column: str = "smiles",
    target_column: str | None = None,
    split_column: str | None = None,
    task: str = "auto",
    skip_bad: bool = False,
    data: str | Path | None = None,
) -> OwnData:
    r"""Reads the user's own data.

    Args:
        path (str or Path): A csv file of molecules; what :func:`fognn.data.read_graphs` or
            :func:`fognn.data.read_single_graph` takes; or a name for
            :func:`fognn.data.open_pyg`.
        smiles_column (str, optional): csv file: the column of the SMILES strings.
            (default: :obj:`"smiles"`)
        target_column (str, optional): csv file: the column to learn, or several with commas between
            them. (default: :obj:`None`)
        split_column (str, optional): csv file: the column with the split of each molecule.
            (default: :obj:`None`)
        task (str, optional): ``"auto"``, ``"regression"`` or ``"classification"``.
            (default: :obj:`"auto"`)
        skip_bad (bool, optional): csv file: skip lines that cannot be read.
            (default: :obj:`False`)
        data (str or Path, optional): The data folder, for a dataset of PyG.
            (default: :obj:`$FOGNN_DATA`)
    """
    named = is_pyg_name(str(path))
    path = Path(path) if named else user_path(path)
    if path.suffix.lower() == ".csv" and not named:
        return _read_csv(path, smiles_column, target_column, split_column, task, skip_bad)
    if split_column is not None:
        raise ValueError(
            f"config: data.split_column must be None for {path}, which is not a csv file, got "
            f"{split_column!r}"
        )
    if named:
        return data_of_parts(str(path), open_pyg(str(path), data), task)
    graphs = [read_single_graph(path)] if is_single_graph(path) else read_graphs(path)
    return own_data(str(path), graphs, task)


def data_of_parts(name: str, parts: Mapping[str, Sequence[Data]], task: str = "auto") -> OwnData:
    r"""Returns the data of one graph with masks, or of some graphs, with their own splits if there
    are several parts.

    Args:
        name (str): The beginning of error messages.
        parts (dict): The graphs of each split, or all of them under any name.
        task (str, optional): As in :func:`read_own_data`. (default: :obj:`"auto"`)
    """
    graphs = [graph for part in parts.values() for graph in part]
    if len(graphs) == 1:
        return own_data(name, [single_graph(name, graphs[0].to_dict())], task)
    checked = GraphList()
    for number, graph in enumerate(graphs):
        checked.add(f"{name}, graph {number}", graph)
    own = own_data(name, checked.graphs, task)
    ends = torch.tensor([0, *(len(part) for part in parts.values())]).cumsum(0).tolist()
    given = {
        split: torch.arange(first, last)
        for split, first, last in zip(parts, ends, ends[1:], strict=False)
    }
    smiles = [graph.smiles for graph in graphs if "smiles" in graph]
    return replace(
        own,
        smiles=smiles if len(smiles) == len(graphs) else [],
        total=len(graphs),
        given=given if len(parts) > 1 else None,
    )


def own_data(name: str, graphs: Sequence[Data], task: str = "auto") -> OwnData:
    r"""Returns the data of some graphs, all of one form.

    Args:
        name (str): The beginning of error messages.
        graphs (sequence of Data): The graphs, as :func:`fognn.data.read_graphs` returns them;
            or one, as :func:`fognn.data.read_single_graph` returns it.
        task (str, optional): As in :func:`read_own_data`. (default: :obj:`"auto"`)
    """
    missing = [number for number, graph in enumerate(graphs) if graph.y is None]
    if missing:
        raise ValueError(
            f"{name}, graph {missing[0]}: y of each graph must be the target to learn, got None"
        )
    level = _level(name, graphs)
    one = len(graphs) == 1 and level == "node"
    nodes, masks = _nodes(graphs[0]) if one else (None, None)
    targets, ys = targets_from_tensors(name, [graph.y for graph in graphs], task, unlabelled=one)
    new, node_input, notes = fill_inputs(graphs)
    for graph, y in zip(new, ys, strict=True):
        graph.y = y
        for mask in MASKS:
            graph.pop(mask, None)
    notes = [f"targets of each {level}: {targets}", *notes]
    return OwnData(name, new, level, targets, node_input, nodes=nodes, masks=masks, notes=notes)


def _nodes(graph: Data) -> tuple[Tensor, dict[str, Tensor] | None]:
    r"""Returns the labelled nodes of a graph, and the masks of its splits."""
    y = torch.as_tensor(graph.y)
    labelled = ~y.isnan().reshape(len(y), -1).all(1) if y.is_floating_point() else y >= 0
    labelled = labelled if labelled.dim() == 1 else labelled.any(1)
    masks = None
    if has_masks(graph):
        masks = {mask.removesuffix("_mask"): graph[mask] for mask in MASKS}
    return labelled.nonzero().flatten(), masks


def fill_inputs(
    graphs: Sequence[Data], node_input: str | None = None
) -> tuple[list[Data], str, list[str]]:
    r"""Returns graphs that all have :obj:`x`. Graphs without node features get the logarithm of
    1 + in-degree; or the constant 1, if all nodes have the same degree.

    Args:
        graphs (sequence of Data): The graphs.
        node_input (str, optional): One of :obj:`NODE_INPUTS`, for graphs without :obj:`x`.
            (default: chosen as above)

    Returns:
        Copies of the graphs, the input, and what to tell the user.
    """
    new = [copy(graph) for graph in graphs]
    if new[0].x is not None:
        return new, "x", []
    degrees = [degree(g.edge_index[1], g.num_nodes, torch.float32) for g in new]
    if node_input is None:
        every = torch.cat(degrees)
        node_input = "constant" if bool((every == every[0]).all()) else "degree"
    for graph, own in zip(new, degrees, strict=True):
        own = own.log1p() if node_input == "degree" else torch.ones_like(own)
        graph.x = own.unsqueeze(1)
    what = "log(1 + in-degree)" if node_input == "degree" else "the constant 1"
    return new, node_input, [f"nodes have no features: {what} is taken"]


def _read_csv(
    path: Path,
    smiles_column: str,
    target_column: str | None,
    split_column: str | None,
    task: str,
    skip_bad: bool,
) -> OwnData:
    if target_column is None:
        raise ValueError(f"config: data.target must name the column of {path} to learn, got None")
    columns = column_names(path, target_column)
    table = read_molecules(path, smiles_column, columns, split_column, task, skip_bad)
    if table.targets is None or not table.graphs:
        raise ValueError(
            f"{path} must have at least {FEWEST} graphs, to train, validate and test on, got none"
        )
    given = None
    if split_column is not None:
        given = column_split(f"{path}: column {split_column!r}", table.splits)
    smiles = [graph.smiles for graph in table.graphs]
    graphs = [
        Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr, y=g.y) for g in table.graphs
    ]
    notes = [f"target {table.targets}"]
    if table.unlabelled:
        notes.append(f"{table.unlabelled:,} molecules without a target are left out")
    if table.bad:
        notes.append(f"{len(table.bad):,} of {table.total:,} lines cannot be read and are left out")
    return OwnData(
        str(path),
        graphs,
        "graph",
        table.targets,
        smiles=smiles,
        total=table.total - table.unlabelled,
        given=given,
        notes=notes,
    )


def _level(name: str, graphs: Sequence[Data]) -> str:
    r"""Returns the level of the targets (graph, node or edge), from their number."""
    counts = [graph.y.size(0) for graph in graphs]
    for level, sizes in (
        ("graph", [1] * len(graphs)),
        ("node", [graph.num_nodes for graph in graphs]),
        ("edge", [graph.num_edges for graph in graphs]),
    ):
        if counts == sizes:
            return level
    raise ValueError(
        f"{name}: y must have one entry for each graph, for each node or for each edge, got "
        f"{counts[0]} for {graphs[0].num_nodes} nodes and {graphs[0].num_edges} edges in graph 0"
    )
