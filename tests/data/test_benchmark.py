"""PATTERN, CLUSTER, ZINC and TSP: generated, prepared, and the published graphs of PyG."""

import os
import pickle

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.datasets import GNNBenchmarkDataset
from torch_geometric.loader import DataLoader
from torch_geometric.utils import to_dense_adj, to_networkx

from fognn.data import CLUSTER, PATTERN, TSP, ZINC, benchmark, generate_cluster, generate_pattern
from fognn.data.benchmark import neighbour_graph
from fognn.utils.errors import FileError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FOGNN_DATA", raising=False)


@pytest.mark.parametrize(
    ("kind", "argument", "value"),
    [
        *((PATTERN, name, value) for name, value in (("split", "dev"), ("seed", -1))),
        *((PATTERN, name, value) for name, value in (("num_graphs", 0), ("source", "pickle"))),
        *((ZINC, "split", "dev"), (TSP, "split", "dev")),
    ],
)
def test_bad_arguments(tmp_path, kind, argument, value):
    with pytest.raises(ValueError, match=f"{kind.__name__}: {argument} must be .*{value}"):
        kind(tmp_path, **{argument: value})


# PATTERN and CLUSTER


@pytest.mark.parametrize(
    ("dataset", "generate", "tokens", "classes"),
    [(PATTERN, generate_pattern, 3, 2), (CLUSTER, generate_cluster, 7, 6)],
)
def test_equals_generator(tmp_path, dataset, generate, tokens, classes):
    graphs = generate("val", 120, seed=3)
    for opened in range(2):  # made, then read from disk
        data = dataset(tmp_path, "val", seed=3, num_graphs=120)
        assert len(data) == 120, opened
        assert data.num_classes == classes
        assert int(data.x.max()) == tokens - 1
        node, edge = int(graphs.n[:50].sum()), int(graphs.e[:50].sum())
        graph = data[50]
        assert graph.num_nodes == graphs.n[50]
        assert graph.x.dtype == graph.y.dtype == graph.edge_index.dtype == torch.int64
        assert graph.x.tolist() == graphs.x[node : node + graphs.n[50]].tolist()
        assert graph.y.tolist() == graphs.y[node : node + graphs.n[50]].tolist()
        expected = graphs.edge_index[:, edge : edge + graphs.e[50]].tolist()
        assert graph.edge_index.tolist() == expected
        assert graph.is_undirected()
        assert not graph.has_self_loops()
    (batch,) = DataLoader(data, batch_size=120)
    assert batch.num_edges == int(graphs.e.sum())
    assert len(dataset(tmp_path, num_graphs=1)) == 1


def ring(n, shift, tokens=3):
    """A ring, its edges in a random order."""
    src = torch.cat([torch.arange(n), (torch.arange(n) + 1) % n])
    dst = torch.cat([(torch.arange(n) + 1) % n, torch.arange(n)])
    return {
        "x": torch.eye(tokens)[torch.arange(n) % tokens],
        "edge_index": torch.stack([src, dst])[:, torch.randperm(2 * n)],
        "y": (torch.arange(n) + shift) % 2,
    }


def write_official(folder, name, splits):
    """Writes the raw file of PyG's GNNBenchmarkDataset into a data folder."""
    path = folder / "pyg" / "GNNBenchmarkDataset" / name / "raw" / f"{name}_v2.pt"
    path.parent.mkdir(parents=True)
    torch.save(splits, path)
    return str(folder / "pyg" / "GNNBenchmarkDataset")


