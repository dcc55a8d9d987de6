"""One graph with masks: both layouts, .npz and .pt, and what raises."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from fognn.data.graph_files import read_graphs, write_graphs
from fognn.data.single_graph import is_single_graph, read_single_graph
from fognn.utils.errors import FileError

N = 9  # three classes, three nodes of each; the last nodes of each class are without split
TRAIN = np.array([1, 0, 0] * 3, dtype=bool)
VAL, TEST = np.roll(TRAIN, 1), np.roll(TRAIN, 2)


def pyg_like(**other):
    arrays = {
        "x": np.eye(N, 4, dtype=np.float64),
        "edge_index": np.array([[0, 1, 2, 3], [1, 2, 2, 8]]),
        "y": np.repeat([0, 1, 2], 3),
        "train_mask": TRAIN,
        "val_mask": VAL,
        "test_mask": TEST,
        **other,
    }
    return {name: value for name, value in arrays.items() if value is not None}


def heterophilous(**other):
    arrays = {
        "node_features": np.eye(N, 4),
        "node_labels": np.repeat([0, 1, 2], 3),
        "edges": np.array([[0, 1], [1, 2], [2, 2], [8, 3], [2, 1]]),
        "train_masks": np.stack([TRAIN, VAL]),
        "val_masks": np.stack([VAL, TEST]),
        "test_masks": np.stack([TEST, TRAIN]),
        **other,
    }
    return {name: value for name, value in arrays.items() if value is not None}


def write(path, arrays):
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        torch.save({name: torch.as_tensor(value) for name, value in arrays.items()}, path)
    return path


@pytest.mark.parametrize("ending", [".npz", ".pt"])
def test_the_names_of_pyg(tmp_path, ending):
    path = write(tmp_path / f"a{ending}", pyg_like(edge_attr=np.arange(4)))
    assert is_single_graph(path)
    graph = read_single_graph(path)
    assert graph.num_nodes == N
    assert graph.x.dtype == torch.float32
    assert graph.edge_index.tolist() == [[0, 1, 2, 3], [1, 2, 2, 8]]
    assert graph.edge_attr.tolist() == [0, 1, 2, 3]
    assert graph.y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert graph.train_mask.shape == (N, 1)
    assert graph.train_mask.dtype == torch.bool
    assert graph.val_mask[:, 0].tolist() == VAL.tolist()


def test_the_names_of_the_heterophilous_graphs(tmp_path):
    graph = read_single_graph(write(tmp_path / "a.npz", heterophilous()))
    # Both directions, each once; a self loop is one edge.
    edges = sorted(zip(*graph.edge_index.tolist(), strict=True))
    assert edges == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2), (3, 8), (8, 3)]
    assert graph.train_mask.shape == (N, 2)
    assert graph.train_mask[:, 1].tolist() == VAL.tolist()
    assert graph.test_mask[:, 1].tolist() == TRAIN.tolist()


@pytest.mark.parametrize("form", ["data", "list", "tuple", "collated", "processed"])
def test_pt_files(tmp_path, form):
    graph = Data(**{name: torch.as_tensor(value) for name, value in pyg_like().items()})
    content = {
        "data": graph,
        "list": [graph],
        "tuple": (graph,),
        "collated": InMemoryDataset.collate([graph]),
        "processed": (graph.to_dict(), None, Data),
    }[form]
    path = tmp_path / "a.pt"
    torch.save(content, path)
    assert is_single_graph(path)
    assert read_single_graph(path).test_mask.sum() == 3
    torch.save(content, path, _use_new_zipfile_serialization=False)
    assert is_single_graph(path)


def test_other_files_are_not_of_this_kind(tmp_path):
    graph = Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    write_graphs(tmp_path / "a.npz", [graph])
    torch.save([graph, graph], tmp_path / "b.pt")
    (tmp_path / "c.csv").write_text("smiles\nC\n")
    (tmp_path / "d.npz").write_bytes(b"half")
    for name in ("a.npz", "b.pt", "c.csv", "d.npz", "no.npz", "."):
        assert not is_single_graph(tmp_path / name)
    assert len(read_graphs(tmp_path / "b.pt")) == 2
    with pytest.raises(FileError, match=r"no\.npz is not there"):
        read_single_graph(tmp_path / "no.npz")
    with pytest.raises(FileError, match=r"d\.npz is not a whole \.npz file"):
        read_single_graph(tmp_path / "d.npz")


def test_two_graphs_with_masks(tmp_path):
    graph = Data(**{name: torch.as_tensor(value) for name, value in pyg_like().items()})
    torch.save([graph, graph], tmp_path / "a.pt")
    assert is_single_graph(tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt must have one graph if it has masks, got 2"):
        read_single_graph(tmp_path / "a.pt")


def test_a_graph_without_features_or_edges(tmp_path):
    arrays = pyg_like(x=None, edge_index=np.zeros((2, 0), int))
    graph = read_single_graph(write(tmp_path / "a.npz", arrays))
    assert "x" not in graph
    assert (graph.num_nodes, graph.num_edges) == (N, 0)


@pytest.mark.parametrize("ending", [".npz", ".pt"])
def test_a_graph_without_masks(tmp_path, ending):
    arrays = pyg_like(train_mask=None, val_mask=None, test_mask=None)
    path = write(tmp_path / f"a{ending}", arrays)
    assert is_single_graph(path)
    graph = read_single_graph(path)
    assert "train_mask" not in graph
    assert graph.y.shape == (N,)
    with pytest.raises(ValueError, match="y must have a label for at least one node"):
        read_single_graph(write(path, {**arrays, "y": np.full(N, -1)}))


@pytest.mark.parametrize("names", [pyg_like, heterophilous])
def test_inputs_only(tmp_path, names):
    """For predictions, labels and masks are neither needed nor checked."""
    wrong = {name: np.ones(3) for name in names() if "mask" in name or name in ("y", "node_labels")}
    none = dict.fromkeys(wrong)
    for other in (wrong, none):
        graph = read_single_graph(write(tmp_path / "a.npz", names(**other)), labels=False)
        assert sorted(graph.keys()) == ["edge_index", "num_nodes", "x"]
        assert graph.num_nodes == N


def test_bags_of_words_are_numbers_and_other_integers_stay(tmp_path):
    for x, dtype in [
        (np.eye(N, 4, dtype=np.uint8), torch.float32),
        (2 * np.eye(N, 4, dtype=np.uint8), torch.int64),
        (np.eye(N, 1, dtype=np.uint8), torch.int64),
        (np.arange(N), torch.int64),
    ]:
        assert read_single_graph(write(tmp_path / "a.npz", pyg_like(x=x))).x.dtype == dtype


def test_one_test_mask_for_all_splits(tmp_path):
    """As in PyG's WikiCS."""
    both = {"train_mask": np.stack([TRAIN, VAL], 1), "val_mask": np.stack([VAL, TRAIN], 1)}
    graph = read_single_graph(write(tmp_path / "a.npz", pyg_like(**both)))
    assert torch.equal(graph.test_mask[:, 0], graph.test_mask[:, 1])
    assert graph.val_mask.shape == (N, 2)


