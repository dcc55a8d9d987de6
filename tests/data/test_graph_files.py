import os
import resource

import numpy as np
import pytest
import torch
from graph_strategies import graphs as random_graphs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, InMemoryDataset

from fognn.data import ZINC
from fognn.data.graph_files import read_graphs, write_graphs
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
@given(graphs=alike(), form=st.sampled_from([list, Batch.from_data_list, InMemoryDataset.collate]))
def test_torch_save_then_read(tmp_path, graphs, form):
    torch.save(form(graphs), tmp_path / "a.pt")
    assert_same(read_graphs(tmp_path / "a.pt"), graphs)


@FILES
@given(graphs=alike())
def test_a_dict_of_flat_tensors(tmp_path, graphs):
    write_graphs(tmp_path / "a.npz", graphs)
    with np.load(tmp_path / "a.npz") as file:
        flat = {key: torch.from_numpy(file[key]) for key in file.files if key != "y_level"}
        if "y_level" in file.files:
            flat["y_level"] = str(file["y_level"])
    torch.save(flat, tmp_path / "a.pt")
    assert_same(read_graphs(tmp_path / "a.pt"), graphs)


def test_zinc_as_it_is_shared(real_data, tmp_path):
    path = real_data / "zinc" / "zinc12k.npz"
    found = read_graphs(path, split="test")
    # The facts of the data's own README.
    assert len(found) == 1000
    assert (found[0].num_nodes, found[0].num_edges) == (16, 34)
    assert found[0].y.item() == pytest.approx(1.997326, abs=1e-6)
    expected = ZINC(tmp_path, "test", source="npz", data=real_data)
    for a, b in zip(found[:50], expected[:50], strict=True):
        order = (a.edge_index[1] * a.num_nodes + a.edge_index[0]).argsort()
        assert torch.equal(a.edge_index[:, order], b.edge_index)
        assert torch.equal(a.edge_attr[order], b.edge_attr)
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
    message = r"split must be one of \['test', 'train', 'val'\], which .*zinc12k.npz has, got "
    for wrong in (None, "tset"):
        with pytest.raises(ValueError, match=f"{message}{wrong!r}"):
            read_graphs(path, split=wrong)


def test_small_integers_on_disk(tmp_path):
    write_graphs(tmp_path / "a.npz", [graph(3, 4, y=torch.tensor([-300]))])
    with np.load(tmp_path / "a.npz") as file:
        kinds = {key: file[key].dtype for key in file.files}
    assert kinds["edge_index"] == kinds["n"] == np.uint8
    assert kinds["y"] == np.int16
    assert kinds["x"] == np.float32


def test_a_folder_in_the_order_of_names(tmp_path):
    torch.save(GRAPHS[1], tmp_path / "b.pt")
    write_graphs(tmp_path / "a.NPZ", GRAPHS[:1])
    torch.save(GRAPHS, tmp_path / "c.pt")
    (tmp_path / "notes.txt").write_text("not a graph")
    (tmp_path / ".tmp-1-d.npz").write_bytes(b"half a file")
    assert_same(read_graphs(tmp_path), [GRAPHS[0], GRAPHS[1], *GRAPHS])
    assert_same(read_graphs(str(tmp_path)), [GRAPHS[0], GRAPHS[1], *GRAPHS])
    torch.save([graph(2, 1, y=torch.tensor([1.0])), graph(2, 1)], tmp_path / "d.pt")
    with pytest.raises(ValueError, match=r"d\.pt, graph 1 has x .*, it must be like the first gra"):
        read_graphs(tmp_path)


def test_a_folder_without_graphs(tmp_path):
    (tmp_path / "notes.txt").write_text("not a graph")
    with pytest.raises(ValueError, match=r"path must have a \.pt or \.npz file in it"):
        read_graphs(tmp_path)


