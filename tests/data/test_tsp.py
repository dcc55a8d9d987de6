import os

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.datasets import GNNBenchmarkDataset

from fognn.data.sources import benchmark_source
from fognn.data.benchmark import TSP, neighbour_graph
from fognn.utils.errors import FileError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))


def write(folder, split="train", **changes):
    """Two instances: a square with its middle, and a row of four points."""
    arrays = {
        "n": np.array([5, 4], dtype=np.int16),
        "c": np.array(
            [[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [0, 0], [0.3, 0], [0.6, 0], [0.9, 0]],
            dtype=np.float32,
        ),
        "t": np.array([0, 4, 1, 2, 3, 3, 2, 0, 1], dtype=np.int16),
        **changes,
    }
    path = folder / "tsp" / f"tsp_{split}.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)
    return path


def by_hand(points, tour, k):
    """The definition, word by word."""
    steps = {frozenset(pair) for pair in zip(tour, tour[1:] + tour[:1], strict=True)}
    edges = []
    for i, (a, b) in enumerate(points):
        others = [((a - c) ** 2 + (b - d) ** 2, j) for j, (c, d) in enumerate(points) if j != i]
        edges += [(j, i, square**0.5, {i, j} in steps) for square, j in sorted(others)[:k]]
    return sorted(edges)


def test_small_instances(tmp_path):
    write(tmp_path)
    for _ in range(2):  # made, then read from disk
        data = TSP(tmp_path, data=tmp_path, k=2)
        assert len(data) == 2
        square, row = data
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
        assert row.x.shape == (4, 2)
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
    expected = by_hand(points, tour, k)
    assert edge_index.tolist() == [[i for _, i, _, _ in expected], [j for j, _, _, _ in expected]]
    assert distance.tolist() == pytest.approx([d for *_, d, _ in expected], abs=1e-6)
    assert used.tolist() == [use for *_, use in expected]


def test_real_instances(tmp_path, real_data):
    data = TSP(tmp_path, "test", data=real_data)
    assert data.source == "prepared"
    assert len(data) == 1000
    counts = data.slices["x"].diff()
    assert counts.min() >= 50
    assert counts.max() <= 500
    for graph in data[:100]:
        source, target = graph.edge_index
        assert (target * graph.num_nodes + source).diff().gt(0).all()
        assert source.bincount(minlength=graph.num_nodes).eq(25).all()
        assert not graph.has_self_loops()
        gaps = (graph.x[source] - graph.x[target]).norm(dim=1)
        assert torch.allclose(gaps, graph.edge_attr[:, 0], atol=1e-6)
        whole = torch.cdist(graph.x.double(), graph.x.double()).fill_diagonal_(torch.inf)
        farthest = torch.zeros(graph.num_nodes).scatter_reduce(
            0, source, graph.edge_attr[:, 0], "amax"
        )
        expected = whole.kthvalue(25).values
        assert torch.allclose(farthest.double(), expected, atol=1e-6)
        # No point has more than two steps of a tour.
        assert source[graph.y == 1].bincount(minlength=graph.num_nodes).max() <= 2
    # Good tours join near points: nearly every step is an edge, and it is seen from both ends.
    assert data.y.sum() / (2 * counts.sum()) > 0.999


def test_tour_is_good(tmp_path, real_data):
    # Long random tours are near 0.7124 sqrt(n A) (Johnson and McGeoch), more with a boundary.
    arrays = dict(np.load(real_data / "tsp" / "tsp_test.npz"))
    ends = arrays["n"].astype(int).cumsum()
    for n, end in zip(arrays["n"].astype(int), ends, strict=True):
        c, t = arrays["c"][end - n : end], arrays["t"][end - n : end]
        length = np.linalg.norm(c[t] - c[np.roll(t, -1)], axis=1).sum()
        assert 0.6 < length / np.sqrt(n) < 1.2


def official(n, label):
    """A graph as in PyG's raw file, its edges in no order."""
    return {
        "x": torch.arange(2.0 * n).reshape(n, 2),
        "edge_index": torch.tensor([[1, 0, 0], [0, 2, 1]]),
        "edge_attr": torch.tensor([10.0, 2.0, 1.0]),
        "y": torch.tensor([label, 0, 1]),
    }


def test_official_graphs(tmp_path):
    path = tmp_path / benchmark_source("TSP").path
    path.parent.mkdir(parents=True)
    splits = [[official(3, 1), official(4, 0)], [official(5, 1)] * 2, [official(6, 1)] * 2]
    torch.save(splits, path)
    train = TSP(tmp_path, data=tmp_path)
    assert train.source == "official"
    assert train[0].edge_index.tolist() == [[1, 0, 0], [0, 1, 2]]
    assert train[0].edge_attr.tolist() == [[10.0], [1.0], [2.0]]
    assert train[0].y.tolist() == [1, 1, 0]
    assert train[0].y.dtype == torch.int64
    assert train[1].y.tolist() == [0, 1, 0]
    assert train[1].x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    # The splits have PyG's names.
    for split, nodes in (("val", 5), ("test", 6)):
        mine = TSP(tmp_path, split, data=tmp_path)
        theirs = GNNBenchmarkDataset(str(tmp_path / "benchmarking_gnns"), "TSP", split)
        assert len(mine) == len(theirs) == 2
        assert mine[0].num_nodes == theirs[0].num_nodes == nodes
    with pytest.raises(ValueError, match="k must be 25 for the official graphs, got 10"):
        TSP(tmp_path, data=tmp_path, k=10)
    # The prepared file is taken first.
    write(tmp_path)
    assert TSP(tmp_path, data=tmp_path, k=2).source == "prepared"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": torch.zeros(4)}, "y must have a row for each edge, 3 in all"),
        ({"y": None}, "y must have a row for each edge, 3 in all"),
        ({"edge_attr": None}, "must have edge_attr"),
    ],
)
def test_what_an_official_graph_must_have(tmp_path, changes, message):
    path = tmp_path / benchmark_source("TSP").path
    path.parent.mkdir(parents=True)
    torch.save([[{**official(4, 1), **changes}], [], []], path)
    with pytest.raises(FileError, match=rf"TSP_v2\.pt .*{message}"):
        TSP(tmp_path, data=tmp_path)


