"""Graphs in files: several, or one with masks; .npz and .pt."""

import numpy as np
import pytest
import torch
from graph_strategies import graphs as random_graphs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

from fognn.data import read_graphs, write_graphs
from fognn.utils.errors import FileError

FILES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def graph(nodes: int, edges: int, **other) -> Data:
    edge_index = torch.arange(2 * edges).reshape(2, edges) % nodes
    return Data(
        **{"x": torch.arange(2.0 * nodes).view(nodes, 2), "edge_index": edge_index, **other}
    )


GRAPHS = [graph(3, 4, y=torch.tensor([0.5])), graph(5, 6, y=torch.tensor([1.5]))]


def assert_same(found: list[Data], expected: list[Data]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert sorted(a.keys()) == sorted(b.keys())
        for key in b.to_dict():
            assert a[key].dtype == b[key].dtype
            assert torch.equal(a[key], b[key])


@st.composite
def alike(draw: st.DrawFn) -> list[Data]:
    """Graphs with isolated nodes, multi-edges, no edges; tokens or features; y at each level."""
    level = draw(st.sampled_from(["none", "graph", "node", "edge"]))
    shape = {
        name: draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,)])) for name in ("x", "edge", "y")
    }
    whole = {name: draw(st.booleans()) for name in shape}
    has_edge_attr = draw(st.booleans())
    bits = draw(st.sampled_from([2, 8, 16, 32, 62]))
    out = []
    for item in draw(st.lists(random_graphs(), min_size=1, max_size=5)):

        def values(name, rows, item=item):
            generator = torch.Generator().manual_seed(item.seed)
            size = (rows, *shape[name])
            if whole[name]:
                return torch.randint(-(2**bits), 2**bits, size, generator=generator)
            return torch.randn(size, generator=generator)

        data = Data(x=values("x", item.num_sources), edge_index=item.edge_index)
        if has_edge_attr:
            data.edge_attr = values("edge", item.num_edges)
        if level != "none":
            rows = {"graph": 1, "node": item.num_sources, "edge": item.num_edges}[level]
            data.y = values("y", rows)
        out.append(data)
    return out


@FILES
@given(graphs=alike())
def test_write_then_read(tmp_path, graphs):
    write_graphs(tmp_path / "a.npz", graphs)
    assert_same(read_graphs(tmp_path / "a.npz"), graphs)


@FILES
@given(graphs=alike(), form=st.sampled_from([list, tuple, InMemoryDataset.collate]))
def test_torch_save_then_read(tmp_path, graphs, form):
    torch.save(form(graphs), tmp_path / "a.pt")
    assert_same(read_graphs(tmp_path / "a.pt"), graphs)


def test_what_pyg_itself_saves(tmp_path):
    InMemoryDataset.save(GRAPHS, str(tmp_path / "a.pt"))
    assert_same(read_graphs(tmp_path / "a.pt"), GRAPHS)
    torch.save(GRAPHS[0], tmp_path / "a.pt")
    assert_same(read_graphs(tmp_path / "a.pt"), GRAPHS[:1])
    item = GRAPHS[0].clone()
    item.edge_index = EdgeIndex(item.edge_index, sparse_size=(3, 3)).sort_by("col").values
    torch.save([item], tmp_path / "a.pt")
    (found,) = read_graphs(tmp_path / "a.pt")
    assert torch.equal(found.edge_index, item.edge_index.as_tensor())


def test_zinc_as_it_is_shared(real_data, tmp_path):
    with np.load(real_data / "zinc" / "zinc12k.npz") as file:
        names = ("n", "e", "x", "edge_index", "edge_attr", "y")
        np.savez(tmp_path / "test.npz", **{name: file[f"test_{name}"] for name in names})
    found = read_graphs(tmp_path / "test.npz")
    # The facts of the data's own README.
    assert len(found) == 1000
    assert (found[0].num_nodes, found[0].num_edges) == (16, 34)
    assert found[0].y.item() == pytest.approx(1.997326, abs=1e-6)