@pytest.mark.parametrize("name", ["graphs.csv", "graphs", "graphs.pth"])
def test_another_ending(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(ValueError, match=r"path must be a folder, or end in \.pt or \.npz, got .*"):
        read_graphs(tmp_path / name)
    with pytest.raises(ValueError, match=r"path must end in \.npz, got .*"):
        write_graphs(tmp_path / name, GRAPHS)


@pytest.mark.parametrize("name", ["a.pt", "a.npz"])
def test_no_such_file(tmp_path, name):
    with pytest.raises(FileError, match=f"{name} is not there: name a"):
        read_graphs(tmp_path / name)


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_file(tmp_path, keep):
    path = tmp_path / "a.npz"
    write_graphs(path, GRAPHS)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(FileError, match=r"a\.npz is not a whole \.npz file of numbers"):
        read_graphs(path)


def save_old(content, path):
    torch.save(content, path, _use_new_zipfile_serialization=False)


@FILES
@given(
    form=st.sampled_from([".npz", ".pt", "old.pt"]),
    changes=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_a_file_with_wrong_bytes_is_read_or_refused(tmp_path, form, changes):
    path = tmp_path / f"a{form}"
    write = {".npz": lambda: write_graphs(path, GRAPHS), ".pt": lambda: torch.save(GRAPHS, path)}
    write.get(form, lambda: save_old(GRAPHS, path))()
    content = bytearray(path.read_bytes())
    for place, byte in changes:
        content[int(place * len(content))] = byte
    path.write_bytes(content)
    try:
        graphs = read_graphs(path)
    except (FileError, ValueError) as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert all(isinstance(graph, Data) for graph in graphs)


def test_an_npz_runs_no_pickle(tmp_path):
    np.savez(tmp_path / "a.npz", n=np.array([os.getcwd], dtype=object))
    with pytest.raises(FileError, match=r"a\.npz is not a whole \.npz file of numbers"):
        read_graphs(tmp_path / "a.npz")


def flat(**other) -> dict:
    """Two graphs with 2 and 3 nodes, 1 and 3 edges."""
    arrays = {
        "n": np.array([2, 3]),
        "e": np.array([1, 3]),
        "x": np.ones((5, 4)),
        "edge_index": np.array([[0, 0, 1, 2], [1, 1, 2, 0]]),
        **other,
    }
    return {key: value for key, value in arrays.items() if value is not None}


@pytest.mark.parametrize("ending", [".npz", ".pt"])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"n": None}, "a must have n, it has e, edge_index"),
        ({"n": None, "e": None}, "a must have n, e, it has edge_index, x"),
        ({"x": np.ones((6, 4))}, r"a: x must have 5 rows, the sum of its counts, got .*\[6, 4\]"),
        ({"x": np.array(1.0)}, r"a: x must have 5 rows, the sum of its counts, got shape \[\]"),
        ({"e": np.array([2, 3])}, r"a: edge_index must have 5 columns, .* got shape \[2, 4\]"),
        ({"edge_index": np.array([0, 1, 2, 0])}, "a: edge_index must have 4 columns"),
        ({"edge_index": np.zeros((3, 4), int)}, r"a, graph 0: edge_index must have shape \[2, ed"),
        ({"edge_attr": np.ones(3)}, r"a: edge_attr must have 4 rows, .* got shape \[3\]"),
        ({"n": np.array([2, 3, 0])}, r"a: n and e must be counts, .* got shapes \[3\] and \[2\]"),
        ({"n": np.array([6, -1])}, "a: n and e must be counts.*, some below 0"),
        ({"n": np.array(5), "e": np.array(4)}, r"a: n and e must be counts, .* shapes \[\] and "),
        ({"n": np.array([2.0, 3.0])}, "a: n must hold integers, got torch.float64"),
        ({"n": np.array([5, 0]), "e": np.array([4, 0])}, "a, graph 1: x must have a row for each"),
        ({"edge_index": np.ones((2, 4))}, "a: edge_index must hold integers, got torch.float64"),
        (
            {"edge_index": np.array([[0, 0, 1, 2], [1, 1, 3, 0]])},
            r"a, graph 1: edge_index .* got 3",
        ),
        ({"x": np.full((5, 1), np.nan)}, "a, graph 0: x must be finite, got NaN or infinity in "),
        (
            {"y": np.ones(7)},
            r"a: y must have 2 \(graphs\) or 5 \(nodes\) or 4 \(edges\) rows, got 7",
        ),
        ({"y": np.ones(3), "y_level": "grpah"}, "a: y_level must be one of .*, got 'grpah'"),
        ({"y": np.ones(3), "y_level": "node"}, r"a: y must have 5 rows, .* got shape \[3\]"),
        (
            {k: np.zeros((2, 0) if k == "edge_index" else 0, int) for k in flat()},
            "a must hold at least one graph, it holds none",
        ),
    ],
)
def test_flat_arrays_that_are_wrong(tmp_path, other, message, ending):
    arrays = flat(**other)
    path = tmp_path / f"a{ending}"
    if ending == ".npz":
        np.savez(path, **arrays)
    else:
        as_tensors = {k: v if isinstance(v, str) else torch.as_tensor(v) for k, v in arrays.items()}
        torch.save(as_tensors, path)
    with pytest.raises(ValueError, match=message.replace("a", rf"a\{ending}", 1)):
        read_graphs(path)