@pytest.mark.parametrize("y", [[0, -1, 0, 1, 1, 1, 2, 2, 2], [0, np.nan, 1, 2, 3, 4, 5, 6, 7]])
def test_nodes_without_label(tmp_path, y):
    unused = np.where(np.arange(N) == 1, False, VAL)
    arrays = pyg_like(y=np.array(y), val_mask=unused)
    assert read_single_graph(write(tmp_path / "a.npz", arrays)).y.shape == (N,)
    arrays["val_mask"] = VAL
    message = r"a\.npz: val_mask of split 1 must select nodes with a label only, got node 1 with y"
    with pytest.raises(ValueError, match=message):
        read_single_graph(write(tmp_path / "a.npz", arrays))


def test_several_values_with_gaps(tmp_path):
    y = np.ones((N, 2))
    y[0, 0] = np.nan
    assert read_single_graph(write(tmp_path / "a.npz", pyg_like(y=y))).y.shape == (N, 2)
    y[0, 1] = np.nan
    with pytest.raises(ValueError, match=r"train_mask of split 1 .* got node 0"):
        read_single_graph(write(tmp_path / "a.npz", pyg_like(y=y)))


NONE = np.zeros(N, bool)


@pytest.mark.parametrize("ending", [".npz", ".pt"])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"val_mask": None}, r"must have val_mask, it has only"),
        ({"y": None}, r"must have y, it has only"),
        ({"edge_index": None}, r"must have edge_index"),
        ({"val_mask": TRAIN | VAL}, "train_mask and val_mask of split 1 must not overlap, got 3"),
        ({"test_mask": TRAIN | TEST}, "train_mask and test_mask of split 1 .* overlap, got 3"),
        ({"test_mask": VAL | TEST}, "val_mask and test_mask of split 1 must not overlap, got 3"),
        (
            {"val_mask": np.stack([VAL, VAL, NONE], 1)},
            "val_mask of split 3 must select a node, got none",
        ),
        ({"train_mask": NONE}, "train_mask of split 1 must select a node, got none"),
        ({"test_mask": NONE}, "test_mask of split 1 must select a node, got none"),
        ({"val_mask": VAL[:-1]}, "val_mask must have 9 nodes and 1 splits .*, got 8 and 1"),
        (
            {"train_mask": np.stack([TRAIN] * 2, 1), "test_mask": np.stack([TEST] * 3, 1)},
            "train_mask must have 9 nodes and 3 splits .*, got 9 and 2",
        ),
        ({"val_mask": VAL[:, None, None]}, r"val_mask must have shape \[nodes\] or .*, got \[9, 1"),
        ({"val_mask": np.arange(N)}, "val_mask must be True or False for each node, got 2"),
        ({"val_mask": VAL * 1.0}, "val_mask must hold integers, got torch.float64"),
        ({"x": np.ones((N - 1, 2))}, "edge_index must lie in 0..7, the nodes of the graph, got 8"),
        ({"x": np.ones((N + 1, 2))}, "train_mask must have a row for each of 10 nodes, got 9"),
        ({"x": np.full((N, 2), np.inf)}, "x must be finite, got NaN or infinity in row 0"),
        ({"edge_index": np.array([[0], [N]])}, r"edge_index must lie in 0\.\.8, .* got 9"),
        ({"edge_index": np.array([[0, 1]])}, r"edge_index must have shape \[2, edges\]"),
        ({"edge_attr": np.ones((3, 2))}, "edge_attr must have one entry for each of 4 edges"),
        ({"y": np.arange(N - 1)}, r"y must have a row for each of 9 nodes, got shape \[8\]"),
        ({"y": np.full(N, -2)}, "y of integers must be classes from 0 .* got -2"),
        ({"y": np.eye(N, dtype=int)}, r"y of integers must be classes .* got shape \[9, 9\]"),
        ({"y": np.full(N, np.inf)}, "y must be finite, or NaN"),
    ],
)
def test_wrong_graphs(tmp_path, other, message, ending):
    path = write(tmp_path / f"a{ending}", pyg_like(**other))
    with pytest.raises(ValueError, match=rf"a\{ending}.*{message}"):
        read_single_graph(path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"edges": np.array([[0, N]])}, r"edges must lie in 0\.\.8, the nodes of the graph, got 9"),
        ({"edges": np.array([[0, -1]])}, r"edges must lie in 0\.\.8, .* got -1"),
        ({"edges": np.array([[0, 1, 2]])}, r"edges must have shape \[edges, 2\], got \[1, 3\]"),
        ({"edge_attr": np.ones(5)}, "must not have edge_attr beside edges"),
        (
            {"val_masks": np.stack([VAL, NONE])},
            "val_mask of split 2 must select a node, got none",
        ),
    ],
)
def test_wrong_graphs_in_the_other_layout(tmp_path, other, message):
    path = write(tmp_path / "a.npz", heterophilous(**other))
    with pytest.raises(ValueError, match=rf"a\.npz.*{message}"):
        read_single_graph(path)