def test_a_folder_in_the_order_of_names(tmp_path):
    torch.save(GRAPHS[1], tmp_path / "b.pt")
    write_graphs(tmp_path / "a.NPZ", GRAPHS[:1])
    torch.save(GRAPHS, tmp_path / "c.pt")
    (tmp_path / "notes.txt").write_text("not a graph")
    (tmp_path / ".tmp-1-d.npz").write_bytes(b"half a file")
    assert_same(read_graphs(tmp_path), [GRAPHS[0], GRAPHS[1], *GRAPHS])
    torch.save([graph(2, 1)], tmp_path / "d.pt")
    with pytest.raises(ValueError, match="graph 4: y must be"):
        read_graphs(tmp_path)


@pytest.mark.parametrize("name", ["graphs.csv", "graphs", "a.pt", "a.npz", "."])
def test_no_such_file(tmp_path, name):
    with pytest.raises((FileError, ValueError), match=r"is not there|at least one graph"):
        read_graphs(tmp_path / name)


@pytest.mark.parametrize("ending", [".npz", ".pt"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_file(tmp_path, ending, keep):
    path = tmp_path / f"a{ending}"
    write_graphs(path, GRAPHS) if ending == ".npz" else torch.save(GRAPHS, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(FileError, match=rf"a\{ending} cannot be read"):
        read_graphs(path)


class OwnData(Data):
    pass


@pytest.mark.parametrize("content", [[OwnData()], torch.nn.Linear(1, 1), [np.ones(3)]])
def test_a_file_with_other_classes_is_not_read(tmp_path, content):
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(FileError, match=r"a\.pt cannot be read .*save a list of Data"):
        read_graphs(tmp_path / "a.pt")


@pytest.mark.parametrize("content", [3, torch.ones(3), [], [3], [HeteroData()]])
def test_no_graphs(tmp_path, content):
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt.* must (hold|be)"):
        read_graphs(tmp_path / "a.pt")


# Several graphs in flat arrays: 2 and 3 nodes, 1 and 3 edges


def flat(**other) -> dict:
    arrays = {
        "n": np.array([2, 3]),
        "e": np.array([1, 3]),
        "x": np.ones((5, 4)),
        "edge_index": np.array([[0, 0, 1, 2], [1, 1, 2, 0]]),
        **other,
    }
    return {key: value for key, value in arrays.items() if value is not None}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"e": None}, "must have e"),
        ({"edge_index": None}, "must have edge_index"),
        ({"x": np.ones((6, 4))}, "x must have 5 rows"),
        ({"e": np.array([2, 3])}, "edge_index must have 5 rows"),
        ({"edge_attr": np.ones(3)}, "edge_attr must have 4 rows"),
        ({"edge_index": np.ones((2, 4))}, "edge_index of integers"),
        ({"edge_index": np.array([[0, 0, 1, 2], [1, 1, 3, 0]])}, "graph 1"),
        ({"x": np.full((5, 1), np.nan)}, "graph 0: x must be finite"),
        ({"y": np.ones(7)}, "y must have a row for each graph, node or edge"),
        ({"y": np.array([np.inf, 0])}, "graph 0: y must be finite"),
    ],
)
def test_flat_arrays_that_are_wrong(tmp_path, other, message):
    np.savez(tmp_path / "a.npz", **flat(**other))
    with pytest.raises(ValueError, match=rf"a\.npz.*{message}"):
        read_graphs(tmp_path / "a.npz")


@pytest.mark.parametrize(("y", "rows"), [([1, 2], [1, 1]), ([1] * 5, [2, 3]), ([1] * 4, [1, 3])])
def test_the_level_of_y_by_its_rows(tmp_path, y, rows):
    np.savez(tmp_path / "a.npz", **flat(y=np.array(y)))
    assert [len(graph.y) for graph in read_graphs(tmp_path / "a.npz")] == rows


