r"""PATTERN and CLUSTER: stochastic block model graphs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.datasets.flat import file_stamp, flatten, slices_of
from fognn.datasets.sbm_generator import (
    SBMGraphs,
    check_arguments,
    generate_cluster,
    generate_pattern,
)
from fognn.datasets.sources import Source, fetch
from fognn.datasets.split_dataset import SplitDataset
from fognn.datasets.unpickle import load_official

__all__ = ["CLUSTER", "PATTERN"]


class _SBM(SplitDataset):
    _generate: ClassVar[Callable[..., SBMGraphs]]

    def __init__(
        self,
        root: str | Path | None = None,
        split: str = "train",
        seed: int = 0,
        num_graphs: int | None = None,
        source: str = "generated",
        data: str | Path | None = None,
        transform: Callable[[Data], Any] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        pre_filter: Callable[[Data], bool] | None = None,
    ) -> None:
        name = type(self).__name__
        if source not in ("generated", "official"):
            raise ValueError(f"{name}: source must be 'generated' or 'official', got {source!r}")
        self._count = check_arguments(name, split, num_graphs, seed)
        self.split, self.seed, self._official = split, seed, None
        made = f"seed{seed}"
        if source == "official":
            self._official = fetch(_official_source(name), data)
            made = f"official-{file_stamp(self._official)}"
        variant = f"{name.lower()}-v1-{made}-{split}-{self._count}"
        super().__init__(root, name.lower(), variant, transform, pre_transform, pre_filter)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._official is not None:
            return self._read_official(self._official)
        graphs = type(self)._generate(self.split, self._count, self.seed)
        nodes, edges = slices_of(graphs.n), slices_of(graphs.e)
        tensors = {key: torch.from_numpy(getattr(graphs, key)) for key in ("x", "edge_index", "y")}
        return tensors, {"x": nodes, "edge_index": edges, "y": nodes}

    def _read_official(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        graphs = load_official(path)[self.split]
        if len(graphs) < self._count:
            raise ValueError(
                f"{type(self).__name__}: num_graphs must be at most {len(graphs)}, which is what "
                f"{path} holds for {self.split!r}, got {self._count}"
            )
        return flatten(
            {
                "x": graph.ndata["feat"].reshape(-1).long(),
                "edge_index": torch.stack([graph.src, graph.dst]),
                "y": graph.labels.reshape(-1).long(),
            }
            for graph in graphs[: self._count]
        )


def _official_source(name: str) -> Source:
    file = f"SBM_{name}.pkl"
    url = f"https://data.dgl.ai/dataset/benchmarking-gnns/{file}"
    return Source(f"SBMs/{file}", url, hint=f"get it from {url}")


class PATTERN(_SBM):
    r"""PATTERN of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: which nodes belong to a pattern
    that hides in a stochastic block model?

    See :meth:`~fognn.datasets.sbm_generator.generate_pattern` for the law of
    the graphs. Each has :obj:`x` (int64, ``[N]``, tokens 0 to 2),
    :obj:`edge_index` (both directions, no self loops, sorted by target, then
    source) and :obj:`y` (int64, ``[N]``, 0 or 1).

    Args:
        root (str or Path, optional): Where processed files go.
            (default: a folder in the cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`:
            10,000, 2,000 and 2,000 graphs.
        seed (int, optional): The seed of generated graphs. The same seed gives
            the same graphs on every machine.
        num_graphs (int, optional): Only the first graphs of the split.
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for
            the published file :obj:`SBMs/SBM_PATTERN.pkl` in the data folder.
        data (str or Path, optional): The data folder.
            (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access.
        pre_transform (callable, optional): Applied before saving to disk.
        pre_filter (callable, optional): Says which graphs are kept.
    """

    _generate = staticmethod(generate_pattern)


class CLUSTER(_SBM):
    r"""CLUSTER of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: to which of six blocks does each
    node belong, given one node of each?

    See :meth:`~fognn.datasets.sbm_generator.generate_cluster` for the law of
    the graphs. Each has :obj:`x` (int64, ``[N]``, tokens 0 to 6),
    :obj:`edge_index` (both directions, no self loops, sorted by target, then
    source) and :obj:`y` (int64, ``[N]``, 0 to 5).

    Args:
        root (str or Path, optional): Where processed files go.
            (default: a folder in the cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`:
            10,000, 1,000 and 1,000 graphs.
        seed (int, optional): The seed of generated graphs. The same seed gives
            the same graphs on every machine.
        num_graphs (int, optional): Only the first graphs of the split.
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for
            the published file :obj:`SBMs/SBM_CLUSTER.pkl` in the data folder.
        data (str or Path, optional): The data folder.
            (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access.
        pre_transform (callable, optional): Applied before saving to disk.
        pre_filter (callable, optional): Says which graphs are kept.
    """

    _generate = staticmethod(generate_cluster)
