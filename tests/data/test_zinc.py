import os
import pickle
import urllib.error
import urllib.request

import networkx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.utils import to_networkx

from fognn.data import ZINC
from fognn.utils.errors import FileError

KEYS = ("n", "e", "x", "edge_index", "edge_attr", "y")
# Two molecules: water and carbon dioxide, without hydrogens.
SMALL = {
    "n": np.array([1, 3], dtype=np.int16),
    "e": np.array([0, 4], dtype=np.int16),
    "x": np.array([1, 1, 0, 1], dtype=np.int8),
    "edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]], dtype=np.int8),
    "edge_attr": np.array([2, 2, 2, 2], dtype=np.int8),
    "y": np.array([0.5, -0.5], dtype=np.float32),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))


def write(folder, arrays=SMALL, name="zinc12k.npz"):
    path = folder / "zinc" / name
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **{f"train_{key}": value for key, value in arrays.items()})
    return path


def isomorphic(one, other) -> bool:
    graphs = [to_networkx(data, ["x"], ["edge_attr"], to_undirected=True) for data in (one, other)]
    return networkx.is_isomorphic(
        *graphs, node_match=lambda a, b: a == b, edge_match=lambda a, b: a == b
    )


@pytest.mark.parametrize(
    ("split", "count", "nodes", "edges", "y"),
    [
        ("train", 10_000, 29, 64, 0.835036),
        ("val", 1_000, 35, 78, 0.629916),
        ("test", 1_000, 16, 34, 1.997326),
    ],
)
def test_published_facts(tmp_path, real_data, split, count, nodes, edges, y):
    data = ZINC(tmp_path, split, source="npz", data=real_data)
    assert len(data) == count
    assert data[0].num_nodes == nodes
    assert data[0].num_edges == edges
    assert data[0].y.shape == (1,)
    assert data[0].y.item() == pytest.approx(y, abs=1e-6)
    assert data[0].x.dtype == data[0].edge_attr.dtype == data[0].edge_index.dtype == torch.int64
    assert data[0].x.dim() == data[0].edge_attr.dim() == 1
    assert set(data.edge_attr.unique().tolist()) == {1, 2, 3}
    assert int(data.x.max()) <= 27


def test_published_means(tmp_path, real_data):
    data = {s: ZINC(tmp_path, s, data=real_data) for s in ("train", "val", "test")}
    assert data["train"].source == "npz"
    nodes = sum(len(split.x) for split in data.values()) / 12_000
    edges = sum(len(split.edge_attr) for split in data.values()) / 12_000
    assert round(nodes, 3) == 23.155
    assert round(edges, 3) == 49.831
    assert set(data["train"].x.unique().tolist()) <= set(range(28))
    for split, mean, deviation in (("train", 0.0153, 2.0109), ("test", 0.0124, 2.0180)):
        assert round(data[split].y.mean().item(), 4) == mean
        assert data[split].y.std().item() == pytest.approx(deviation, abs=1e-4)


def same_molecules(root, real_data, split):
    prepared = ZINC(root, split, source="npz", data=real_data)
    rebuilt = ZINC(root, split, source="smiles", data=real_data)
    # Stronger than asked: the files have even the same order of atoms.
    for key in ("x", "edge_index", "edge_attr"):
        assert torch.equal(prepared._data[key], rebuilt._data[key]), key
        assert torch.equal(prepared.slices[key], rebuilt.slices[key]), key
    assert torch.allclose(prepared.y, rebuilt.y, atol=1e-6, rtol=0)


@pytest.mark.parametrize("split", ["val", "test"])
def test_smiles_equal_npz(tmp_path, real_data, split):
    pytest.importorskip("rdkit")
    same_molecules(tmp_path, real_data, split)


@pytest.mark.slow
def test_smiles_equal_npz_on_the_training_set(tmp_path, real_data):
    pytest.importorskip("rdkit")
    same_molecules(tmp_path, real_data, "train")


def test_edges(tmp_path, real_data):
    for graph in ZINC(tmp_path, "val", data=real_data)[:200]:
        source, target = graph.edge_index
        assert (target * graph.num_nodes + source).diff().gt(0).all()
        assert graph.is_undirected()


