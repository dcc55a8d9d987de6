"""Datasets of PyG by name, from roots filled by hand."""

import os
from urllib.error import URLError

import pyg_roots
import pytest
import torch
import torch_geometric.datasets
from torch_geometric.data import Data, HeteroData, InMemoryDataset

from fognn.data.pyg_datasets import is_pyg_name, open_pyg, pyg_root
from fognn.data.single_graph import single_graph
from fognn.utils.errors import FileError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()


def test_names():
    assert is_pyg_name("pyg:TUDataset/PROTEINS")
    assert not is_pyg_name("./pyg:TUDataset/PROTEINS")
    assert not is_pyg_name("zinc")


def test_a_tu_dataset(tmp_path, monkeypatch):
    pyg_roots.tu_dataset(tmp_path / "data")
    found = open_pyg("pyg:TUDataset/TINY", tmp_path / "data")
    assert list(found) == ["all"]
    assert len(found["all"]) == 40
    triangle, path = found["all"][:2]
    assert (triangle.num_edges, path.num_edges) == (6, 4)
    assert (triangle.y.tolist(), path.y.tolist()) == ([0], [1])
    assert triangle.x.tolist() == [[1, 0], [0, 1], [1, 0]]
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path / "data"))
    assert len(open_pyg("pyg:TUDataset/TINY")["all"]) == 40


def test_a_tu_dataset_without_node_features(tmp_path):
    pyg_roots.tu_dataset(tmp_path / "data", labels=False)
    graph = open_pyg("pyg:TUDataset/TINY", tmp_path / "data")["all"][0]
    assert "x" not in graph
    assert graph.num_nodes == 3


def test_planetoid(tmp_path):
    pyg_roots.planetoid(tmp_path / "data")
    found = open_pyg("pyg:Planetoid/Cora", tmp_path / "data")
    (graph,) = found["all"]
    masked = single_graph("pyg:Planetoid/Cora", graph.to_dict())
    masks = (masked.train_mask, masked.val_mask, masked.test_mask)
    assert [int(mask.sum()) for mask in masks] == [80, 500, 60]
    assert masked.num_nodes == 660


def test_molecules_have_smiles(tmp_path):
    pytest.importorskip("rdkit")
    pyg_roots.esol(tmp_path / "data")
    graphs = open_pyg("pyg:MoleculeNet/ESOL", tmp_path / "data")["all"]
    assert graphs[0].smiles == "CCO"
    assert graphs[0].x.shape == (3, 9)
    assert graphs[0].edge_attr.shape == (4, 3)
    assert graphs[0].y.tolist() == [[1.5]]


def test_the_whole_of_esol(real_data, tmp_path):
    pytest.importorskip("rdkit")
    raw = tmp_path / "cache" / "pyg" / "MoleculeNet" / "esol" / "raw"
    raw.mkdir(parents=True)
    file = real_data / "moleculenet" / "ESOL_delaney-processed.csv"
    (raw / "delaney-processed.csv").write_bytes(file.read_bytes())
    assert len(open_pyg("pyg:MoleculeNet/ESOL")["all"]) == 1128


def test_the_splits_of_a_class(tmp_path):
    pyg_roots.peptides(tmp_path / "data")
    found = open_pyg("pyg:LRGBDataset/Peptides-func", tmp_path / "data")
    assert {split: len(graphs) for split, graphs in found.items()} == {
        "train": 8,
        "val": 3,
        "test": 4,
    }
    assert found["val"][0].y.shape == (1, 10)
    assert found["val"][0].y.dtype == torch.float32
    assert found["val"][0].x.dtype == torch.int64


class Own(InMemoryDataset):
    """A class as in torch_geometric.datasets; its items are set by a test."""

    items: tuple = ()

    def __init__(self, root, transform=None):
        super().__init__(root, transform)
        self.data, self.slices = self.collate(self.items)


class TrainAndTest(Own):
    def __init__(self, root: str, train: bool = True):
        super().__init__(root)
        if not train:
            self.data, self.slices = self.collate(self.items[:1])


class Several(Own):
    def __init__(self, root: str, name: str, feature: str, split: str = "public"):
        assert (name, feature, split) == ("politifact", "bert", "public")
        super().__init__(root)


@pytest.fixture
def own(monkeypatch):
    def add(kind, items):
        monkeypatch.setattr(kind, "items", items)
        monkeypatch.setattr(torch_geometric.datasets, kind.__name__, kind, raising=False)
        names = [*torch_geometric.datasets.__all__, kind.__name__]
        monkeypatch.setattr(torch_geometric.datasets, "__all__", names)

    return add


GRAPH = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0]))


def test_a_class_with_train_and_test(own):
    own(TrainAndTest, [GRAPH] * 3)
    found = open_pyg("pyg:TrainAndTest")
    assert {split: len(graphs) for split, graphs in found.items()} == {"train": 3, "test": 1}


