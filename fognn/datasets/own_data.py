r"""The user's own data: a csv file of molecules, or a file or folder of graphs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from fognn.datasets.graph_files import read_graphs
from fognn.datasets.smiles_csv import column_names, read_molecules
from fognn.datasets.splits import FEWEST, SPLITS, column_split, random_split, scaffold_split
from fognn.datasets.targets import Targets, targets_from_tensors
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
    notes: list[str] = field(default_factory=list)

    def splits(self, how: str | None, order: Tensor, fraction: float = 1.0) -> dict[str, Tensor]:
        r"""Returns the indices of the graphs of each split.

        Args:
            how (str, optional): ``"random"``, ``"scaffold"``, or :obj:`None`: the data's own
                splits, or ``"random"`` if they have none.
            order (torch.Tensor): All graphs in random order.
            fraction (float, optional): Fraction of each split to use. (default: :obj:`1.0`)
        """
        if how == "scaffold":
            if not self.smiles:
                raise ValueError(
                    f"config: data.split must not be 'scaffold' for {self.name}, which has no "
                    "molecules as SMILES"
                )
            found = scaffold_split(self.smiles, self.total)
        elif how is None and self.given is not None:
            found = self.given
        else:
            if len(self.graphs) < FEWEST:
                raise ValueError(
                    f"{self.name} must have at least {FEWEST} graphs, to train, validate and test "
                    f"on, got {len(self.graphs)}"
                )
            return self._checked(random_split(order, fraction))
        used = {s: items[: max(1, round(len(items) * fraction))] for s, items in found.items()}
        return self._checked(used)

    def _checked(self, splits: dict[str, Tensor]) -> dict[str, Tensor]:
        for split in SPLITS:
            if not len(splits[split]):
                raise ValueError(
                    f"{self.name}: the {split} split must have at least one graph, got none"
                )
        check_targets(self.name, self.targets, {s: self.targets_of(i) for s, i in splits.items()})
        return splits

    def targets_of(self, items: Tensor) -> Tensor:
        r"""Returns :obj:`y` of some graphs, in one tensor."""
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
) -> OwnData:
    r"""Reads the user's own data.

    Args:
        path (str or Path): A csv file of molecules, or what :func:`fognn.datasets.read_graphs`
            takes.
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
    """
    path = user_path(path)
    if path.suffix.lower() == ".csv":
        return _read_csv(path, smiles_column, target_column, split_column, task, skip_bad)
    if split_column is not None:
        raise ValueError(
            f"config: data.split_column must be None for {path}, which is not a csv file, got "
            f"{split_column!r}"
        )
    return own_data(str(path), read_graphs(path), task)


def own_data(name: str, graphs: Sequence[Data], task: str = "auto") -> OwnData:
    r"""Returns the data of some graphs, all of one form.

    Args:
        name (str): The beginning of error messages.
        graphs (sequence of Data): The graphs, as :func:`fognn.datasets.read_graphs` returns them.
        task (str, optional): As in :func:`read_own_data`. (default: :obj:`"auto"`)
    """
    missing = [number for number, graph in enumerate(graphs) if graph.y is None]
    if missing:
        raise ValueError(
            f"{name}, graph {missing[0]}: y of each graph must be the target to learn, got None"
        )
    level = _level(name, graphs)
    targets, ys = targets_from_tensors(name, [graph.y for graph in graphs], task)
    new, node_input, notes = fill_inputs(graphs)
    for graph, y in zip(new, ys, strict=True):
        graph.y = y
    notes = [f"targets of each {level}: {targets}", *notes]
    return OwnData(name, new, level, targets, node_input, notes=notes)


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
    new = [graph.clone("x") if graph.x is not None else Data(**_plain(graph)) for graph in graphs]
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


def _plain(graph: Data) -> dict[str, Any]:
    return graph.to_dict()


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