def write_pyg(folder, molecules):
    """Writes the raw files of PyG's ZINC, with the atoms of each molecule in another order."""
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(0)
    raw = []
    for graph in molecules:
        n = graph.num_nodes
        order = torch.randperm(n, generator=generator)
        bonds = torch.zeros(n, n, dtype=torch.int64)
        bonds[order[graph.edge_index[0]], order[graph.edge_index[1]]] = graph.edge_attr
        atoms = torch.empty_like(graph.x)
        atoms[order] = graph.x
        raw.append(
            {
                "num_atom": n,
                "atom_type": atoms,
                "bond_type": bonds,
                "logP_SA_cycle_normalized": graph.y,
            }
        )
    for split in ("train", "val", "test"):
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(raw))
        (folder / f"{split}.index").write_text(",".join(map(str, range(len(raw)))) + "\n")


def test_pyg_gives_equal_graphs_up_to_node_order(tmp_path, real_data, monkeypatch):
    prepared = ZINC(tmp_path, "val", source="npz", data=real_data)[:150]
    root = tmp_path / "other"
    write_pyg(root / "pyg" / "raw", prepared)
    # Its files are there, so "auto" takes them too.
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    for source in ("pyg", "auto"):
        data = ZINC(root, "val", source=source)
        assert data.source == "pyg"
        assert len(data) == 150
    moved = 0
    for one, other in zip(prepared, data, strict=True):
        assert isomorphic(one, other)
        assert torch.equal(one.y, other.y)
        assert other.x.dim() == 1
        key = other.edge_index[1] * other.num_nodes + other.edge_index[0]
        assert key.diff().gt(0).all()
        moved += one.x.tolist() != other.x.tolist()
    assert moved > 100
    assert not isomorphic(prepared[0], prepared[1])


def test_pyg_without_network(tmp_path, monkeypatch):
    def offline(*_, **__):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", offline)
    with pytest.raises(FileError, match=r"PyG could not get ZINC .*no network.*FOGNN_DATA"):
        ZINC(tmp_path, source="pyg")
    assert list(tmp_path.glob("processed/*.pt")) == []


def test_pyg_loses_the_network_half_way(tmp_path, monkeypatch):
    # The molecules are there, the second list of molecules never comes.
    raw = tmp_path / "pyg" / "raw"
    raw.mkdir(parents=True)
    for split in ("train", "val", "test"):
        (raw / f"{split}.pickle").write_bytes(pickle.dumps([]))
    (raw / "train.index").write_text("0\n")

    def offline(*_, **__):
        raise urllib.error.URLError("gone")

    monkeypatch.setattr(urllib.request, "urlopen", offline)
    with pytest.raises(FileError, match="gone"):
        ZINC(tmp_path, source="pyg")
    assert not raw.exists()


def test_pyg_damaged_files_are_kept_for_the_user_to_remove(tmp_path, real_data):
    write_pyg(tmp_path / "pyg" / "raw", ZINC(tmp_path, "val", data=real_data)[:3])
    (tmp_path / "pyg" / "raw" / "train.pickle").write_bytes(b"half")
    with pytest.raises(FileError, match=r"PyG could not get ZINC .* remove .*pyg"):
        ZINC(tmp_path, source="pyg")
    assert (tmp_path / "pyg" / "raw" / "val.pickle").exists()


def test_pyg_half_downloaded_archive_is_removed(tmp_path):
    archive = tmp_path / "pyg" / "molecules.zip"
    archive.parent.mkdir()
    archive.write_bytes(b"PK half")
    with pytest.raises(FileError, match="PyG could not get ZINC"):
        ZINC(tmp_path, source="pyg")
    assert not archive.exists()


def test_nothing_there(tmp_path, monkeypatch):
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: pytest.fail("downloads"))
    with pytest.raises(FileError, match=r"set FOGNN_DATA .* ZINC\(source=\"pyg\"\)"):
        ZINC(tmp_path)
    with pytest.raises(FileError, match=r"zinc12k.npz is not in .* take another source="):
        ZINC(tmp_path, source="npz")


