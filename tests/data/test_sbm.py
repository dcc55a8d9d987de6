import os

import pytest
import torch
from torch_geometric.datasets import GNNBenchmarkDataset
from torch_geometric.loader import DataLoader
from torch_geometric.utils import to_dense_adj

from fognn.data import CLUSTER, PATTERN
from fognn.data.generators import generate_cluster, generate_pattern
from fognn.data.sources import benchmark_source
from fognn.utils.errors import FileError


def stored(root) -> list[str]:
    return sorted(path.name for path in (root / "processed").glob("*.pt"))


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
    assert stored(tmp_path) == [f"{dataset.__name__.lower()}-v1-seed3-val-120.pt"]


def test_batches_with_pyg(tmp_path):
    data = PATTERN(tmp_path, num_graphs=5)
    (batch,) = DataLoader(data, batch_size=5)
    assert batch.num_graphs == 5
    assert batch.num_edges == sum(graph.num_edges for graph in data)
    assert batch.validate()


def test_one_graph(tmp_path):
    data = CLUSTER(tmp_path, num_graphs=1)
    assert len(data) == 1
    assert data[0].num_nodes == generate_cluster("train", 1).n[0]


@pytest.mark.parametrize(
    ("argument", "value"),
    [("split", "valid"), ("seed", -1), ("num_graphs", 0), ("source", "pickle")],
)
def test_bad_arguments(tmp_path, argument, value):
    with pytest.raises(ValueError, match=f"PATTERN: {argument} must be .*{value}"):
        PATTERN(tmp_path, **{argument: value})
    assert not (tmp_path / "processed").exists()


def write_official(folder, name, splits):
    """Writes a raw file of PyG's GNNBenchmarkDataset: tokens one-hot, labels per node."""
    path = folder / benchmark_source(name).path
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(splits, path)
    return path


def ring(n, shift, tokens=3):
    """A ring, its edges in a random order."""
    src = torch.cat([torch.arange(n), (torch.arange(n) + 1) % n])
    dst = torch.cat([(torch.arange(n) + 1) % n, torch.arange(n)])
    return {
        "x": torch.eye(tokens)[torch.arange(n) % tokens],
        "edge_index": torch.stack([src, dst])[:, torch.randperm(2 * n)],
        "y": (torch.arange(n) + shift) % 2,
    }


@pytest.mark.parametrize(("dataset", "tokens"), [(PATTERN, 3), (CLUSTER, 7)])
def test_official_graphs(tmp_path, dataset, tokens):
    splits = [
        [ring(5, 0, tokens)] * 10,
        [ring(6, 0, tokens), ring(7, 1, tokens)],
        [ring(8, 0, tokens)],
    ]
    name = dataset.__name__
    path = write_official(tmp_path / "data", name, splits)

    def opened(split, count):
        return dataset(tmp_path, split, num_graphs=count, source="official", data=tmp_path / "data")

    data = opened("val", 2)
    assert [g.num_nodes for g in data] == [6, 7]
    assert data[1].x.tolist() == [i % tokens for i in range(7)]
    assert data[1].y.tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert data[1].x.dtype == data[1].y.dtype == torch.int64
    edges = sorted(
        (target, source)
        for target in range(7)
        for source in range(7)
        if (target - source) % 7 in (1, 6)
    )
    assert data[1].edge_index.tolist() == [[s for _, s in edges], [t for t, _ in edges]]
    assert len(opened("train", 3)) == 3
    assert opened("test", 1)[0].num_nodes == 8
    full = {"PATTERN": 2000, "CLUSTER": 1000}[name]
    with pytest.raises(ValueError, match=rf"num_graphs must be at most 1, .* got {full}"):
        opened("test", None)

    # A changed file is read again.
    splits[1] = [ring(9, 0, tokens)] * 2
    write_official(tmp_path / "data", name, splits)
    os.utime(path, ns=(1, 1))
    assert [g.num_nodes for g in opened("val", 2)] == [9, 9]


def test_official_graphs_are_those_of_pyg(tmp_path):
    splits = [[ring(5, 0), ring(9, 1)], [ring(6, 0)], [ring(7, 1)]]
    write_official(tmp_path, "PATTERN", splits)
    for split, count in (("train", 2), ("val", 1), ("test", 1)):
        mine = PATTERN(tmp_path, split, num_graphs=count, source="official", data=tmp_path)
        theirs = GNNBenchmarkDataset(str(tmp_path / "benchmarking_gnns"), "PATTERN", split)
        for one, other in zip(mine, theirs, strict=True):
            assert torch.equal(one.x, other.x.argmax(1))
            assert torch.equal(one.y, other.y)
            assert torch.equal(*(to_dense_adj(data.edge_index) for data in (one, other)))


def test_official_graphs_without_network(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(GNNBenchmarkDataset.urls, "CLUSTER", "http://127.0.0.1:1/CLUSTER_v2.zip")
    with pytest.raises(FileError, match=r"PyG could not get CLUSTER .*check the network"):
        CLUSTER(tmp_path, source="official", data=tmp_path)


def test_hostile_official_file(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    write_official(tmp_path, "PATTERN", [[Hostile()]] * 3)
    with pytest.raises(FileError, match=r"PATTERN_v2\.pt is not .*names posix\.mkdir"):
        PATTERN(tmp_path, source="official", data=tmp_path)
    assert not (tmp_path / "made").exists()
