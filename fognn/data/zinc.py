r"""ZINC: molecules and their penalised logP."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric.datasets
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.molecules import ATOMS
from fognn.data.smiles_csv import read_smiles_csv
from fognn.data.sources import Source, cache_dir, fetch, find, pyg_download
from fognn.data.split_dataset import SplitDataset, file_stamp, flatten, read_npz, slices_of
from fognn.utils.errors import FileError
from fognn.utils.files import user_path

__all__ = ["ZINC"]

_SPLITS = ("train", "val", "test")
_SOURCES = ("auto", "npz", "smiles", "pyg")


class ZINC(SplitDataset):
    r"""ZINC of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: the penalised logP of drug-like molecules.

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 27 in the order of
    :obj:`fognn.data.ATOMS`), :obj:`edge_index` (both directions, sorted by target, then
    source), :obj:`edge_attr` (int64, ``[E]``, bonds 1 to 3) and :obj:`y` (float32, ``[1]``).

    The three sources give equal graphs up to the order of nodes:

    * :obj:`"npz"`: :obj:`zinc/zinc12k.npz` (or :obj:`zinc/zinc250k.npz`) in the data folder, with
      :obj:`{split}_{n,e,x,edge_index,edge_attr,y}`.
    * :obj:`"smiles"`: :obj:`zinc/zinc12k_{split}.csv` (or :obj:`zinc/zinc250k_{split}.csv`) in the
      data folder, with columns :obj:`smiles` and :obj:`y`; needs RDKit.
    * :obj:`"pyg"`: :class:`torch_geometric.datasets.ZINC`, which keeps its files in the folder
      :obj:`pyg` of :obj:`root` and downloads them if they are not there. PyG checks neither
      certificates nor checksums, and the files are pickles, so :obj:`"auto"` never downloads them.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        subset (bool, optional): If :obj:`True`, the 12,000 molecules of the benchmark (10,000,
            1,000 and 1,000); else all 249,456. (default: :obj:`True`)
        source (str, optional): One of the three, or :obj:`"auto"` for the first of them whose
            files are there. (default: :obj:`"auto"`)
        without_node_features (bool, optional): If :obj:`True`, every atom is token 0, as in the
            paper's study of limitations: molecules differ in their bonds only.
            (default: :obj:`False`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether a graph is kept. (default: :obj:`None`)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        subset: bool = True,
        source: str = "auto",
        without_node_features: bool = False,
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        if split not in _SPLITS:
            raise ValueError(f"ZINC: split must be one of {list(_SPLITS)}, got {split!r}")
        if source not in _SOURCES:
            raise ValueError(f"ZINC: source must be one of {list(_SOURCES)}, got {source!r}")
        folder = cache_dir() / "zinc" if root is None else user_path(root)
        self.split, self.subset = split, subset
        self._without_node_features = without_node_features
        self._pyg = folder / "pyg"
        self.source, self._path = self._choose(source, data)
        made = self.source if self._path is None else f"{self.source}-{file_stamp(self._path)}"
        variant = f"zinc-v1-{'12k' if subset else '250k'}-{made}-{split}"
        if without_node_features:
            variant += "-all-atoms-0"
        super().__init__(folder, "zinc", variant, transform, pre_transform, pre_filter)

    def _choose(self, source: str, data: str | Path | None) -> tuple[str, Path | None]:
        stem = "zinc/zinc12k" if self.subset else "zinc/zinc250k"
        other = 'take another source= of ZINC, such as "pyg", or get the file from another machine'
        files = {
            "npz": Source(f"{stem}.npz", hint=other),
            "smiles": Source(f"{stem}_{self.split}.csv", hint=other),
        }
        if source in files:
            return source, fetch(files[source], data)
        if source == "auto":
            for name, file in files.items():
                if (path := find(file, data)) is not None:
                    return name, path
            if not self._last_of_pyg.is_file():
                raise FileError(
                    f"{stem}.npz and {stem}_{self.split}.csv are neither in the data folder nor in "
                    "the cache: set FOGNN_DATA to a folder that has one of them, or use "
                    'ZINC(source="pyg") to download it with PyG'
                )
        return "pyg", None

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._path is None:
            tensors, slices = self._read_pyg()
        elif self.source == "npz":
            tensors, slices = _read_flat(self._path, self.split)
        else:
            graphs, _ = read_smiles_csv(self._path, target_column="y", features="zinc")
            if not graphs:
                raise FileError(f"{self._path} must have a molecule, it has none: get it again")
            tensors, slices = flatten(_plain(graph) for graph in graphs)
        if self._without_node_features:
            tensors["x"] = torch.zeros_like(tensors["x"])
        return tensors, slices

    def _read_pyg(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        stem = "zinc12k" if self.subset else "zinc250k"
        instead = f'set FOGNN_DATA to a folder with zinc/{stem}.npz and use ZINC(source="auto")'
        with pyg_download("ZINC", self._pyg, self._last_of_pyg, instead):
            graphs = torch_geometric.datasets.ZINC(
                str(self._pyg), subset=self.subset, split=self.split
            )
        return flatten(_plain(graph) for graph in graphs)

    @property
    def _last_of_pyg(self) -> Path:
        return self._pyg / "raw" / "test.index"


def _plain(graph: Data) -> dict[str, Tensor]:
    return {
        "x": graph.x.reshape(-1).long(),
        "edge_index": graph.edge_index,
        "edge_attr": graph.edge_attr.long(),
        "y": graph.y.float().reshape(1),
    }


def _read_flat(path: Path, split: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    names = ("n", "e", "x", "edge_index", "edge_attr", "y")
    arrays = read_npz(path, (f"{split}_{name}" for name in names), "iuf", dims=(1, 1, 1, 2, 1, 1))
    n, e, x, edge_index, edge_attr, y = arrays.values()
    n, e = n.astype(np.int64), e.astype(np.int64)
    _check(path, split, n, e, x, edge_index, edge_attr, y)
    graph = np.repeat(np.arange(len(e)), e)
    order = np.lexsort((edge_index[0], edge_index[1], graph))
    tensors = {
        "x": torch.from_numpy(x),
        "edge_index": torch.from_numpy(edge_index[:, order]),
        "edge_attr": torch.from_numpy(edge_attr[order]),
        "y": torch.from_numpy(y.astype(np.float32)),
    }
    nodes, edges = slices_of(n), slices_of(e)
    one = torch.arange(len(n) + 1)
    return tensors, {"x": nodes, "edge_index": edges, "edge_attr": edges, "y": one}


def _check(
    path: Path,
    split: str,
    n: NDArray[Any],
    e: NDArray[Any],
    x: NDArray[Any],
    edge_index: NDArray[Any],
    edge_attr: NDArray[Any],
    y: NDArray[Any],
) -> None:
    def wrong_file(what: str) -> FileError:
        return FileError(f"{path} is not a ZINC file: its split {split!r} has {what}")

    if any(array.dtype.kind == "f" for array in (x, edge_index, edge_attr)):
        raise wrong_file("atoms, edges or bonds that are not integers")
    if not 0 < len(n) == len(e) == len(y) or min(n.min(), e.min()) < 0:
        raise wrong_file(f"{len(n)} node counts, {len(e)} edge counts and {len(y)} labels")
    if len(x) != n.sum() or edge_index.shape != (2, e.sum()) or len(edge_attr) != e.sum():
        raise wrong_file(
            f"{len(x)} atoms, edges of shape {edge_index.shape} and {len(edge_attr)} bonds, where "
            f"the counts say {n.sum()} and {e.sum()}"
        )
    if not np.isfinite(y).all():
        raise wrong_file(f"a label that is no number, in graph {int((~np.isfinite(y)).argmax())}")
    sizes = np.repeat(n, e)
    for name, values, counts, wrong, must in (
        ("atom", x, n, (x < 0) | (x >= len(ATOMS)), f"atoms are 0 to {len(ATOMS) - 1}"),
        ("bond", edge_attr, e, (edge_attr < 1) | (edge_attr > 3), "bonds are 1 to 3"),
        *(
            ("an edge to node", ends, e, (ends < 0) | (ends >= sizes), "which has no such node")
            for ends in edge_index
        ),
    ):
        if wrong.any():
            place = int(wrong.argmax())
            graph = int(np.searchsorted(counts.cumsum(), place, side="right"))
            raise wrong_file(f"{name} {values[place]} in graph {graph}, {must}")
