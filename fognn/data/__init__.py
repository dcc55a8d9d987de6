r"""The datasets of the paper, readers for graphs of your own, and loaders whose batches have sorted
edges."""

from fognn.data.catalog import CATALOG, DatasetInfo, Fact, dataset_info, where
from fognn.data.correlation import generate_correlation
from fognn.data.episodes import Episode, Episodes, EpisodeSampler, Tasks
from fognn.data.few_shot import CIFARFS, ImageSet
from fognn.data.full_graph import FullGraphLoader, NeighborLoader, PackedGraph
from fognn.data.graph_files import read_graphs, write_graphs
from fognn.data.image_files import read_image
from fognn.data.imdb import IMDBMulti
from fognn.data.mini_imagenet import MiniImageNet
from fognn.data.molecules import ATOMS, penalised_logp, smiles_to_graph
from fognn.data.neighbors import Neighborhood, NeighborSampler
from fognn.data.omniglot import Omniglot
from fognn.data.packed import PackedLoader
from fognn.data.pyg_datasets import open_pyg
from fognn.data.sbm import CLUSTER, PATTERN
from fognn.data.sbm_generator import generate_cluster, generate_pattern
from fognn.data.single_graph import is_single_graph, read_single_graph
from fognn.data.smiles_csv import BadLine, read_smiles_csv
from fognn.data.sources import Source, cache_dir, data_dir, fetch, find
from fognn.data.split_dataset import SplitDataset
from fognn.data.splits import scaffold_split
from fognn.data.statistics import count
from fognn.data.tsp import TSP
from fognn.data.tsp_generator import generate_tsp
from fognn.data.zinc import ZINC
from fognn.utils.errors import FileError
from fognn.utils.files import write_whole

__all__ = [
    "ATOMS",
    "CATALOG",
    "CIFARFS",
    "CLUSTER",
    "PATTERN",
    "TSP",
    "ZINC",
    "BadLine",
    "DatasetInfo",
    "Episode",
    "EpisodeSampler",
    "Episodes",
    "Fact",
    "FileError",
    "FullGraphLoader",
    "IMDBMulti",
    "ImageSet",
    "MiniImageNet",
    "NeighborLoader",
    "NeighborSampler",
    "Neighborhood",
    "Omniglot",
    "PackedGraph",
    "PackedLoader",
    "Source",
    "SplitDataset",
    "Tasks",
    "cache_dir",
    "count",
    "data_dir",
    "dataset_info",
    "fetch",
    "find",
    "generate_cluster",
    "generate_correlation",
    "generate_pattern",
    "generate_tsp",
    "is_single_graph",
    "open_pyg",
    "penalised_logp",
    "read_graphs",
    "read_image",
    "read_single_graph",
    "read_smiles_csv",
    "scaffold_split",
    "smiles_to_graph",
    "where",
    "write_graphs",
    "write_whole",
]