def test_without_node_features(tmp_path):
    write(tmp_path)
    plain = ZINC(tmp_path, data=tmp_path)
    blank = ZINC(tmp_path, data=tmp_path, without_node_features=True)
    assert plain.x.tolist() == [1, 1, 0, 1]
    assert blank.x.tolist() == [0, 0, 0, 0]
    assert torch.equal(plain[1].edge_attr, blank[1].edge_attr)
    assert torch.equal(plain.y, blank.y)


def test_full_set_has_its_own_file(tmp_path):
    write(tmp_path)
    write(tmp_path, {key: np.tile(value, 2) for key, value in SMALL.items()}, "zinc250k.npz")
    assert len(ZINC(tmp_path, data=tmp_path)) == 2
    assert len(ZINC(tmp_path, data=tmp_path, subset=False)) == 4


def test_smiles_are_taken_where_no_npz_is(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "zinc" / "zinc12k_train.csv"
    path.parent.mkdir()
    path.write_text("smiles,y\nO,0.5\nO=C=O,-0.5\n")
    rebuilt = ZINC(tmp_path / "a", data=tmp_path)
    assert rebuilt.source == "smiles"
    write(tmp_path)
    prepared = ZINC(tmp_path / "b", data=tmp_path)
    assert prepared.source == "npz"
    for one, other in zip(rebuilt, prepared, strict=True):
        assert isomorphic(one, other)
        assert torch.equal(one.edge_index, other.edge_index)
        assert torch.equal(one.y, other.y)
    path.write_text("smiles,y\nO,0.5\nO=C=,-0.5\n")
    with pytest.raises(ValueError, match=r"zinc12k_train.csv, line 3: .*'O=C='"):
        ZINC(tmp_path, source="smiles", data=tmp_path)


def test_changed_file_is_read_again(tmp_path):
    path = write(tmp_path)
    assert ZINC(tmp_path, data=tmp_path).y.tolist() == [0.5, -0.5]
    write(tmp_path, {**SMALL, "y": np.array([1.5, 2.5], dtype=np.float32)})
    os.utime(path, ns=(1, 1))
    assert ZINC(tmp_path, data=tmp_path).y.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("x", [1, 1, 28, 1], "atom 28 in graph 1, atoms are 0 to 27"),
        ("x", [-1, 1, 0, 1], "atom -1 in graph 0"),
        ("edge_attr", [2, 2, 2, 4], "bond 4 in graph 1, bonds are 1 to 3"),
        ("edge_index", [[0, 1, 1, 3], [1, 0, 2, 1]], "edge to node 3 in graph 1, which has no"),
        ("edge_index", [[0, 1, 1, 2], [1, 0, -2, 1]], "edge to node -2 in graph 1"),
        ("edge_index", [[0, 1], [1, 0]], r"edges of shape \(2, 2\)"),
        ("n", [1, 2], "4 atoms"),
        ("n", [-1, 5], "node counts"),
        ("y", [0.5], "2 node counts, 2 edge counts and 1 labels"),
        ("y", [0.5, float("nan")], "label that is no number, in graph 1"),
    ],
)
def test_wrong_content(tmp_path, key, value, message):
    write(tmp_path, {**SMALL, key: np.array(value)})
    with pytest.raises(FileError, match=message):
        ZINC(tmp_path, data=tmp_path)
    assert list(tmp_path.glob("processed/*.pt")) == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_truncated_file(tmp_path, data):
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(FileError, match=r"zinc12k.npz is not a whole .npz"):
        ZINC(tmp_path, data=tmp_path)


def test_missing_array(tmp_path):
    write(tmp_path)
    with pytest.raises(FileError, match=r"is not a whole .npz file of this dataset .*val_n"):
        ZINC(tmp_path, "val", data=tmp_path)


@pytest.mark.parametrize(("argument", "value"), [("split", "dev"), ("source", "dgl")])
def test_bad_arguments(tmp_path, argument, value):
    with pytest.raises(ValueError, match=f"ZINC: {argument} must be one of .* got '{value}'"):
        ZINC(tmp_path, **{argument: value})