@pytest.mark.parametrize(("dataset", "tokens"), [(PATTERN, 3), (CLUSTER, 7)])
def test_official_graphs_are_those_of_pyg(tmp_path, dataset, tokens):
    splits = [[ring(5, 0, tokens), ring(9, 1, tokens)], [ring(6, 0, tokens)], [ring(7, 1, tokens)]]
    root = write_official(tmp_path, dataset.__name__, splits)
    for split, count in (("train", 2), ("val", 1), ("test", 1)):
        mine = dataset(tmp_path, split, num_graphs=count, source="official", data=tmp_path)
        theirs = GNNBenchmarkDataset(root, dataset.__name__, split)
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert torch.equal(one.x, other.x.argmax(1))
            assert torch.equal(one.y, other.y)
            assert torch.equal(*(to_dense_adj(data.edge_index) for data in (one, other)))
            assert (one.edge_index[1] * one.num_nodes + one.edge_index[0]).diff().gt(0).all()
    assert len(dataset(tmp_path, "train", num_graphs=1, source="official", data=tmp_path)) == 1


@pytest.mark.parametrize("name", ["CLUSTER", "TSP", "ZINC"])
def test_without_network(tmp_path, monkeypatch, name):
    """One line that says what to fetch and where to put it, and nothing is left behind."""
    monkeypatch.setitem(GNNBenchmarkDataset.urls, name, "http://127.0.0.1:1/x.zip")
    monkeypatch.setattr("torch_geometric.datasets.ZINC.url", "http://127.0.0.1:1/x.zip")
    open_it = {"CLUSTER": lambda: CLUSTER(source="official"), "TSP": TSP, "ZINC": ZINC}[name]
    with pytest.raises(FileError, match=r"no connection.*x\.zip.*FOGNN_DATA") as error:
        open_it()
    assert "\n" not in str(error.value)
    files = {path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert files == {".lock"}


# ZINC

# Two molecules: water and carbon dioxide, without hydrogens.
SMALL = {
    "n": np.array([1, 3], dtype=np.int16),
    "e": np.array([0, 4], dtype=np.int16),
    "x": np.array([1, 1, 0, 1], dtype=np.int8),
    "edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]], dtype=np.int8),
    "edge_attr": np.array([2, 2, 2, 2], dtype=np.int8),
    "y": np.array([0.5, -0.5], dtype=np.float32),
}


def write_zinc(folder, **changes):
    path = folder / "zinc" / "zinc12k.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **{f"train_{key}": np.array(v) for key, v in {**SMALL, **changes}.items()})
    return path


@pytest.mark.parametrize(
    ("split", "count", "nodes", "edges", "y"),
    [
        ("train", 10_000, 29, 64, 0.835036),
        ("val", 1_000, 35, 78, 0.629916),
        ("test", 1_000, 16, 34, 1.997326),
    ],
)
def test_published_facts(tmp_path, real_data, split, count, nodes, edges, y):
    data = ZINC(tmp_path, split, data=real_data)
    assert len(data) == count
    assert (data[0].num_nodes, data[0].num_edges) == (nodes, edges)
    assert data[0].y.shape == (1,)
    assert data[0].y.item() == pytest.approx(y, abs=1e-6)
    assert data[0].x.dtype == data[0].edge_attr.dtype == data[0].edge_index.dtype == torch.int64
    assert data[0].x.dim() == data[0].edge_attr.dim() == 1
    assert set(data.edge_attr.unique().tolist()) == {1, 2, 3}
    assert int(data.x.max()) <= 27
    for graph in data[:100]:
        source, target = graph.edge_index
        assert (target * graph.num_nodes + source).diff().gt(0).all()
        assert graph.is_undirected()


def isomorphic(one, other) -> bool:
    graphs = [to_networkx(data, ["x"], ["edge_attr"], to_undirected=True) for data in (one, other)]
    return networkx.is_isomorphic(
        *graphs, node_match=lambda a, b: a == b, edge_match=lambda a, b: a == b
    )


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
        label = {"logP_SA_cycle_normalized": graph.y}
        raw.append({"num_atom": n, "atom_type": atoms, "bond_type": bonds, **label})
    for split in ("train", "val", "test"):
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(raw))
        (folder / f"{split}.index").write_text(",".join(map(str, range(len(raw)))) + "\n")