def test_rows_of_y_that_can_be_cut_in_two_ways(tmp_path):
    path = tmp_path / "a.npz"
    arrays = flat(e=np.array([3, 2]), edge_index=np.zeros((2, 5), int), y=np.arange(5))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="y_level must say which"):
        read_graphs(path)
    np.savez(path, **arrays, y_level="edge")
    assert [graph.y.tolist() for graph in read_graphs(path)] == [[0, 1, 2], [3, 4]]
    np.savez(path, **arrays, y_level="node")
    assert [graph.y.tolist() for graph in read_graphs(path)] == [[0, 1], [2, 3, 4]]


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "at least one graph"),
        (GRAPHS[0], "graphs must be a list"),
        ([GRAPHS[0], 3], "graph 1 must be a Data"),
        ([Batch.from_data_list(GRAPHS)], "graph 0 must be a Data"),
        ([GRAPHS[0], graph(2, 1)], "graph 1: y must be"),
        ([graph(2, 1, y=torch.ones(2)), graph(2, 3, y=torch.ones(3))], "y must have one row"),
        ([graph(2, 1, edge_index=torch.tensor([[2], [0]]))], "graph 0"),
        ([graph(2, 1, edge_attr=torch.ones(2))], "graph 0: edge_attr must have 1 rows"),
        ([graph(2, 1, x=torch.eye(2).to_sparse())], "graph 0: x must be a dense tensor"),
        ([Data(x=torch.ones(2, 1))], "graph 0 must be a Data with edge_index"),
    ],
)
def test_graphs_that_are_refused(tmp_path, graphs, message):
    with pytest.raises(ValueError, match=f"write_graphs.*{message}"):
        write_graphs(tmp_path / "a.npz", graphs)
    assert list(tmp_path.iterdir()) == []


# One graph with masks

N = 9  # three classes, three nodes of each
TRAIN = np.array([1, 0, 0] * 3, dtype=bool)
VAL, TEST = np.roll(TRAIN, 1), np.roll(TRAIN, 2)


def test_the_names_of_pyg(tmp_path):
    arrays = {
        "x": np.eye(N, 4, dtype=np.float64),
        "edge_index": np.array([[0, 1, 2, 3], [1, 2, 2, 8]]),
        "edge_attr": np.arange(4),
        "y": np.repeat([0, 1, 2], 3),
        "train_mask": TRAIN,
        "val_mask": VAL,
        "test_mask": TEST,
    }
    np.savez(tmp_path / "a.npz", **arrays)
    torch.save(Data(**{k: torch.as_tensor(v) for k, v in arrays.items()}), tmp_path / "a.pt")
    for ending in ("npz", "pt"):
        (found,) = read_graphs(tmp_path / f"a.{ending}")
        assert found.num_nodes == N
        assert found.x.dtype == torch.float32
        assert found.edge_index.tolist() == [[0, 1, 2, 3], [1, 2, 2, 8]]
        assert found.edge_attr.tolist() == [0, 1, 2, 3]
        assert found.train_mask.dtype == torch.bool
        assert found.val_mask.tolist() == VAL.tolist()


def test_the_names_of_the_heterophilous_graphs(tmp_path):
    arrays = {
        "node_features": np.eye(N, 4),
        "node_labels": np.repeat([0, 1, 2], 3),
        "edges": np.array([[0, 1], [1, 2], [2, 2], [8, 3], [2, 1]]),
        "train_masks": np.stack([TRAIN, VAL]),
        "val_masks": np.stack([VAL, TEST]),
        "test_masks": np.stack([TEST, TRAIN]),
    }
    np.savez(tmp_path / "a.npz", **arrays)
    (found,) = read_graphs(tmp_path / "a.npz")
    # Both directions, each once; a self loop is one edge.
    edges = sorted(zip(*found.edge_index.tolist(), strict=True))
    assert edges == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2), (3, 8), (8, 3)]
    assert found.train_mask.shape == (N, 2)
    assert found.train_mask[:, 1].tolist() == VAL.tolist()
    assert found.test_mask[:, 1].tolist() == TRAIN.tolist()
    for wrong in (np.ones((3, 3), int), np.array([[0, N]])):
        np.savez(tmp_path / "a.npz", **{**arrays, "edges": wrong})
        with pytest.raises(ValueError, match=r"a\.npz"):
            read_graphs(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes", "splits"),
    [("actor", 7600, 26_659, 5, 10), ("chameleon_filtered", 890, 8_854, 5, 10)],
)
def test_the_shared_graphs(real_data, name, nodes, edges, classes, splits):
    """The facts of the data's own README."""
    (found,) = read_graphs(real_data / "single_graph" / f"{name}.npz")
    assert (found.num_nodes, found.num_edges) == (nodes, 2 * edges)
    assert found.y.unique().tolist() == list(range(classes))
    masks = [found.train_mask, found.val_mask, found.test_mask]
    assert {mask.shape for mask in masks} == {(nodes, splits)}
