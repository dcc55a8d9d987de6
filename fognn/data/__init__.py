r"""The datasets of the paper, readers for your own graphs, and loaders with sorted edges."""

from fognn.data.benchmark import TSP, ZINC, IMDBMulti
from fognn.data.catalog import CATALOG, DatasetInfo, dataset_info, where
from fognn.data.episodes import Episode, Episodes, Tasks
from fognn.data.generators import CLUSTER, PATTERN, generate_cluster, generate_pattern
from fognn.data.graph_files import read_graphs, write_graphs
from fognn.data.images import CIFARFS, ImageSet, MiniImageNet, Omniglot, read_image
from fognn.data.loaders import FullGraphLoader, NeighborLoader, PackedGraph, PackedLoader
from fognn.data.molecules import ATOMS, read_molecules, smiles_to_graph
from fognn.data.opening import open_user_data
from fognn.data.pyg_datasets import open_pyg
from fognn.data.statistics import describe
from fognn.data.user_data import UserData
from fognn.utils.errors import FileError

__all__ = [
    "ATOMS",
    "CATALOG",
    "CIFARFS",
    "CLUSTER",
    "PATTERN",
    "TSP",
    "ZINC",
    "DatasetInfo",
    "Episode",
    "Episodes",
    "FileError",
    "FullGraphLoader",
    "IMDBMulti",
    "ImageSet",
    "MiniImageNet",
    "NeighborLoader",
    "Omniglot",
    "PackedGraph",
    "PackedLoader",
    "Tasks",
    "UserData",
    "dataset_info",
    "describe",
    "generate_cluster",
    "generate_pattern",
    "open_pyg",
    "open_user_data",
    "read_graphs",
    "read_image",
    "read_molecules",
    "smiles_to_graph",
    "where",
    "write_graphs",
]
