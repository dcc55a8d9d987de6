r"""IMDB-MULTI: 1,500 ego-networks of actors, three genres, no features."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data
from torch_geometric.utils import is_undirected

from fognn.data.sources import Source, cache_dir, fetch, find, pyg_download
from fognn.data.split_dataset import SplitDataset, flatten
from fognn.utils import checks
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE, sha256_of

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
_NAME = "IMDB-MULTI"
_CLASSES = 3
_Graph = tuple[int, Tensor, int]  # nodes, edge_index, label
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
    indices for cross-validation.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        source (str, optional): :obj:`"text"` for :obj:`imdb_multi/IMDBMULTI.txt` as in the DGCNN
            code, downloaded if it is not there; :obj:`"tu"` for an unpacked :obj:`IMDB-MULTI`
            folder of the TU collection; :obj:`"pyg"` for
            :class:`~torch_geometric.datasets.TUDataset` and its own download. PyG drops repeated
            edges and self loops of a TU folder. (default: :obj:`"text"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether a graph is kept. (default: :obj:`None`)
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
        r"""Returns a digest of the raw files, so that changed files are read again."""
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
            graphs = list(_read_text(fetch(TEXT, self._folder)))
        elif self._source == "tu":
            graphs = _read_tu({fetch(source, self._folder).parent for source in _TU})
        else:
            root = Path(self.root) / "pyg"
            raw = root / "IMDB-MULTI" / "raw"
            instead = f"use source='text', or source='tu' with its files in {cache_dir() / _NAME}"
            with pyg_download(_NAME, root, raw / f"{_NAME}_A.txt", instead):
                TUDataset(str(root), _NAME)
            graphs = _read_tu({raw})
        return flatten(
            {"x": torch.ones(n, 1), "edge_index": edge_index, "y": torch.tensor([label])}
            for n, edge_index, label in graphs
        )

    def folds(self) -> list[tuple[Tensor, Tensor]]:
        r"""Returns the ten folds that come with the text file: indices to train and to test on.

        They number the graphs of the text file: :obj:`source` must be :obj:`"text"` and
        :obj:`pre_filter` must be :obj:`None`.
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
            train, test = ([row[0] for _, row in _integer_rows(path, 1)] for path in paths)
            if sorted(train + test) != list(range(self.len())):
                raise FileError(
                    f"{paths[0]} and {paths[1]} must name each of the {self.len()} graphs once, "
                    "they do not: get both files again"
                )
            folds.append((torch.tensor(train), torch.tensor(test)))
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
        if not isinstance(k, int) or not 2 <= k <= smallest:
            raise ValueError(
                f"IMDBMulti.stratified_folds: k must be an int from 2 to {smallest}, the size of "
                f"the smallest class, got {k!r}"
            )
        if not isinstance(seed, int):
            raise ValueError(f"IMDBMulti.stratified_folds: seed must be an int, got {seed!r}")
        # Taking every k-th graph, class after class, gives folds and classes of even size.
        ordered = sorted(
            range(len(labels)),
            key=lambda i: (labels[i], hashlib.sha256(f"{seed} {i}".encode()).digest()),
        )
        parts = [sorted(ordered[fold::k]) for fold in range(k)]
        return [
            (torch.tensor(sorted(set(ordered) - set(test))), torch.tensor(test)) for test in parts
        ]


def _bad(path: Path, line: int, what: str) -> NoReturn:
    raise FileError(f"{path}, line {line}: {what}; remove the file and get it again")


def _integer_rows(path: Path, width: int | None = None) -> Iterator[tuple[int, list[int]]]:
    r"""Yields each line's number and its integers, which blanks separate."""
    with open(path, encoding="ascii", errors="replace") as file:
        for line, text in enumerate(file, 1):
            try:
                row = [int(word) for word in text.split()]
            except ValueError:
                _bad(path, line, f"expected integers, got {text.strip()[:60]!r}")
            if width is not None and len(row) != width:
                _bad(path, line, f"expected {width} integers, got {len(row)}")
            yield line, row


def _read_text(path: Path) -> Iterator[_Graph]:
    r"""Reads: number of graphs; a graph: nodes, label; a node: tag, degree, neighbours."""
    rows = _integer_rows(path)
    line = 0

    def following(what: str) -> list[int]:
        nonlocal line
        line, row = next(rows, (line + 1, None))
        if row is None:
            _bad(path, line, f"the file ends, expected {what}")
        return row

    count = following("the number of graphs")
    if len(count) != 1 or count[0] < 1:
        _bad(path, line, f"expected the number of graphs, got {count}")
    for _ in range(count[0]):
        header = following("a graph's nodes and label")
        if len(header) != 2 or header[0] < 1 or header[1] not in range(_CLASSES):
            _bad(path, line, f"expected nodes and a label from 0 to {_CLASSES - 1}, got {header}")
        (size, label), top = header, line + 1
        around = []
        for node in range(size):
            row = following(f"the neighbours of node {node}")
            if len(row) < 2 or row[1] != len(row) - 2:
                _bad(path, line, "expected tag, degree and as many neighbours as the degree says")
            around.append(set(row[2:]))
            if len(around[-1]) != row[1] or node in around[-1]:
                _bad(path, line, f"node {node} has a neighbour twice, or itself as a neighbour")
            if around[-1] and not 0 <= min(around[-1]) <= max(around[-1]) < size:
                _bad(path, line, f"node {node} has a neighbour that is not in 0..{size - 1}")
        for node, others in enumerate(around):
            for other in others:
                if node not in around[other]:
                    _bad(path, top + node, f"node {other} does not name node {node} in return")
        edges = [(other, node) for node, others in enumerate(around) for other in others]
        yield size, torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t(), label
    if any(row for _, row in rows):
        _bad(path, line + 1, f"expected the end of the file after {count[0]} graphs")


def _read_tu(folders: set[Path]) -> list[_Graph]:
    r"""Reads a folder of the TU collection with PyG, which does not check its content."""
    if len(folders) > 1:
        raise FileError(f"the files of {_NAME} must be in one folder, they are in {folders}")
    (folder,) = folders
    try:
        data, slices, _ = read_tu_data(str(folder), _NAME)
        sizes = slices["x"].diff().tolist() if "x" in slices else data._num_nodes
        counts = slices["edge_index"].diff().tolist()
        counts += [0] * (len(sizes) - len(counts))  # PyG forgets last graphs that have no edges
        edges = data.edge_index.split(counts, dim=1)
        if not len(sizes) == len(edges) == len(data.y):
            raise ValueError(f"{len(sizes)} graphs and {len(data.y)} labels")
        for number, (size, edge_index) in enumerate(zip(sizes, edges, strict=True), 1):
            if checks.outside(edge_index, size) is not None:
                raise ValueError(f"graph {number} has an edge to a node that it does not have")
            if not is_undirected(edge_index, num_nodes=size):
                raise ValueError(f"graph {number} has an edge in one direction only")
        if int(data.y.max()) + 1 != _CLASSES:
            raise ValueError(f"{int(data.y.max()) + 1} classes, expected {_CLASSES}")
    except DAMAGE as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise FileError(
            f"{folder} is not a whole TU folder of {_NAME} ({reason}): remove it and get it again"
        ) from error
    return list(zip(sizes, edges, data.y.tolist(), strict=True))
