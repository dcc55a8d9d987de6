r"""The datasets of the paper as PyG datasets, and readers for graphs of your own."""

from fognn.datasets.catalog import CATALOG, DatasetInfo, Fact, dataset_info, where
from fognn.datasets.correlation import generate_correlation
from fognn.datasets.episodes import Episode, Episodes, EpisodeSampler, Tasks
from fognn.datasets.few_shot import CIFARFS, ImageSet
from fognn.datasets.graph_files import read_graphs, write_graphs
from fognn.datasets.image_files import read_image
from fognn.datasets.imdb import IMDBMulti
from fognn.datasets.mini_imagenet import MiniImageNet
from fognn.datasets.molecules import ATOMS, penalised_logp, smiles_to_graph
from fognn.datasets.omniglot import Omniglot
from fognn.datasets.pyg_datasets import open_pyg
from fognn.datasets.sbm import CLUSTER, PATTERN
from fognn.datasets.sbm_generator import generate_cluster, generate_pattern
from fognn.datasets.single_graph import is_single_graph, read_single_graph
from fognn.datasets.smiles_csv import BadLine, read_smiles_csv
from fognn.datasets.sources import Source, cache_dir, data_dir, fetch, find
from fognn.datasets.split_dataset import SplitDataset
from fognn.datasets.splits import scaffold_split
from fognn.datasets.statistics import count
from fognn.datasets.tsp import TSP
from fognn.datasets.tsp_generator import generate_tsp
from fognn.datasets.zinc import ZINC
from fognn.utils.errors import FileError
from fognn.utils.files import unzip, write_whole

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
    "IMDBMulti",
    "ImageSet",
    "MiniImageNet",
    "Omniglot",
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
    "unzip",
    "where",
    "write_graphs",
    "write_whole",
]