@pytest.mark.parametrize(("y", "rows"), [([1, 2], [1, 1]), ([1] * 5, [2, 3]), ([1] * 4, [1, 3])])
def test_the_level_of_y_by_its_rows(tmp_path, y, rows):
    np.savez(tmp_path / "a.npz", **flat(y=np.array(y)))
    assert [len(graph.y) for graph in read_graphs(tmp_path / "a.npz")] == rows


def test_rows_of_y_that_can_be_cut_in_two_ways(tmp_path):
    path = tmp_path / "a.npz"
    arrays = flat(e=np.array([3, 2]), edge_index=np.zeros((2, 5), int), y=np.arange(5))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="y has a row for each node or for each edge, which"):
        read_graphs(path)
    np.savez(path, **arrays, y_level="edge")
    assert [graph.y.tolist() for graph in read_graphs(path)] == [[0, 1, 2], [3, 4]]
    np.savez(path, **arrays, y_level="node")
    assert [graph.y.tolist() for graph in read_graphs(path)] == [[0, 1], [2, 3, 4]]


def test_split(tmp_path):
    names = {f"val_{key}": value for key, value in flat(y=np.array([7, 8])).items()}
    np.savez(tmp_path / "a.npz", **names)
    assert [graph.y.item() for graph in read_graphs(tmp_path / "a.npz", split="val")] == [7, 8]
    torch.save({k: torch.as_tensor(v) for k, v in names.items()}, tmp_path / "a.pt")
    assert [graph.y.item() for graph in read_graphs(tmp_path, split="val")] == [7, 8] * 2
    torch.save(GRAPHS, tmp_path / "b.pt")
    with pytest.raises(ValueError, match=r"split must be None for .*b\.pt, which has no splits"):
        read_graphs(tmp_path / "b.pt", split="val")


def test_what_write_graphs_refuses(tmp_path):
    path = tmp_path / "a.npz"
    for graphs, message in [
        ([], "graphs must hold at least one graph, got none"),
        (GRAPHS[0], "graphs must be a list of Data, got a single one"),
        (Batch.from_data_list(GRAPHS), "graphs must be a list of Data, got a single one"),
        ([GRAPHS[0], 3], r"graphs\[1\] must be a Data with one graph, got int"),
        ([graph(2, 1, pos=torch.ones(2, 3), name="a")], r"graphs\[0\] must have nothing but x, .* "
         r"got \['name', 'pos'\] too"),
        ([GRAPHS[0], graph(2, 1)], r"graphs\[1\] has x .*, it must be like the first graph"),
        ([graph(2, 1, y=torch.ones(2)), graph(2, 3, y=torch.ones(3))], r"graphs\[1\]: y must have"),
        ([graph(2, 1, edge_index=torch.tensor([[2], [0]]))], r"graphs\[0\]: edge_index must lie"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            write_graphs(path, graphs)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.npz"
    write_graphs(path, GRAPHS)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    noise = torch.randn(5000, 2, generator=torch.Generator().manual_seed(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
    try:
        with pytest.raises(FileError, match=r"a\.npz could not be written, the disk is full"):
            write_graphs(path, [graph(5000, 4, x=noise, y=torch.tensor([0.5]))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert_same(read_graphs(path), GRAPHS)
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
