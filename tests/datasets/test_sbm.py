import os
import pickle
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch_geometric.transforms as T
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.loader import DataLoader

from fognn.datasets.sbm import CLUSTER, PATTERN, flatten, read_npz, slices_of
from fognn.datasets.sbm_generator import generate_cluster, generate_pattern
from fognn.datasets.sources import SourceError


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
    with pytest.raises(SourceError, match="disk is full"):
        PATTERN(tmp_path, num_graphs=2)
    assert stored(tmp_path) == []
    monkeypatch.undo()
    assert len(PATTERN(tmp_path, num_graphs=2)) == 2


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_damaged_processed_file_is_said(tmp_path, keep):
    PATTERN(tmp_path, num_graphs=2)
    (path,) = (tmp_path / "processed").glob("*.pt")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(SourceError, match=r"is damaged .* remove it"):
        PATTERN(tmp_path, num_graphs=2)
    path.unlink()
    assert len(PATTERN(tmp_path, num_graphs=2)) == 2


def test_root_defaults_to_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path))
    CLUSTER(num_graphs=2)
    assert len(stored(tmp_path / "cluster")) == 1


def test_root_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="could not be written"):
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


@pytest.mark.parametrize(
    ("argument", "value"),
    [("split", "valid"), ("seed", -1), ("num_graphs", 0), ("source", "pickle")],
)
def test_bad_arguments(tmp_path, argument, value):
    with pytest.raises(ValueError, match=f"PATTERN: {argument} must be .*{value}"):
        PATTERN(tmp_path, **{argument: value})
    assert not (tmp_path / "processed").exists()


def write_official(path, monkeypatch, splits):
    """Writes a pickle of the public benchmark's first layout, with classes of its names."""

    def stand_in(module, name):
        if module not in sys.modules:
            monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
        cls = type(name, (), {"__module__": module, "__getstate__": lambda self: self.state})
        monkeypatch.setattr(sys.modules[module], name, cls, raising=False)

        def make(state):
            instance = cls()
            instance.state = state
            return instance

        return make

    for package in ("dgl", "data"):
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
    graph = stand_in("dgl.graph", "DGLGraph")
    graph_index = stand_in("dgl.graph_index", "GraphIndex")
    index = stand_in("dgl.utils", "Index")
    frame = stand_in("dgl.frame", "Frame")
    column = stand_in("dgl.frame", "Column")
    dataset = stand_in("data.SBMs", "load_SBMsDataSetDGL")

    def features(**tensors):
        return frame({"_columns": {key: column({"data": t}) for key, t in tensors.items()}})

    content = [
        dataset(
            {
                "graph_lists": [
                    graph(
                        {
                            "_graph": graph_index((len(x), False, True, index(src), index(dst))),
                            "_node_frame": features(feat=x),
                            "_edge_frame": features(feat=torch.ones(len(src), 1)),
                        }
                    )
                    for x, src, dst, _ in graphs
                ],
                "node_labels": [labels for *_, labels in graphs],
            }
        )
        for graphs in splits
    ]
    path.parent.mkdir(parents=True)
    path.write_bytes(pickle.dumps(content))


def test_official_file(tmp_path, monkeypatch):
    def graph(n, shift):
        # A ring, its edges in a wild order.
        src = torch.cat([torch.arange(n), (torch.arange(n) + 1) % n])
        dst = torch.cat([(torch.arange(n) + 1) % n, torch.arange(n)])
        order = torch.randperm(2 * n)
        labels = torch.tensor([(i + shift) % 2 for i in range(n)], dtype=torch.int16)
        return torch.arange(n) % 3, src[order], dst[order], labels

    splits = [[graph(5, 0)] * 10, [graph(6, 0), graph(7, 1)], [graph(8, 0)]]
    path = tmp_path / "data" / "SBMs" / "SBM_PATTERN.pkl"
    write_official(path, monkeypatch, splits)

    def opened(split, count):
        return PATTERN(tmp_path, split, num_graphs=count, source="official", data=tmp_path / "data")

    data = opened("val", 2)
    assert [g.num_nodes for g in data] == [6, 7]
    assert data[1].x.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert data[1].y.tolist() == [1, 0, 1, 0, 1, 0, 1]
    ring = sorted(
        (target, source)
        for target in range(7)
        for source in range(7)
        if (target - source) % 7 in (1, 6)
    )
    assert data[1].edge_index.tolist() == [[s for _, s in ring], [t for t, _ in ring]]
    assert len(opened("train", 3)) == 3
    with pytest.raises(ValueError, match=r"num_graphs must be at most 1, .* got 2000"):
        opened("test", None)

    # A changed file is not answered from the old one.
    splits[1] = [graph(9, 0)] * 2
    path.unlink()
    path.parent.rmdir()
    write_official(path, monkeypatch, splits)
    os.utime(path, ns=(1, 1))
    assert [g.num_nodes for g in opened("val", 2)] == [9, 9]


def test_official_file_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SourceError, match=r"SBM_CLUSTER.pkl is not in .*data.dgl.ai"):
        CLUSTER(tmp_path, source="official", data=tmp_path)


def test_hostile_official_file_is_refused(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'owned'}",)

    path = tmp_path / "SBMs" / "SBM_PATTERN.pkl"
    path.parent.mkdir()
    path.write_bytes(pickle.dumps([Hostile()] * 3))
    with pytest.raises(SourceError, match="is refused"):
        PATTERN(tmp_path, source="official", data=tmp_path)
    assert not (tmp_path / "owned").exists()


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
    with pytest.raises(SourceError, match=r"nothing.npz is not a whole .npz"):
        read_npz(tmp_path / "nothing.npz", "n")
