import os
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from hypothesis import given
from hypothesis import strategies as st

from fognn.data import CLUSTER, PATTERN
from fognn.data.generators import generate_cluster, generate_pattern
from fognn.data.split_dataset import (
    file_stamp,
    flatten,
    read_benchmark,
    read_npz,
    slices_of,
)
from fognn.utils.errors import FileError


def stored(root) -> list[str]:
    return sorted(path.name for path in (root / "processed").glob("*.pt"))


def test_second_opening_does_no_work_and_settings_have_own_files(tmp_path, monkeypatch):
    first = PATTERN(tmp_path, num_graphs=2)
    other = PATTERN(tmp_path, num_graphs=2, seed=1)
    assert first[0].num_nodes != other[0].num_nodes
    assert len(stored(tmp_path)) == 2

    def never(*_):
        raise AssertionError("generated twice")

    monkeypatch.setattr(PATTERN, "_generate", staticmethod(never))
    assert torch.equal(PATTERN(tmp_path, num_graphs=2)[1].edge_index, first[1].edge_index)
    with pytest.raises(AssertionError, match="generated twice"):
        PATTERN(tmp_path, num_graphs=2, seed=2)


def test_openings_at_once_do_the_work_once(tmp_path, monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return generate_pattern(*arguments)

    monkeypatch.setattr(PATTERN, "_generate", staticmethod(counted))
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: PATTERN(tmp_path, num_graphs=300), range(4)))
    assert calls == [("train", 300, 0)]
    assert all(torch.equal(data._data.edge_index, opened[0]._data.edge_index) for data in opened)


def test_failure_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(FileError, match="disk is full"):
        PATTERN(tmp_path, num_graphs=2)
    assert stored(tmp_path) == []
    monkeypatch.undo()
    assert len(PATTERN(tmp_path, num_graphs=2)) == 2


def content_of(dataset) -> list[dict[str, torch.Tensor]]:
    return [graph.to_dict() for graph in dataset]


def assert_made_again(root, path, expected) -> None:
    again = content_of(PATTERN(root, num_graphs=2))
    assert all(torch.equal(a[k], b[k]) for a, b in zip(again, expected, strict=True) for k in b)
    assert zipfile.ZipFile(path).testzip() is None


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_damaged_processed_file_is_made_again(tmp_path, keep):
    expected = content_of(PATTERN(tmp_path, num_graphs=2))
    (path,) = (tmp_path / "processed").glob("*.pt")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    assert_made_again(tmp_path, path, expected)


def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path):
    expected = content_of(PATTERN(tmp_path, num_graphs=2))
    (path,) = (tmp_path / "processed").glob("*.pt")
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        parts = file.infolist()
    for part in parts:
        name, extra = whole[part.header_offset + 26 :][:2], whole[part.header_offset + 28 :][:2]
        start = part.header_offset + 30 + sum(int.from_bytes(n, "little") for n in (name, extra))
        # A label, an edge, or, in the pickle, a size.
        for place in (start, start + part.file_size // 2, start + part.file_size - 1):
            wrong = bytearray(whole)
            wrong[place] ^= 0x40
            path.write_bytes(bytes(wrong))
    assert_made_again(tmp_path, path, expected)


def test_sizes_of_128_tebibytes(tmp_path):
    expected = content_of(PATTERN(tmp_path, num_graphs=2))
    (path,) = (tmp_path / "processed").glob("*.pt")
    whole = path.read_bytes()
    # The number of nodes in the pickle, of 2 bytes (M) or of 4 (J), made as large as it can be.
    place = whole.index(b"_rebuild_tensor")
    place = min(p for p in (whole.find(b"M", place), whole.find(b"J", place)) if p > 0)
    path.write_bytes(whole[: place + 1] + b"\xff\xff" + whole[place + 3 :])
    assert_made_again(tmp_path, path, expected)


def test_root_defaults_to_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path))
    CLUSTER(num_graphs=2)
    assert len(stored(tmp_path / "cluster")) == 1


def test_root_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="could not be written"):
        PATTERN(tmp_path / "file", num_graphs=2)


def test_pre_transform_with_other_settings_is_no_old_file(tmp_path):
    # Both have the same repr, so PyG alone would read the first file twice.
    for steps in (2, 3, 2):
        walk = T.AddRandomWalkPE(walk_length=steps, attr_name="pe")
        data = PATTERN(tmp_path, num_graphs=3, pre_transform=walk)
        assert data[0].pe.shape == (data[0].num_nodes, steps)
        assert data[0].x.dtype == torch.int64
    assert len(stored(tmp_path)) == 2
    assert "pe" not in PATTERN(tmp_path, num_graphs=3)[0]


def test_pre_transform_keeps_types(tmp_path):
    data = PATTERN(tmp_path, num_graphs=3, pre_transform=T.ToUndirected(reduce="mean"))
    plain = PATTERN(tmp_path, num_graphs=3)
    for one, other in zip(data, plain, strict=True):
        assert torch.equal(one.y, other.y)
        assert one.edge_index.dtype == torch.int64
        assert one.num_edges == other.num_edges


def test_lambda_is_applied_and_never_stored(tmp_path):
    sizes = [graph.num_nodes for graph in PATTERN(tmp_path, num_graphs=20)]

    def below(limit):
        return PATTERN(tmp_path, num_graphs=20, pre_filter=lambda graph: graph.num_nodes < limit)

    for limit in (110, 130):
        assert [g.num_nodes for g in below(limit)] == [size for size in sizes if size < limit]
    assert len(stored(tmp_path)) == 1
    with pytest.raises(ValueError, match="PATTERN: pre_filter must keep a graph"):
        below(0)