def test_several_arguments(own):
    own(Several, [GRAPH])
    assert list(open_pyg("pyg:Several/politifact/bert")) == ["all"]
    with pytest.raises(ValueError, match="form pyg:Several/NAME/FEATURE, got 'pyg:Several/a'"):
        open_pyg("pyg:Several/a")


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([HeteroData({"a": {"x": torch.ones(2, 1)}})], "got HeteroData as its item 0"),
        ([Data(pos=torch.ones(2, 3))], "got Data without edge_index as its item 0"),
    ],
)
def test_items_that_are_no_graphs(own, items, found):
    own(Own, items)
    with pytest.raises(ValueError, match=f"pyg:Own must be a dataset of Data .*{found}"):
        open_pyg("pyg:Own")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pyg:TUDatset/PROTEINS", "got 'TUDatset'; did you mean 'TUDataset'"),
        ("pyg:planetoid/Cora", "got 'planetoid'; did you mean 'Planetoid'"),
        ("pyg:", "got ''; known: KarateClub, TUDataset"),
        ("pyg:Planetoid", "data must have the form pyg:Planetoid/NAME, got 'pyg:Planetoid'"),
        ("pyg:Planetoid/", "data must have the form pyg:Planetoid/NAME, got 'pyg:Planetoid/'"),
        ("pyg:Planetoid/..", "data must have the form pyg:Planetoid/NAME"),
        ("pyg:QM9/a", "data must have the form pyg:QM9, got 'pyg:QM9/a'"),
        ("pyg:MoleculeNet/ESLO", "got 'ESLO'; did you mean 'esol'"),
        ("pyg:KarateClub", "with a root folder, got 'pyg:KarateClub', which PyG generates"),
        ("pyg:StochasticBlockModelDataset", "which needs block_sizes, edge_probs"),
    ],
)
def test_wrong_names(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        open_pyg(name)
    assert not (tmp_path / "cache").exists()


def no_network(*args, **options):
    raise URLError("no network")


def test_a_download_that_fails_leaves_no_files(tmp_path, monkeypatch):
    def half(self):
        with open(os.path.join(self.raw_dir, "half.zip"), "w") as file:
            file.write("PK")
        no_network()

    monkeypatch.setattr(torch_geometric.datasets.TUDataset, "download", half)
    root = tmp_path / "cache" / "pyg" / "TUDataset"
    message = r"PyG could not open pyg:TUDataset/NEW with the root .* \(URLError: .*no network"
    with pytest.raises(FileError, match=message) as raised:
        open_pyg("pyg:TUDataset/NEW")
    assert "\n" not in str(raised.value)
    assert not root.exists()
    # Files that were there before stay.
    pyg_roots.tu_dataset(tmp_path / "cache")
    before = sorted(root.rglob("*"))
    with pytest.raises(FileError, match="could not open pyg:TUDataset/NEW"):
        open_pyg("pyg:TUDataset/NEW")
    assert sorted(root.rglob("*")) == before
    assert len(open_pyg("pyg:TUDataset/TINY")["all"]) == 40


def test_the_root(tmp_path):
    cache = tmp_path / "cache" / "pyg" / "TUDataset"
    assert pyg_root("pyg:TUDataset/TINY", tmp_path / "data") == cache
    pyg_roots.tu_dataset(tmp_path / "data")
    own = tmp_path / "data" / "pyg" / "TUDataset"
    assert pyg_root("pyg:TUDataset/TINY", tmp_path / "data") == own
    # Another one would be downloaded, and not into the user's folder.
    assert pyg_root("pyg:TUDataset/OTHER", tmp_path / "data") == cache
    (tmp_path / "data" / "pyg" / "QM9").mkdir()
    assert pyg_root("pyg:QM9", tmp_path / "data") == tmp_path / "data" / "pyg" / "QM9"


class Touch:
    """A file with it in makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["data.pt", "pre_transform.pt", "pre_filter.pt"])
def test_a_processed_file_runs_nothing(tmp_path, name):
    pyg_roots.tu_dataset(tmp_path)
    first = open_pyg("pyg:TUDataset/TINY", tmp_path)["all"]
    assert len(open_pyg("pyg:TUDataset/TINY", tmp_path)["all"]) == len(first)
    processed = tmp_path / "pyg" / "TUDataset" / "TINY" / "processed"
    assert (processed / name).exists()
    torch.save(Touch(tmp_path / "made"), processed / name)
    with pytest.raises(FileError, match=r"pyg:TUDataset/TINY.*mkdir"):
        open_pyg("pyg:TUDataset/TINY", tmp_path)
    assert not (tmp_path / "made").exists()