def test_an_expanded_mask(tmp_path):
    many = torch.ones(1, dtype=torch.bool).expand(20_000_000)
    values = {name: torch.as_tensor(value) for name, value in pyg_like().items()}
    torch.save(values | {"train_mask": many}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match="train_mask must be stored in full, got 20,000,000"):
        read_single_graph(tmp_path / "a.pt")


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes", "splits", "sizes"),
    [
        ("actor", 7600, 26_659, 5, 10, None),
        ("chameleon_filtered", 890, 8_854, 5, 10, None),
        ("cora", 2708, 5_278, 7, 1, (140, 500, 1000)),
    ],
)
def test_the_shared_graphs(real_data, name, nodes, edges, classes, splits, sizes):
    """The facts of the data's own README."""
    path = real_data / "single_graph" / f"{name}.npz"
    assert is_single_graph(path)
    graph = read_single_graph(path)
    assert (graph.num_nodes, graph.num_edges) == (nodes, 2 * edges)
    assert graph.y.unique().tolist() == list(range(classes))
    assert graph.x.dtype == torch.float32
    masks = [graph.train_mask, graph.val_mask, graph.test_mask]
    assert {mask.shape for mask in masks} == {(nodes, splits)}
    if sizes is not None:
        assert tuple(int(mask.sum()) for mask in masks) == sizes
