r"""IMDB-MULTI: 1,500 ego-networks of actors, three genres, no features."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset

from fognn.datasets.imdb_files import integer_rows, read_text, read_tu
from fognn.datasets.sources import Source, cache_dir, fetch, find
from fognn.datasets.split_dataset import SplitDataset
from fognn.utils.errors import FileError
from fognn.utils.files import sha256_of

__all__ = ["TEXT", "IMDBMulti"]

_URL = "https://raw.githubusercontent.com/muhanzhang/pytorch_DGCNN/master/data/IMDBMULTI"
TEXT = Source(
    "imdb_multi/IMDBMULTI.txt",
    f"{_URL}/IMDBMULTI.txt",
    "f4cc1b32112303bf1b16a8351df8b8073978fdead823775fbe79e60cf94e7009",
)
_TU = [
    Source(
        f"IMDB-MULTI/IMDB-MULTI_{name}.txt",
        hint="unpack https://www.chrsmrrs.com/graphkerneldatasets/IMDB-MULTI.zip",
    )
    for name in ("A", "graph_indicator", "graph_labels")
]
_TRAIN_SHA256 = (
    "0ae8bf61aaf06d3e3f385602feeeed97acc04989547f95bf86c070dfea76cfc0",
    "69e0b4da0c30d1ceb11b1ecd9ba77f6ed5a8a8c9e826b8fe28adbf88db7d941f",
    "6a9b4d0fedfc4764349de780bf8c35acb73473ed32603b91f557fa82399fcfdf",
    "5f932ac4c3d22365576154d9a520e4049756c5f5fa689d4ffd7e58c2bb49159a",
    "3cdc944c737a1d6671ccbe6cac8d07857de416c150e0e11f4e2a04e11d1837d1",
    "53fccede2c6a7082c3dbb5136d79e69c07da8258255205190f9a1fe87f0dc3ee",
    "b353dc44f49c498b10b176bf35ee6f5bbbe23ac796d11876f52566097d70f4b6",
    "552fa063f51c7abb880c715a15af8994e3c81604ba2cd2ae0c0e736782055b93",
    "19107f560e581002a804d58334255a510b6dc7e5c1e938dd9b011721587d5493",
    "cee0c7422cdc61dfaf40ce253b7285f6fba5f6f0dccc07fcdb8d8de580438d78",
)
_TEST_SHA256 = (
    "e2510c3ce39c3608cbd25c72264ea692025b7f8bfa1dbedb310d0e3cc398ecd0",
    "0c72858a0e0da55dd0af1ae5d602ba063d27d67e75398438f10de17ba70050a9",
    "dd18146e61d44efc6282b5e6b737b62105c73ee406386359c02e022c451f4324",
    "bc8e65d42e247ff08808577b05e151ba33cee3bd92bf45db1a0a6a4f934d3957",
    "cf3f8c3195996ce636e17b9d3bbd0b8bc32215c8c4ce60e7a429d719c54f9057",
    "82be44f2406197f653f16533b1f4cbdf752def8eec7699734c43df7fb67f49eb",
    "56b523b389cea126826fcdb90a24ec26112f4189581e8d4c5318d829afc036bd",
    "25b3b9de8482b33ae32fcbe47e6366626fd419eaafdd6b030f20fdac7a7dc042",
    "f672a413c41f3c77cef18956545cd323b5df1a3667a64ec4be3c6bd9d6de4abf",
    "8dcdcecf88906857978b67fb31d2efe6f8943b758cc6c775a583f4343d8c770a",
)


class IMDBMulti(SplitDataset):
    r"""The IMDB-MULTI dataset of the `"Deep Graph Kernels"
    <https://dl.acm.org/doi/10.1145/2783258.2783417>`_ paper: 1,500 graphs, 500
    of each of three classes, 19,502 nodes and 98,903 undirected edges.

    A node has the single feature 1, an edge stands in both directions, and
    there are no self loops. The dataset has no fixed split: :meth:`folds` and
    :meth:`stratified_folds` give indices for cross-validation.

    Args:
        root (str or Path, optional): Where processed files go.
            If :obj:`None`, the folder :obj:`imdb_multi` in the cache.
        source (str, optional): :obj:`"text"` for :obj:`imdb_multi/IMDBMULTI.txt`
            as in the DGCNN code, downloaded if it is not there; :obj:`"tu"` for
            an unpacked :obj:`IMDB-MULTI` folder of the TU collection;
            :obj:`"pyg"` for :class:`~torch_geometric.datasets.TUDataset` and
            its own download. The two TU sources drop repeated edges and self
            loops, as PyG does. (default: :obj:`"text"`)
        data (str or Path, optional): The folder with real files.
            If :obj:`None`, :obj:`$FOGNN_DATA`.
        transform (callable, optional): Applied at every access.
        pre_transform (callable, optional): Applied before saving to disk.
        pre_filter (callable, optional): Says which graphs are kept.
    """

    def __init__(
        self,
        root: str | Path | None = None,
        source: str = "text",
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        if source not in ("text", "tu", "pyg"):
            raise ValueError(f"IMDBMulti: source must be 'text', 'tu' or 'pyg', got {source!r}")
        self._source, self._folder = source, data
        variant = f"{source}-{self._fingerprint()}-v1"
        super().__init__(root, "imdb_multi", variant, transform, pre_transform, pre_filter)

    def _fingerprint(self) -> str:
        r"""Ties the processed file to the raw one, so another raw file is read afresh."""
        if self._source == "pyg":
            return "official"
        sources = [TEXT] if self._source == "text" else _TU
        found = [find(source, self._folder) for source in sources]
        digests = [
            sha256_of(path) if path else source.sha256 or "none"
            for source, path in zip(sources, found, strict=True)
        ]
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:12]

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._source == "text":
            sizes, src, dst, y = read_text(fetch(TEXT, self._folder))
        elif self._source == "tu":
            sizes, src, dst, y = read_tu([fetch(source, self._folder) for source in _TU])
        else:
            folder = _download_tu(Path(self.root) / "pyg")
            sizes, src, dst, y = read_tu([folder / Path(source.path).name for source in _TU])
        start = np.concatenate([[0], np.cumsum(sizes)])
        order = np.lexsort((src, dst))
        src, dst = src[order], dst[order]
        graph = np.repeat(np.arange(len(sizes)), sizes)[dst]
        edges = np.concatenate([[0], np.cumsum(np.bincount(graph, minlength=len(sizes)))])
        tensors = {
            "x": torch.ones(int(start[-1]), 1),
            "edge_index": torch.from_numpy(np.stack([src, dst]) - start[graph]),
            "y": torch.from_numpy(y),
        }
        slices = {"x": start, "edge_index": edges, "y": np.arange(len(sizes) + 1)}
        return tensors, {key: torch.from_numpy(value) for key, value in slices.items()}

    def folds(self) -> list[tuple[Tensor, Tensor]]:
        r"""The ten folds that come with the text file: indices to train and to test on.

        They number the graphs of the text file, so they are there for
        :obj:`source="text"` and an unfiltered dataset only.
        """
        if self._source != "text" or self.pre_filter is not None:
            raise ValueError(
                "IMDBMulti.folds: the folds number the graphs of the whole text file; source must "
                f"be 'text', got {self._source!r}, and pre_filter must be None; "
                "use stratified_folds instead"
            )
        folds = []
        for fold, digests in enumerate(zip(_TRAIN_SHA256, _TEST_SHA256, strict=True), 1):
            paths = []
            for part, digest in zip(("train", "test"), digests, strict=True):
                name = f"10fold_idx/{part}_idx-{fold}.txt"
                paths.append(
                    fetch(Source(f"imdb_multi/{name}", f"{_URL}/{name}", digest), self._folder)
                )
            train, test = ([row[0] for _, row in integer_rows(path, 1)] for path in paths)
            if sorted(train + test) != list(range(self.len())):
                raise FileError(
                    f"{paths[0]} and {paths[1]} must name each of the {self.len()} graphs once, "
                    "they do not: get both files again"
                )
            folds.append((torch.tensor(train), torch.tensor(test)))
        return folds

    def stratified_folds(self, k: int = 10, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
        r"""Cuts the dataset into folds in which the classes are as even as can be.

        The order of the graphs comes from SHA-256 of seed and index, so a seed
        means the same folds on any machine and library version.

        Args:
            k (int, optional): Number of folds. (default: :obj:`10`)
            seed (int, optional): Which of the many cuts. (default: :obj:`0`)
        """
        labels = torch.cat([data.y for data in self]).tolist()
        smallest = min(labels.count(label) for label in set(labels))
        if not isinstance(k, int) or not 2 <= k <= smallest:
            raise ValueError(
                f"IMDBMulti.stratified_folds: k must be an int from 2 to {smallest}, the size of "
                f"the smallest class, got {k!r}"
            )
        if not isinstance(seed, int):
            raise ValueError(f"IMDBMulti.stratified_folds: seed must be an int, got {seed!r}")
        # Dealing the graphs out class by class, like cards, evens out classes and folds at once.
        dealt = sorted(
            range(len(labels)),
            key=lambda i: (labels[i], hashlib.sha256(f"{seed} {i}".encode()).digest()),
        )
        parts = [sorted(dealt[fold::k]) for fold in range(k)]
        return [
            (torch.tensor(sorted(set(dealt) - set(test))), torch.tensor(test)) for test in parts
        ]


def _download_tu(root: Path) -> Path:
    try:
        return Path(TUDataset(str(root), "IMDB-MULTI").raw_dir)
    except Exception as error:  # its download raises whatever its network library does
        raise FileError(
            f"PyG could not get IMDB-MULTI ({type(error).__name__}: {error}): check the network, "
            f"or use source='text', or source='tu' with its files in {cache_dir() / 'IMDB-MULTI'}"
        ) from error
