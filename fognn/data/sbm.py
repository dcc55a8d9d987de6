r"""PATTERN and CLUSTER: stochastic block model graphs."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from fognn.data.benchmark import benchmark_graphs
from fognn.data.sbm_generator import (
    SBMGraphs,
    check_arguments,
    generate_cluster,
    generate_pattern,
)
from fognn.data.split_dataset import SplitDataset, flatten, slices_of
from fognn.utils import checks

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
        checks.one_of(name, "source", source, ("generated", "official"))
        self._count = check_arguments(name, split, num_graphs, seed)
        self.split, self.seed, self.source, self._folder = split, seed, source, data
        made = f"seed{seed}" if source == "generated" else "official"
        variant = f"{name.lower()}-v1-{made}-{split}-{self._count}"
        super().__init__(root, name.lower(), variant, transform, pre_transform, pre_filter)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self.source == "official":
            graphs = benchmark_graphs(type(self).__name__, self.split, self._folder)
            return flatten(
                {"x": _tokens(graph.x), "edge_index": graph.edge_index, "y": graph.y.long()}
                for graph in islice(graphs, self._count)
            )
        made = type(self)._generate(self.split, self._count, self.seed)
        nodes, edges = slices_of(made.n), slices_of(made.e)
        tensors = {key: torch.from_numpy(getattr(made, key)) for key in ("x", "edge_index", "y")}
        return tensors, {"x": nodes, "edge_index": edges, "y": nodes}


def _tokens(x: Tensor) -> Tensor:
    # PyG's file has the tokens one-hot.
    return x.argmax(1) if x.dim() == 2 and x.size(1) > 1 else x.reshape(-1).long()


class PATTERN(_SBM):
    r"""PATTERN of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: which nodes belong to a pattern
    that is hidden in a stochastic block model?

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 2), :obj:`edge_index` (both directions,
    no self loops, sorted by target, then source) and :obj:`y` (int64, ``[N]``, 0 or 1).
    :meth:`~fognn.data.generate_pattern` describes how graphs are generated.

    Args:
        root (str or Path, optional): The folder for processed files. (default: a folder in the
            cache)
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`: 10,000, 2,000 and
            2,000 graphs. (default: :obj:`"train"`)
        seed (int, optional): The seed of generated graphs. The same seed gives the same graphs on
            every machine. (default: :obj:`0`)
        num_graphs (int, optional): Only the first graphs of the split. (default: :obj:`None`)
        source (str, optional): :obj:`"generated"`, or :obj:`"official"` for the published graphs
            of :class:`~torch_geometric.datasets.GNNBenchmarkDataset`.
            (default: :obj:`"generated"`)
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
        transform (callable, optional): Applied at every access. (default: :obj:`None`)
        pre_transform (callable, optional): Applied before saving to disk. (default: :obj:`None`)
        pre_filter (callable, optional): Returns whether a graph is kept. (default: :obj:`None`)
    """

    _generate = staticmethod(generate_pattern)


class CLUSTER(_SBM):
    r"""CLUSTER of the `"Benchmarking Graph Neural Networks"
    <https://arxiv.org/abs/2003.00982>`_ paper: to which of six blocks does each
    node belong, given one node of each?

    Each graph has :obj:`x` (int64, ``[N]``, tokens 0 to 6), :obj:`edge_index` and :obj:`y` (int64,
    ``[N]``, 0 to 5). :meth:`~fognn.data.generate_cluster` describes how graphs are generated. The
    arguments are those of :class:`PATTERN`; the splits have 10,000, 1,000 and 1,000 graphs.
    """

    _generate = staticmethod(generate_cluster)
