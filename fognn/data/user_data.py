r"""The user's data as one object: graphs, targets and splits."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from fognn.data.loaders import PackedGraph
from fognn.data.pack import random_order
from fognn.data.sources import SPLITS
from fognn.data.splits import FEWEST, file_split, random_split, scaffold_split
from fognn.data.targets import Targets

RWSE = "rwse"
"""The attribute of a graph that holds random-walk encodings."""


def random_walk_transform(steps: int) -> AddRandomWalkPE:
    r"""Returns PyG's transform that adds ``rwse`` to a graph: for each node, the probabilities that
    a random walk from it is back after 1, 2, ... steps, in a time cubic in the nodes."""
    return AddRandomWalkPE(steps, attr_name=RWSE)


@dataclass(eq=False)
class UserData:
    r"""The user's graphs, all of one form. It is opened once, by :func:`open_user_data`."""

    name: str  # a file, a folder, "pyg:...", or "python:..." with a checksum of the content
    graphs: list[Data]  # with x, edge_index, y, and edge_attr if there are edge features
    level: str  # whether a row of y belongs to a "graph", a "node" or an "edge"
    targets: Targets
    node_input: str = "x"  # or "degree" or "constant", which take its place in graphs without it
    smiles: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # the number of each molecule in its file
    skipped: list[int] = field(default_factory=list)  # the numbers of those that are left out
    bad: int = 0  # how many of these could not be read
    given: dict[str, Tensor] | None = None  # the data's own splits: indices of graphs
    # Of one graph whose nodes are divided: those with a label, and the splits, [nodes, splits].
    nodes: Tensor | None = None
    masks: dict[str, Tensor] | None = None
    notes: list[str] = field(default_factory=list)  # what was found in the data, for the user
    _done: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def items(self) -> Tensor:
        r"""The numbers of what is divided: the graphs, or the labelled nodes of the only one."""
        return torch.arange(len(self.graphs)) if self.nodes is None else self.nodes

    @property
    def num_splits(self) -> int:
        r"""The number of times that the data are divided into training, validation and test."""
        return 1 if self.masks is None else self.masks["train"].size(1)

    def splits(
        self, how: str | None = None, seed: int = 0, fraction: float = 1.0, fold: int | None = None
    ) -> dict[str, Tensor]:
        r"""Returns the indices of the graphs, or of the nodes of the only graph, of each split.

        Args:
            how (str, optional): ``"random"``, ``"scaffold"``, a file for
                :func:`fognn.data.splits.file_split`, or :obj:`None` or ``"all"``: the data's own
                splits, or ``"random"`` if they have none. (default: :obj:`None`)
            seed (int, optional): The seed of a random split. (default: :obj:`0`)
            fraction (float, optional): Fraction of each split to use. (default: :obj:`1.0`)
            fold (int, optional): The number of the split, from 1, of several. (default: 1)
        """
        key = ("splits", how, seed, fraction, fold)
        if key not in self._done:
            self._done[key] = self._divided(how, seed, fraction, fold)
        return self._done[key]

    def targets_of(self, items: Tensor) -> Tensor:
        r"""Returns :obj:`y` of some graphs, or of some nodes of the only graph, in one tensor."""
        if self.nodes is not None:
            return torch.as_tensor(self.graphs[0].y)[items]
        return torch.cat([self.graphs[item].y for item in items.tolist()])

    def encoded(self, steps: int) -> list[Data]:
        r"""Returns the graphs with random-walk encodings of so many steps; 0 for none."""
        if not steps:
            return self.graphs
        if ("walks", steps) not in self._done:
            self._done["walks", steps] = [random_walk_transform(steps)(g) for g in self.graphs]
        return self._done["walks", steps]

    def packed(self, steps: int = 0) -> PackedGraph:
        r"""Returns the only graph, with its edges sorted once for all splits."""
        if ("packed", steps) not in self._done:
            self._done["packed", steps] = PackedGraph(self.encoded(steps)[0])
        return self._done["packed", steps]

    def _divided(
        self, how: str | None, seed: int, fraction: float, fold: int | None
    ) -> dict[str, Tensor]:
        own = how in (None, "all")
        if how == "all" and self.num_splits == 1:
            raise ValueError(f"data.split must not be 'all' for {self.name}, which has one split")
        if fold is not None and not (own and fold <= self.num_splits):
            raise ValueError(
                f"data.fold must be one of the {self.num_splits} splits of {self.name}, without "
                f"data.split, got {fold} with {how!r}"
            )
        order = self.items[random_order(len(self.items), seed)]
        if own and self.masks is not None:
            number = (fold or 1) - 1
            found = {split: m[:, number].nonzero().flatten() for split, m in self.masks.items()}
        elif own and self.given is not None:
            found = self.given
            if "val" not in found:
                # Of a dataset with training and test only, a tenth of the training validates.
                train = order[torch.isin(order, found["train"])]
                held, kept = train.tensor_split([max(1, len(train) // 10)])
                found = found | {"val": held.sort().values, "train": kept.sort().values}
        elif own or how == "random":
            if len(order) < FEWEST:
                what = f"at least {FEWEST} graphs or labelled nodes, got {len(order)}"
                raise ValueError(f"{self.name} must have {what}")
            return self._checked(random_split(order, fraction))
        elif how == "scaffold":
            if not self.smiles:
                raise ValueError(f"data.split must not be 'scaffold' for {self.name}, not SMILES")
            found = scaffold_split(self.smiles, len(self.graphs) + self.bad)
        elif str(how).lower().endswith((".json", ".csv", ".csv.gz")):
            found = file_split(str(how), self._places())
        else:
            raise ValueError(
                "data.split must be random, scaffold, all, or a .json or .csv file with the items "
                f"of each split, got {how!r}"
            )
        used = {s: part[: max(1, round(len(part) * fraction))] for s, part in found.items()}
        return self._checked(used)

    def _places(self) -> dict[Any, int]:
        if self.nodes is not None:
            every = dict.fromkeys(range(self.graphs[0].num_nodes or 0), -1)
            return every | {node: node for node in self.nodes.tolist()}
        places: dict[Any, int] = dict.fromkeys(self.skipped, -1)
        places |= {row: place for place, row in enumerate(self.rows or range(len(self.graphs)))}
        if len(set(self.smiles)) == len(self.smiles):
            places |= {text: place for place, text in enumerate(self.smiles)}
        return places

    def _checked(self, splits: dict[str, Tensor]) -> dict[str, Tensor]:
        r"""Raises unless the training split has what is needed to learn the targets."""
        for split in SPLITS:
            if not len(splits.get(split, ())):
                raise ValueError(
                    f"{self.name}: the {split} split must have a graph or labelled node"
                )
        kind, y = self.targets.kind, self.targets_of(splits["train"])
        y = y.reshape(len(y), -1)
        if kind == "yes/no" and not bool(((y == 0).any(0) & (y == 1).any(0)).any()):
            raise ValueError(f"{self.name}: the train split must have both 0 and 1 in a column")
        missing = y.isnan().all(0).nonzero()
        if kind == "values" and len(missing):
            shown = self.targets.labels[int(missing[0])]
            raise ValueError(f"{self.name}: the train split must have a value in {shown!r}")
        for split, items in splits.items() if kind == "classes" else ():
            extra = set(self.targets_of(items).tolist()) - set(y.flatten().tolist()) - {-1}
            if extra:
                shown = self.targets.classes[min(extra)] if self.targets.classes else min(extra)
                raise ValueError(
                    f"{self.name}: class {shown!r} is in the {split} split, so it must be in the "
                    "train split, which does not have it"
                )
        return splits
