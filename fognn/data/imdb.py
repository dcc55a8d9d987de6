r"""IMDB-MULTI: 1,500 ego-networks of actors, three genres, no features."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.sources import fetch
from fognn.data.split_dataset import SplitDataset, file_stamp, flatten
from fognn.utils.errors import FileError

__all__ = ["TEXT", "IMDBMulti"]

TEXT = "imdb_multi/IMDBMULTI.txt"


class IMDBMulti(SplitDataset):
    r"""The IMDB-MULTI dataset of the `"Deep Graph Kernels"
    <https://dl.acm.org/doi/10.1145/2783258.2783417>`_ paper: 1,500 graphs, 500 of each of three
    classes, 19,502 nodes and 98,903 undirected edges.

    A node has the single feature 1, each edge is there in both directions, and there are no self
    loops. The dataset has no fixed split: :meth:`folds` returns indices for cross-validation. It is
    read from :obj:`imdb_multi/IMDBMULTI.txt` as in the DGCNN code, which has the ten folds and is
    downloaded if it is not there.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        **kwargs (optional): :obj:`transform` and :obj:`pre_transform` of
            :class:`~torch_geometric.data.InMemoryDataset`.
    """

    def __init__(
        self, root: str | Path | None = None, data: str | Path | None = None, **kwargs: Any
    ) -> None:
        self._folder = data
        self._path = fetch(TEXT, data)
        super().__init__(root, "imdb_multi", f"text-{file_stamp(self._path)}-v1", **kwargs)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return flatten(
            {"x": torch.ones(n, 1), "edge_index": edge_index, "y": torch.tensor([label])}
            for n, edge_index, label in _read_text(self._path)
        )

    def folds(self) -> list[tuple[Tensor, Tensor]]:
        r"""Returns the ten folds that come with the text file: indices to train and to test on."""
        folds = []
        for fold in range(1, 11):
            train, test = self._fold_part("train", fold), self._fold_part("test", fold)
            if sorted(train + test) != list(range(self.len())):
                raise FileError(
                    f"fold {fold} of IMDB-MULTI must name each graph once: get it again"
                )
            folds.append((torch.tensor(train), torch.tensor(test)))
        return folds

    def _fold_part(self, part: str, fold: int) -> list[int]:
        path = fetch(f"imdb_multi/10fold_idx/{part}_idx-{fold}.txt", self._folder)
        return [int(word) for word in path.read_text(encoding="ascii").split()]


def _read_text(path: Path) -> Iterator[tuple[int, Tensor, int]]:
    r"""Reads: number of graphs; a graph: nodes, label; a node: tag, degree, neighbours."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        rows = iter([int(word) for word in line.split()] for line in lines)
        for _ in range(next(rows)[0]):
            size, label = next(rows)
            pairs = [(other, node) for node in range(size) for other in next(rows)[2:]]
            edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
            Data(edge_index=edge_index, num_nodes=size).validate()
            yield size, edge_index, label
    except (ValueError, StopIteration, RuntimeError) as error:
        raise FileError(f"{path} is truncated or corrupt ({error}): get it again") from error
