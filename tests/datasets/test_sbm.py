import os
import pickle
import sys
import types

import pytest
import torch
from torch_geometric.loader import DataLoader

from fognn.datasets.sbm import CLUSTER, PATTERN
from fognn.datasets.sbm_generator import generate_cluster, generate_pattern
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
    with pytest.raises(FileError, match=r"SBM_CLUSTER.pkl is not in .*data.dgl.ai"):
        CLUSTER(tmp_path, source="official", data=tmp_path)


def test_hostile_official_file_is_refused(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'owned'}",)

    path = tmp_path / "SBMs" / "SBM_PATTERN.pkl"
    path.parent.mkdir()
    path.write_bytes(pickle.dumps([Hostile()] * 3))
    with pytest.raises(FileError, match="is refused"):
        PATTERN(tmp_path, source="official", data=tmp_path)
    assert not (tmp_path / "owned").exists()
