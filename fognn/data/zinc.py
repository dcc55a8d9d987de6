r"""ZINC: molecules and their penalised logP."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric.datasets
from torch import Tensor
from torch_geometric.data import Data, extract_zip

from fognn.data.molecules import ATOMS
from fognn.data.pyg_datasets import open_root
from fognn.data.sources import find, retrieve
from fognn.data.split_dataset import SplitDataset, file_stamp, flatten, read_npz, slices_of
from fognn.utils import checks
from fognn.utils.errors import FileError

__all__ = ["ZINC"]

FILE = "zinc/zinc12k.npz"


class ZINC(SplitDataset):
    r"""The 12,000 molecules of ZINC of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper, and their penalised logP.

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 27 in the order of
    :obj:`fognn.data.ATOMS`), :obj:`edge_index` (both directions, sorted by target, then
    source), :obj:`edge_attr` (int64, ``[E]``, bonds 1 to 3) and :obj:`y` (float32, ``[1]``).

    They are read from :obj:`zinc/zinc12k.npz` in the data folder or the cache, with
    :obj:`{split}_{n,e,x,edge_index,edge_attr,y}`. If it is not there, the files of
    :class:`torch_geometric.datasets.ZINC` are downloaded, which give the same molecules with
    another order of atoms; they are pickles, which PyG runs.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: 10,000, 1,000 and
            1,000 molecules. (default: :obj:`"train"`)
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
        without_node_features: bool = False,
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        checks.one_of("ZINC", "split", split, ("train", "val", "test"))
        self.split, self._folder = split, data
        self._without_node_features = without_node_features
        self._path = find(FILE, data)
        made = "pyg" if self._path is None else f"npz-{file_stamp(self._path)}"
        variant = f"zinc-v1-12k-{made}-{split}"
        if without_node_features:
            variant += "-all-atoms-0"
        super().__init__(root, "zinc", variant, transform, pre_transform, pre_filter)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._path is None:
            tensors, slices = flatten(_plain(graph) for graph in self._download())
        else:
            tensors, slices = _read_flat(self._path, self.split)
        if self._without_node_features:
            tensors["x"] = torch.zeros_like(tensors["x"])
        return tensors, slices

    def _download(self) -> Any:
        def opened(root: Path) -> Any:
            return _Files(str(root), subset=True, split=self.split)

        kind = torch_geometric.datasets.ZINC
        hint = f"put {FILE}, or the unpacked {kind.url} as pyg/ZINC/raw"
        return open_root("ZINC", "ZINC", kind, opened, self._folder, hint)


class _Files(torch_geometric.datasets.ZINC):
    r"""PyG's dataset, downloaded with certificates checked, which PyG does not do."""

    def download(self) -> None:
        root, raw = Path(self.root), Path(self.raw_dir)
        archive = retrieve(self.url, root / "molecules.zip")
        extract_zip(str(archive), self.root)
        archive.unlink()
        raw.rmdir()
        (root / "molecules").rename(raw)
        for split in ("train", "val", "test"):
            retrieve(self.split_url.format(split), raw / f"{split}.index")


def _plain(graph: Any) -> dict[str, Tensor]:
    return {
        "x": graph.x.reshape(-1).long(),
        "edge_index": graph.edge_index,
        "edge_attr": graph.edge_attr.long(),
        "y": graph.y.float().reshape(1),
    }


def _read_flat(path: Path, split: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    names = ("n", "e", "x", "edge_index", "edge_attr", "y")
    arrays = read_npz(path, (f"{split}_{name}" for name in names))
    n, e, x, edge_index, edge_attr, y = arrays
    n, e = n.astype(np.int64), e.astype(np.int64)
    right = len(n) == len(e) == len(y) and len(x) == n.sum()
    right = right and edge_index.shape == (2, e.sum()) and len(edge_attr) == e.sum()
    if not right or x.max() >= len(ATOMS) or (edge_index >= np.repeat(n, e)).any():
        raise FileError(f"{path} is not a ZINC file: the arrays of {split} do not fit together")
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
