"""Datasets of PyG by name, from roots filled by hand."""

import os
import warnings
from urllib.error import URLError

import pyg_roots
import pytest
import torch
import torch_geometric.datasets
from torch_geometric.data import Data, HeteroData, InMemoryDataset

from fognn.data import open_pyg, open_user_data
from fognn.utils.errors import FileError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()


def test_a_tu_dataset(tmp_path, monkeypatch):
    pyg_roots.tu_dataset(tmp_path / "data")
    with warnings.catch_warnings(action="error"):  # as of PyG, where it must load unsafely
        found = open_pyg("pyg:TUDataset/TINY", tmp_path / "data")
    assert list(found) == ["all"]
    assert len(found["all"]) == 40
    triangle, path = found["all"][:2]
    assert (triangle.num_edges, path.num_edges) == (6, 4)
    assert (triangle.y.tolist(), path.y.tolist()) == ([0], [1])
    assert triangle.x.tolist() == [[1, 0], [0, 1], [1, 0]]
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path / "data"))
    assert len(open_pyg("pyg:TUDataset/TINY")["all"]) == 40


def test_planetoid(tmp_path):
    pyg_roots.planetoid(tmp_path / "data")
    data = open_user_data("pyg:Planetoid/Cora", folder=tmp_path / "data")
    assert [len(part) for part in data.splits().values()] == [80, 500, 60]
    assert data.graphs[0].num_nodes == 660


def test_molecules_have_smiles(tmp_path):
    pytest.importorskip("rdkit")
    pyg_roots.esol(tmp_path / "data")
    data = open_user_data("pyg:MoleculeNet/ESOL", folder=tmp_path / "data")
    assert data.smiles[0] == "CCO"
    assert data.graphs[0].x.shape == (3, 9)
    assert data.graphs[0].edge_attr.shape == (4, 3)


def test_the_splits_of_a_class(tmp_path):
    pyg_roots.peptides(tmp_path / "data")
    found = open_pyg("pyg:LRGBDataset/Peptides-func", tmp_path / "data")
    assert {name: len(part) for name, part in found.items()} == {"train": 8, "val": 3, "test": 4}
    assert found["val"][0].y.shape == (1, 10)
    assert found["val"][0].x.dtype == torch.int64


class Own(InMemoryDataset):
    """A class as in torch_geometric.datasets; its items are set by a test."""

    items: tuple = ()

    def __init__(self, root: str, transform=None):
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


def test_hetero_data(own):
    own(Own, [HeteroData({"a": {"x": torch.ones(2, 1)}})])
    with pytest.raises(
        ValueError, match=r"pyg:Own, graph 0 must be a Data with .* one type.* HeteroData"
    ):
        open_user_data("pyg:Own")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pyg:TUDatset/PROTEINS", "'TUDatset'; did you mean 'TUDataset'"),
        ("pyg:", "unknown"),
        ("pyg:Planetoid", "data must have the form pyg:Planetoid/NAME, got 'pyg:Planetoid'"),
        ("pyg:Planetoid/..", "data must have the form pyg:Planetoid/NAME"),
        ("pyg:QM9/a", "data must have the form pyg:QM9, got 'pyg:QM9/a'"),
        ("pyg:KarateClub", "got 'pyg:KarateClub', which needs other arguments"),
    ],
)
def test_wrong_names(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        open_pyg(name)
    assert not (tmp_path / "cache").exists()


def test_a_download_that_fails_leaves_no_files(tmp_path, monkeypatch):
    def half(self):
        with open(os.path.join(self.raw_dir, "half.zip"), "w") as file:
            file.write("PK")
        raise URLError("no network")

    monkeypatch.setattr(torch_geometric.datasets.TUDataset, "download", half)
    message = r"pyg:TUDataset/NEW cannot be opened: URLError: .*no network.*FOGNN_DATA"
    with pytest.raises(FileError, match=message) as raised:
        open_pyg("pyg:TUDataset/NEW")
    assert "\n" not in str(raised.value)
    assert {path.suffix for path in (tmp_path / "cache" / "pyg").rglob("*")} == {".lock"}
