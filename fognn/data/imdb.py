r"""IMDB-MULTI: 1,500 ego-networks of actors, three genres, no features."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.sources import Source, fetch
from fognn.data.split_dataset import SplitDataset, file_stamp, flatten
from fognn.utils.errors import FileError

__all__ = ["TEXT", "IMDBMulti"]

_URL = "https://raw.githubusercontent.com/muhanzhang/pytorch_DGCNN/master/data/IMDBMULTI"
TEXT = Source(
    "imdb_multi/IMDBMULTI.txt",
    f"{_URL}/IMDBMULTI.txt",
    "f4cc1b32112303bf1b16a8351df8b8073978fdead823775fbe79e60cf94e7009",
)
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
    <https://dl.acm.org/doi/10.1145/2783258.2783417>`_ paper: 1,500 graphs, 500 of each of three
    classes, 19,502 nodes and 98,903 undirected edges.

    A node has the single feature 1, each edge is there in both directions, and there are no self
    loops. The dataset has no fixed split: :meth:`folds` and :meth:`stratified_folds` return
    indices for cross-validation. It is read from :obj:`imdb_multi/IMDBMULTI.txt` as in the DGCNN
    code, which has the ten folds and is downloaded if it is not there.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether a graph is kept. (default: :obj:`None`)
    """

    def __init__(
        self,
        root: str | Path | None = None,
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        self._folder = data
        self._path = fetch(TEXT, data)
        variant = f"text-{file_stamp(self._path)}-v1"
        super().__init__(root, "imdb_multi", variant, transform, pre_transform, pre_filter)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return flatten(
            {"x": torch.ones(n, 1), "edge_index": edge_index, "y": torch.tensor([label])}
            for n, edge_index, label in _read_text(self._path)
        )

    def folds(self) -> list[tuple[Tensor, Tensor]]:
        r"""Returns the ten folds that come with the text file: indices to train and to test on.

        They number the graphs of the text file: :obj:`pre_filter` must be :obj:`None`.
        """
        if self.pre_filter is not None:
            raise ValueError("IMDBMulti.folds: pre_filter must be None, use stratified_folds")
        folds = []
        for fold, digests in enumerate(zip(_TRAIN_SHA256, _TEST_SHA256, strict=True), 1):
            parts = []
            for part, digest in zip(("train", "test"), digests, strict=True):
                name = f"10fold_idx/{part}_idx-{fold}.txt"
                source = Source(f"imdb_multi/{name}", f"{_URL}/{name}", digest)
                text = fetch(source, self._folder).read_text(encoding="ascii")
                parts.append(torch.tensor([int(word) for word in text.split()]))
            if not torch.equal(torch.cat(parts).sort().values, torch.arange(self.len())):
                raise FileError(
                    f"fold {fold} of IMDB-MULTI must name each graph once: get it again"
                )
            folds.append((parts[0], parts[1]))
        return folds

    def stratified_folds(self, k: int = 10, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
        r"""Divides the dataset into folds with as even a number of each class as possible.

        The order of the graphs comes from SHA-256 of seed and index, so a seed gives the same
        folds on any machine and with any version of a library.

        Args:
            k (int, optional): Number of folds. (default: :obj:`10`)
            seed (int, optional): Seed of the order. (default: :obj:`0`)
        """
        labels = torch.cat([data.y for data in self]).tolist()
        smallest = min(labels.count(label) for label in set(labels))
        if not 2 <= k <= smallest:
            raise ValueError(
                f"IMDBMulti.stratified_folds: k must be an int from 2 to {smallest}, the size of "
                f"the smallest class, got {k!r}"
            )
        # Taking every k-th graph, class after class, gives folds and classes of even size.
        ordered = sorted(
            range(len(labels)),
            key=lambda i: (labels[i], hashlib.sha256(f"{seed} {i}".encode()).digest()),
        )
        parts = [sorted(ordered[fold::k]) for fold in range(k)]
        return [
            (torch.tensor(sorted(set(ordered) - set(test))), torch.tensor(test)) for test in parts
        ]


def _read_text(path: Path) -> Iterator[tuple[int, Tensor, int]]:
    r"""Reads: number of graphs; a graph: nodes, label; a node: tag, degree, neighbours."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        rows = iter([int(word) for word in line.split()] for line in lines)
        for _ in range(next(rows)[0]):
            size, label = next(rows)
            pairs = [(other, node) for node in range(size) for other in next(rows)[2:]]
            edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
            graph = Data(edge_index=edge_index, num_nodes=size)
            graph.validate()
            if not graph.is_undirected():
                raise ValueError("an edge is there in one direction only")
            yield size, edge_index, label
    except (ValueError, StopIteration, RuntimeError) as error:
        raise FileError(f"{path} is truncated or corrupt ({error}): get it again") from error