def test_pyg_gives_equal_graphs_up_to_node_order(tmp_path, real_data):
    prepared = ZINC(tmp_path, "val", data=real_data)[:150]
    write_pyg(tmp_path / "pyg" / "ZINC" / "raw", prepared)
    data = ZINC(tmp_path, "val", data=tmp_path)
    assert len(data) == 150
    moved = 0
    for one, other in zip(prepared, data, strict=True):
        assert isomorphic(one, other)
        assert torch.equal(one.y, other.y)
        assert other.x.dim() == 1
        moved += one.x.tolist() != other.x.tolist()
    assert moved > 100
    assert not isomorphic(prepared[0], prepared[1])


def test_without_node_features_and_changed_files(tmp_path):
    path = write_zinc(tmp_path)
    plain = ZINC(tmp_path, data=tmp_path)
    blank = ZINC(tmp_path, data=tmp_path, without_node_features=True)
    assert plain.x.tolist() == [1, 1, 0, 1]
    assert blank.x.tolist() == [0, 0, 0, 0]
    assert torch.equal(plain[1].edge_attr, blank[1].edge_attr)
    write_zinc(tmp_path, y=[1.5, 2.5])
    os.utime(path, ns=(1, 1))
    assert ZINC(tmp_path, data=tmp_path).y.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("edge_index", [[0, 1, 1, 3], [1, 0, 2, 1]]),
        ("edge_index", [[0, 1], [1, 0]]),
        ("n", [1, 2]),
        ("y", [0.5]),
    ],
)
def test_wrong_zinc_file(tmp_path, key, value):
    write_zinc(tmp_path, **{key: value})
    with pytest.raises(ValueError, match=r"zinc12k\.npz, train"):
        ZINC(tmp_path, data=tmp_path)
    assert list(tmp_path.glob("processed/*.pt")) == []


# TSP


def write_tsp(folder, split="train", **changes):
    """Two instances: a square with its middle, and a row of four points."""
    square = [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]
    arrays = {
        "n": np.array([5, 4], dtype=np.int16),
        "c": np.array([*square, [0, 0], [0.3, 0], [0.6, 0], [0.9, 0]], dtype=np.float32),
        "t": np.array([0, 4, 1, 2, 3, 3, 2, 0, 1], dtype=np.int16),
        **changes,
    }
    path = folder / "tsp" / f"tsp_{split}.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)
    return path


def test_small_instances(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "_K", 2)
    write_tsp(tmp_path)
    for _ in range(2):  # made, then read from disk
        square, row = TSP(tmp_path, data=tmp_path)
        # Out-edges: 0 to 4 and 1, 1 to 4 and 0, 2 to 4 and 1, 3 to 4 and 0, and of the four
        # corners at the same distance the middle takes 0 and 1.
        assert square.edge_index.tolist() == [
            [1, 3, 4, 0, 2, 4, 0, 1, 2, 3],
            [0, 0, 0, 1, 1, 1, 4, 4, 4, 4],
        ]
        # Its tour is 0 - 4 - 1 - 2 - 3 - 0.
        assert square.y.tolist() == [0, 1, 1, 0, 1, 1, 1, 1, 0, 0]
        assert row.x.dtype == row.edge_attr.dtype == torch.float32
        assert row.edge_index.dtype == row.y.dtype == torch.int64
        # Out-edges: 0 to 1 and 2, 1 to 0 and 2, 2 to 1 and 3, 3 to 2 and 1.
        assert row.edge_index.tolist() == [[1, 0, 2, 3, 0, 1, 3, 2], [0, 1, 1, 1, 2, 2, 2, 3]]
        expected = [0.3, 0.3, 0.3, 0.6, 0.6, 0.3, 0.3, 0.3]
        assert row.edge_attr.shape == (8, 1)
        assert row.edge_attr.flatten().tolist() == pytest.approx(expected, abs=1e-6)
        # The tour is 3 - 2 - 0 - 1 - 3: either direction counts.
        assert row.y.tolist() == [1, 1, 0, 1, 1, 0, 1, 1]


