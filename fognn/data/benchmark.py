r"""The published graphs of PATTERN, CLUSTER and TSP, which PyG has."""

from pathlib import Path
from typing import Any

from torch_geometric.data import extract_zip
from torch_geometric.datasets import GNNBenchmarkDataset

from fognn.data.pyg_datasets import open_root
from fognn.data.sources import retrieve

__all__ = ["benchmark_graphs"]


class _Files(GNNBenchmarkDataset):
    r"""PyG's dataset, downloaded with certificates checked, which PyG does not do."""

    def download(self) -> None:
        archive = retrieve(self.urls[self.name], Path(self.raw_dir) / f"{self.name}.zip")
        extract_zip(str(archive), self.raw_dir)
        archive.unlink()


def benchmark_graphs(name: str, split: str, data: str | Path | None = None) -> Any:
    r"""Returns the published graphs of the "Benchmarking Graph Neural Networks" paper; PyG
    downloads them if they are neither in the data folder nor in the cache.

    Args:
        name (str): :obj:`"PATTERN"`, :obj:`"CLUSTER"` or :obj:`"TSP"`.
        split (str): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
        data (str or Path, optional): The data folder. (default: :obj:`$FOGNN_DATA`)
    """

    def opened(root: Path) -> Any:
        return _Files(str(root), name, split)

    hint = f"unpack {GNNBenchmarkDataset.urls[name]} into pyg/GNNBenchmarkDataset/{name}/raw"
    folder = f"GNNBenchmarkDataset-{name}"
    return open_root(name, folder, GNNBenchmarkDataset, opened, data, hint)