def test_k_and_file_have_their_own_processed_file(tmp_path):
    path = write(tmp_path)
    assert TSP(tmp_path, data=tmp_path, k=2)[1].num_edges == 8
    assert TSP(tmp_path, data=tmp_path, k=3)[1].num_edges == 12
    assert TSP(tmp_path, data=tmp_path, k=2)[1].y.tolist() == [1, 1, 0, 1, 1, 0, 1, 1]
    write(tmp_path, t=np.array([0, 4, 1, 2, 3, 0, 1, 2, 3]))
    os.utime(path, ns=(1, 1))
    assert TSP(tmp_path, data=tmp_path, k=2)[1].y.tolist() == [1, 1, 1, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"t": [0, 4, 1, 2, 3, 3, 2, 0, 0]}, "tour of instance 1 is no permutation of its 4"),
        ({"t": [0, 4, 1, 2, 5, 3, 2, 0, 1]}, "tour of instance 0 is no permutation of its 5"),
        ({"t": [0, 4, 1, 2, 3, 3, 2, 0, -1]}, "tour of instance 1 is no permutation"),
        ({"t": [0, 4, 1]}, r"t \(3,\), where n says \(9, 2\) and \(9,\)"),
        ({"n": [5, 5]}, r"where n says \(10, 2\)"),
        ({"n": []}, "n must hold counts"),
        ({"n": [9, 0]}, "n must hold counts"),
        ({"c": np.full((9, 2), np.nan)}, "instance 0 has a coordinate that is no number"),
    ],
)
def test_wrong_content(tmp_path, changes, message):
    write(tmp_path, **{key: np.array(value) for key, value in changes.items()})
    with pytest.raises(FileError, match=message):
        TSP(tmp_path, data=tmp_path, k=2)
    assert list(tmp_path.glob("processed/*.pt")) == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_truncated_file(tmp_path, data):
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(FileError, match=r"tsp_train.npz is not a whole .npz"):
        TSP(tmp_path, data=tmp_path, k=2)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_wrong_byte(tmp_path, data):
    path = write(tmp_path)
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    os.utime(path, ns=(2, 2))
    for processed in tmp_path.glob("processed/*.pt"):
        processed.unlink()
    # Not every byte of a zip file matters; what is read must be right.
    try:
        read = TSP(tmp_path, data=tmp_path, k=2)
    except FileError:
        return
    assert read[1].y.tolist() == [1, 1, 0, 1, 1, 0, 1, 1]
    assert read[0].x[4].tolist() == [0.5, 0.5]


def test_other_kind_of_file(tmp_path):
    path = write(tmp_path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FileError, match=r"tsp_train.npz is not a whole .npz"):
        TSP(tmp_path, data=tmp_path, k=2)


def test_corrupt_real_file(tmp_path, real_data):
    path = tmp_path / "tsp" / "tsp_test.npz"
    path.parent.mkdir()
    damaged = bytearray((real_data / "tsp" / "tsp_test.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(FileError, match=r"tsp_test.npz is not a whole .npz"):
        TSP(tmp_path, "test", data=tmp_path)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("split", "valid", "TSP: split must be one of .*, got 'valid'"),
        ("source", "concorde", "TSP: source must be one of .*, got 'concorde'"),
        ("k", 0, "TSP: k must be a positive int, got 0"),
        ("k", True, "TSP: k must be a positive int, got True"),
        ("k", 2.5, "TSP: k must be a positive int, got 2.5"),
        ("k", 4, "TSP: k must be below 4, the points of instance 1 of .*, got 4"),
    ],
)
def test_bad_arguments(tmp_path, argument, value, message):
    write(tmp_path)
    with pytest.raises(ValueError, match=message):
        TSP(tmp_path, data=tmp_path, **{argument: value})


def test_nothing_there(tmp_path):
    with pytest.raises(FileError, match=r"tsp_train.npz is not in .*fognn generate tsp"):
        TSP(tmp_path, data=tmp_path)