@given(
    points=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=14),
    data=st.data(),
)
def test_neighbour_graph_by_hand(points, data):
    # Points of a coarse grid: full of ties and of equal points.
    tour = data.draw(st.permutations(range(len(points))))
    k = data.draw(st.integers(1, len(points) - 1))
    edge_index, distance, used = neighbour_graph(
        np.array(points, dtype=np.float32), np.array(tour), k
    )
    # The definition, word by word.
    steps = {frozenset(pair) for pair in zip(tour, tour[1:] + tour[:1], strict=True)}
    expected = []
    for i, (a, b) in enumerate(points):
        others = [((a - c) ** 2 + (b - d) ** 2, j) for j, (c, d) in enumerate(points) if j != i]
        expected += [(j, i, square**0.5, {i, j} in steps) for square, j in sorted(others)[:k]]
    expected.sort()
    assert edge_index.tolist() == [[i for _, i, _, _ in expected], [j for j, _, _, _ in expected]]
    assert distance.tolist() == pytest.approx([d for *_, d, _ in expected], abs=1e-6)
    assert used.tolist() == [use for *_, use in expected]


def test_real_instances(tmp_path, real_data):
    data = TSP(tmp_path, "test", data=real_data)
    assert len(data) == 1000
    counts = data.slices["x"].diff()
    assert counts.min() >= 50
    assert counts.max() <= 500
    for graph in data[:50]:
        source, target = graph.edge_index
        assert (target * graph.num_nodes + source).diff().gt(0).all()
        assert source.bincount(minlength=graph.num_nodes).eq(25).all()
        assert not graph.has_self_loops()
        whole = torch.cdist(graph.x.double(), graph.x.double()).fill_diagonal_(torch.inf)
        nodes = torch.zeros(graph.num_nodes)
        farthest = nodes.scatter_reduce(0, source, graph.edge_attr[:, 0], "amax")
        assert torch.allclose(farthest.double(), whole.kthvalue(25).values, atol=1e-6)
        # No point has more than two steps of a tour.
        assert source[graph.y == 1].bincount(minlength=graph.num_nodes).max() <= 2
    # Good tours join near points: nearly every step is an edge, and it is seen from both ends.
    assert data.y.sum() / (2 * counts.sum()) > 0.999


def test_official_tours(tmp_path):
    def official(n, label):
        return {
            "x": torch.arange(2.0 * n).reshape(n, 2),
            "edge_index": torch.tensor([[1, 0, 0], [0, 2, 1]]),
            "edge_attr": torch.tensor([10.0, 2.0, 1.0]),
            "y": torch.tensor([label, 0, 1]),
        }

    splits = [[official(4, 1), official(5, 0)], [official(5, 1)] * 2, [official(6, 1)] * 2]
    write_official(tmp_path, "TSP", splits)
    train = TSP(tmp_path, data=tmp_path)
    assert train[0].edge_index.tolist() == [[1, 0, 0], [0, 1, 2]]
    assert train[0].edge_attr.tolist() == [[10.0], [1.0], [2.0]]
    assert train[0].y.tolist() == [1, 1, 0]
    assert train[1].y.tolist() == [0, 1, 0]
    assert train[1].x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert TSP(tmp_path, "val", data=tmp_path)[0].num_nodes == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"t": [0, 4, 1]}, "is not a TSP file"),
        ({"n": [5, 5]}, "is not a TSP file"),
        ({"t": [0, 0, 1, 2, 3, 3, 2, 0, 1]}, "tour of instance 0"),
    ],
)
def test_wrong_tsp_file(tmp_path, changes, message):
    path = write_tsp(tmp_path, **{key: np.array(value) for key, value in changes.items()})
    with pytest.raises(FileError, match=message):
        TSP(tmp_path, data=tmp_path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(FileError, match=r"tsp_train\.npz is truncated or corrupt"):
        TSP(tmp_path, data=tmp_path)