def test_transform_is_applied_at_access(tmp_path):
    data = CLUSTER(tmp_path, num_graphs=2, transform=lambda graph: graph.num_nodes)
    assert data[0] == generate_cluster("train", 2).n[0]


# Flat tensors and files


@given(
    graphs=st.lists(
        st.integers(1, 6).flatmap(
            lambda n: st.tuples(
                st.just(n),
                st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), unique=True),
            )
        ),
        min_size=1,
        max_size=4,
    )
)
def test_flatten_sorts_edges_and_what_belongs_to_them(graphs):
    def tensors(n, edges):
        edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
        return {
            "x": torch.arange(n),
            "edge_index": edge_index,
            "edge_attr": 10 * edge_index[0] + edge_index[1],
        }

    flat, slices = flatten(tensors(n, edges) for n, edges in graphs)
    for at, (n, edges) in enumerate(graphs):
        cut = slice(*slices["edge_index"][at : at + 2].tolist())
        expected = sorted(edges, key=lambda edge: edge[::-1])
        assert [tuple(edge) for edge in flat["edge_index"][:, cut].t().tolist()] == expected
        assert flat["edge_attr"][cut].tolist() == [10 * s + t for s, t in expected]
        assert int(slices["x"][at + 1] - slices["x"][at]) == n


def test_slices_of():
    assert slices_of(torch.tensor([2, 0, 3], dtype=torch.int16)).tolist() == [0, 2, 2, 5]


def test_read_npz_says_what_is_missing(tmp_path):
    with pytest.raises(FileError, match=r"nothing.npz is not a whole .npz"):
        read_npz(tmp_path / "nothing.npz", "n")


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_read_npz_of_a_truncated_file(tmp_path, keep):
    path = tmp_path / "a.npz"
    np.savez(path, n=np.arange(1000))
    assert read_npz(path, "n")["n"].tolist() == list(range(1000))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(FileError, match=r"a\.npz is not a whole \.npz file"):
        read_npz(path, "n")


def test_read_npz_runs_no_pickle(tmp_path):
    np.savez(tmp_path / "a.npz", n=np.array([os.getcwd], dtype=object))
    with pytest.raises(FileError, match=r"is not a whole \.npz file"):
        read_npz(tmp_path / "a.npz", "n")


def test_fingerprint_changes_with_the_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    os.utime(path, ns=(1, 1))
    first = file_stamp(path)
    os.utime(path, ns=(1, 2))
    assert first != file_stamp(path)
    path.write_text("xy")
    os.utime(path, ns=(1, 1))
    assert first != file_stamp(path)


# Raw files of PyG's GNNBenchmarkDataset


def ring(n, **other):
    here = torch.arange(n)
    there = (here + 1) % n
    edges = torch.stack([torch.cat([here, there]), torch.cat([there, here])])
    return {"x": torch.eye(3)[here % 3], "edge_index": edges, "y": here % 2, **other}


def save(path, *splits):
    torch.save(list(splits), path)
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_read_benchmark(tmp_path, zipped):
    splits = [[ring(5), ring(6)], [ring(7)], [ring(8)]]
    torch.save(splits, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    for split, sizes in (("train", [5, 6]), ("val", [7]), ("test", [8])):
        graphs = read_benchmark(tmp_path / "a.pt", split, "node")
        assert [graph.num_nodes for graph in graphs] == sizes
        assert torch.equal(graphs[0].edge_index, ring(sizes[0])["edge_index"])


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_read_benchmark_runs_nothing(tmp_path):
    path = save(tmp_path / "a.pt", [ring(5)], [Hostile(tmp_path / "made")], [])
    with pytest.raises(FileError, match=r"a\.pt is not .*names posix\.mkdir"):
        read_benchmark(path, "train", "node")
    assert not (tmp_path / "made").exists()
    torch.load(path, weights_only=False)
    assert (tmp_path / "made").exists()  # so the file does what the test is about


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (ring(5, y=torch.arange(6)), "train graph 1: y must have"),
        (ring(5, y=torch.arange(10)), "train graph 1: y must have"),
        (ring(5, x=torch.ones(4, 3)), r"train graph 1: edge_index must lie in 0\.\.3"),
        (ring(5, x=torch.full((5, 3), torch.nan)), "train graph 1: x must be finite"),
        ({"x": torch.ones(5, 3)}, "train graph 1 must have edge_index"),
        (torch.ones(3), "RuntimeError"),
        (None, "TypeError"),
    ],
)
def test_wrong_benchmark_graph(tmp_path, graph, message):
    path = save(tmp_path / "a.pt", [ring(4), graph], [], [])
    with pytest.raises(FileError, match=rf"a\.pt is not a whole raw file .*{message}"):
        read_benchmark(path, "train", "node")


def test_a_label_for_each_node(tmp_path):
    path = save(tmp_path / "a.pt", [ring(5, y=torch.arange(10))], [], [])
    with pytest.raises(FileError, match="graph 0: y must have a row for each node, 5 in all"):
        read_benchmark(path, "train", "node")
    path = save(path, [ring(5, y=torch.arange(10), edge_attr=torch.ones(10))], [], [])
    assert len(read_benchmark(path, "train", "edge")) == 1


@pytest.mark.parametrize("content", [[], [[ring(4)]], None, {"train": 1}])
def test_benchmark_file_with_other_content(tmp_path, content):
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(FileError, match="not a whole raw file"):
        read_benchmark(tmp_path / "a.pt", "val", "node")


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_truncated_benchmark_file(tmp_path, keep):
    path = save(tmp_path / "a.pt", [ring(4)] * 9, [], [])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(FileError, match="not a whole raw file"):
        read_benchmark(path, "train", "node")
