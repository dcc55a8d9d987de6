import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from imdb_example import TEXT
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data
from torch_geometric.loader import DataLoader

from fognn.data.imdb import IMDBMulti, _integer_rows, _read_text
from fognn.utils.errors import FileError

TRIANGLE = [[1, 2, 0, 2, 0, 1], [0, 0, 1, 1, 2, 2]]
PATH = [[1, 0, 2, 1], [0, 1, 1, 2]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "imdb_multi" / "10fold_idx").mkdir(parents=True)
    (tmp_path / "data" / "imdb_multi" / "IMDBMULTI.txt").write_text(TEXT)
    return tmp_path / "data"


def load(tmp_path: Path, folder: Path, **options: Any) -> IMDBMulti:
    return IMDBMulti(tmp_path / "root", data=folder, **options)


not_official = pytest.mark.filterwarnings("ignore:.*is not the official file")


# The real dataset


@pytest.fixture(scope="module")
def real(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> IMDBMulti:
    return IMDBMulti(tmp_path_factory.mktemp("imdb"), data=real_data)


def test_published_facts(real: IMDBMulti) -> None:
    assert len(real) == 1500
    assert (real.num_classes, real.num_features) == (3, 1)
    assert sum(data.num_nodes for data in real) == 19_502
    assert sum(data.num_edges for data in real) == 2 * 98_903
    labels = torch.cat([data.y for data in real])
    assert labels.dtype == torch.int64
    assert labels.bincount().tolist() == [500, 500, 500]


def test_every_graph_is_whole(real: IMDBMulti) -> None:
    for data in real:
        assert data.validate()
        assert data.x.dtype == torch.float32
        assert torch.equal(data.x, torch.ones(data.num_nodes, 1))
        assert data.edge_index.dtype == torch.int64
        assert data.is_undirected()
        assert not data.has_self_loops()
        key = data.edge_index[1] * data.num_nodes + data.edge_index[0]
        assert bool((key.diff() > 0).all())  # by target, then source, and no edge twice


def test_first_graph_against_the_file(real: IMDBMulti, real_data: Path) -> None:
    # The file's second line says "7 0"; its first graph is a clique.
    assert (real_data / "imdb_multi" / "IMDBMULTI.txt").read_text().split("\n")[1] == "7 0"
    assert real[0].num_nodes == 7
    assert real[0].y.tolist() == [0]
    assert torch.equal(1 - torch.eye(7), adjacency(real[0]))


def test_folds_of_the_files(real: IMDBMulti, real_data: Path) -> None:
    folds = real.folds()
    assert len(folds) == 10
    assert [(len(train), len(test)) for train, test in folds] == [(1350, 150)] * 10
    assert torch.cat([test for _, test in folds]).sort().values.tolist() == list(range(1500))
    for train, test in folds:
        assert torch.cat([train, test]).sort().values.tolist() == list(range(1500))
    assert folds[0][0][:3].tolist() == [1294, 690, 730]  # the first lines of train_idx-1.txt
    assert len(real[folds[0][1]]) == 150


def test_no_warning_for_the_official_files(
    real_data: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    IMDBMulti(tmp_path, data=real_data).folds()
    assert not [w for w in recwarn if "official" in str(w.message)]


def test_in_a_plain_loader(real: IMDBMulti) -> None:
    batch = next(iter(DataLoader(real, batch_size=32)))
    assert batch.num_graphs == 32
    assert batch.x.size(0) == sum(real[i].num_nodes for i in range(32))


# Stratified folds


@pytest.mark.parametrize("k", [2, 7, 10, 500])
def test_stratified_folds(real: IMDBMulti, k: int) -> None:
    labels = torch.cat([data.y for data in real])
    folds = real.stratified_folds(k, seed=3)
    assert len(folds) == k
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    counts = torch.stack([labels[test].bincount(minlength=3) for _, test in folds])
    assert int((counts.max(0).values - counts.min(0).values).max()) <= 1
    assert torch.cat([test for _, test in folds]).sort().values.tolist() == list(range(1500))
    for train, test in folds[:3]:
        assert torch.cat([train, test]).sort().values.tolist() == list(range(1500))


def test_stratified_folds_by_seed(real: IMDBMulti) -> None:
    def first(seed: int) -> list[int]:
        return real.stratified_folds(seed=seed)[0][1].tolist()

    assert first(0) == first(0)
    assert first(0) != first(1)
    # The rule, worked out by hand: the smallest hash of class 0 is dealt to the first fold.
    zeros = [i for i, data in enumerate(real) if data.y.item() == 0]
    assert min(zeros, key=lambda i: hashlib.sha256(f"0 {i}".encode()).hexdigest()) in first(0)


@pytest.mark.parametrize("k", [1, 0, -1, 501, 2.0, "10", None])
def test_stratified_folds_bad_k(real: IMDBMulti, k: Any) -> None:
    with pytest.raises(ValueError, match="k must be an int from 2 to 500"):
        real.stratified_folds(k)


def test_stratified_folds_bad_seed(real: IMDBMulti) -> None:
    with pytest.raises(ValueError, match="seed must be an int, got 'x'"):
        real.stratified_folds(seed="x")  # type: ignore[arg-type]


# Sources


def adjacency(data: Data) -> Tensor:
    dense = torch.zeros(data.num_nodes, data.num_nodes)
    dense[data.edge_index[0], data.edge_index[1]] = 1
    return dense


@not_official
def test_text(tmp_path: Path, folder: Path) -> None:
    dataset = load(tmp_path, folder)
    assert [data.edge_index.tolist() for data in dataset] == [TRIANGLE, TRIANGLE, PATH]
    assert [data.y.tolist() for data in dataset] == [[0], [2], [1]]
    assert [data.num_nodes for data in dataset] == [3, 3, 4]  # the last node has no edge
    assert repr(dataset) == "IMDBMulti(3)"


def test_text_that_is_not_official_gives_a_warning(tmp_path: Path, folder: Path) -> None:
    with pytest.warns(UserWarning, match="is not the official file"):
        load(tmp_path, folder)


@not_official
def test_changed_text_is_read_afresh(tmp_path: Path, folder: Path) -> None:
    assert len(load(tmp_path, folder)) == 3
    (folder / "imdb_multi" / "IMDBMULTI.txt").write_text("1\n2 0\n0 1 1\n0 1 0\n")
    assert len(load(tmp_path, folder)) == 1


def write_tu(folder: Path, dataset: Any, tail: str = "") -> Path:
    """Writes graphs in the TU format, by its description at the collection's site."""
    folder.mkdir(parents=True, exist_ok=True)
    edges, graphs, first = [], [], 1
    for number, data in enumerate(dataset, 1):
        edges += [f"{first + a}, {first + b}" for a, b in data.edge_index.t().tolist()]
        graphs += [str(number)] * data.num_nodes
        first += data.num_nodes
    labels = [str(data.y.item() + 1) for data in dataset]
    for name, lines in (("A", edges), ("graph_indicator", graphs), ("graph_labels", labels)):
        (folder / f"IMDB-MULTI_{name}.txt").write_text("\n".join(lines) + "\n" + tail)
    return folder


def test_tu_equals_text_and_pyg(real: IMDBMulti, tmp_path: Path) -> None:
    raw = write_tu(tmp_path / "data" / "IMDB-MULTI", real)
    dataset = load(tmp_path, tmp_path / "data", source="tu")
    for mine, text in zip(dataset, real, strict=True):
        assert torch.equal(mine.edge_index, text.edge_index)
        assert torch.equal(mine.y, text.y)
        assert torch.equal(mine.x, text.x)
    data, slices, _ = read_tu_data(str(raw), "IMDB-MULTI")
    for i, mine in enumerate(dataset):
        theirs = data.edge_index[:, slices["edge_index"][i] : slices["edge_index"][i + 1]]
        assert torch.equal(
            adjacency(Data(edge_index=theirs, num_nodes=mine.num_nodes)), adjacency(mine)
        )
        assert mine.y.item() == data.y[i].item()


@not_official
def test_tu_drops_repeated_edges_and_self_loops(tmp_path: Path, folder: Path) -> None:
    raw = write_tu(folder / "IMDB-MULTI", load(tmp_path, folder))
    with open(raw / "IMDB-MULTI_A.txt", "a") as file:
        file.write("1, 2\n2,1\n3, 3\n")
    dataset = load(tmp_path, folder, source="tu")
    assert [data.edge_index.tolist() for data in dataset] == [TRIANGLE, TRIANGLE, PATH]


def test_tu_missing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(FileError, match=r"IMDB-MULTI_A\.txt is not in .*unpack https://"):
        load(tmp_path, tmp_path / "data", source="tu")


@not_official
def test_pyg_reads_what_its_dataset_downloads(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PyG's own class downloads, from an archive of the true layout at a local address.
    text = load(tmp_path, folder)
    raw = write_tu(tmp_path / "site" / "IMDB-MULTI", text)
    with zipfile.ZipFile(tmp_path / "site" / "IMDB-MULTI.zip", "w") as file:
        for path in sorted(raw.iterdir()):
            file.write(path, f"IMDB-MULTI/{path.name}")
    monkeypatch.setattr(TUDataset, "url", f"file://{tmp_path / 'site'}")
    dataset = load(tmp_path, folder, source="pyg")
    assert [d.edge_index.tolist() for d in dataset] == [d.edge_index.tolist() for d in text]
    assert [d.num_nodes for d in dataset] == [3, 3, 4]


def test_pyg_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TUDataset, "url", "http://127.0.0.1:1")
    with pytest.raises(FileError, match=r"PyG could not get IMDB-MULTI.*use source='text'"):
        load(tmp_path, tmp_path, source="pyg")


def test_unknown_source(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="source must be 'text', 'tu' or 'pyg', got 'mat'"):
        IMDBMulti(tmp_path, source="mat")


# Folds in bad order


@not_official
def test_folds_only_for_the_whole_text(tmp_path: Path, folder: Path) -> None:
    write_tu(folder / "IMDB-MULTI", load(tmp_path, folder))
    with pytest.raises(ValueError, match="source must be 'text', got 'tu'"):
        load(tmp_path, folder, source="tu").folds()
    few = load(tmp_path, folder, pre_filter=lambda data: data.num_nodes == 3)
    assert len(few) == 2
    with pytest.raises(ValueError, match="pre_filter must be None"):
        few.folds()


@not_official
@pytest.mark.parametrize(
    ("train", "test", "error"),
    [
        ("0\n1\n", "2\n", None),
        ("0\n1\n", "1\n", "must name each of the 3 graphs once"),
        ("0\n", "2\n", "must name each of the 3 graphs once"),
        ("0\n1\n", "2\n3\n", "must name each of the 3 graphs once"),
        ("0\nx\n", "2\n", r"train_idx-1.txt, line 2: expected integers, got 'x'"),
        ("0\n1\n", "\n2\n", r"test_idx-1.txt, line 1: expected 1 integers, got 0"),
    ],
)
def test_fold_files(tmp_path: Path, folder: Path, train: str, test: str, error: str | None) -> None:
    for fold in range(1, 11):
        for part, text in (("train", train), ("test", test)):
            (folder / f"imdb_multi/10fold_idx/{part}_idx-{fold}.txt").write_text(text)
    dataset = load(tmp_path, folder)
    if error is None:
        assert [(a.tolist(), b.tolist()) for a, b in dataset.folds()] == [([0, 1], [2])] * 10
    else:
        with pytest.raises(FileError, match=error):
            dataset.folds()


@not_official
def test_broken_file_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    path = folder / "imdb_multi" / "IMDBMULTI.txt"
    path.write_text(TEXT.replace("0 2 1 2", "0 2 1 3", 1))
    with pytest.raises(FileError, match=r"IMDBMULTI\.txt, line 3: .* not in 0\.\.2"):
        load(tmp_path, folder)
    assert list((tmp_path / "root").rglob("*.pt")) == []
    path.write_text(TEXT)
    assert len(load(tmp_path, folder)) == 3


# Broken files


@pytest.mark.parametrize(
    ("old", "new", "line", "error"),
    [
        ("3\n3 0", "x\n3 0", 1, "expected integers, got 'x'"),
        ("3\n3 0", "0\n3 0", 1, "expected the number of graphs"),
        ("3\n3 0", "4\n3 0", 15, "the file ends, expected a graph's nodes and label"),
        ("3\n3 0", "2\n3 0", 10, "expected the end of the file after 2 graphs"),
        ("3\n3 0", "3\n3 3", 2, "expected nodes and a label from 0 to 2"),
        ("3\n3 0", "3\n0 0", 2, "expected nodes and a label"),
        ("0 2 1 2", "0 2 1 3", 3, r"node 0 has a neighbour that is not in 0\.\.2"),
        ("0 2 1 2", "0 2 1 -1", 3, "has a neighbour that is not in"),
        ("0 2 1 2", "0 2 1 1", 3, "has a neighbour twice"),
        ("0 2 1 2", "0 2 0 2", 3, "or itself as a neighbour"),
        ("0 2 1 2", "0 2 1", 3, "as many neighbours as the degree says"),
        ("0 2 1 2", "0", 3, "expected tag, degree"),
        ("0 2 1 2", "0 1 2", 4, "node 0 does not name node 1 in return"),
        ("0 2 1 2", "0 2 1 2.5", 3, "expected integers"),
        ("0 0\n", "", 14, "the file ends, expected the neighbours of node 3"),
        (TEXT, "", 1, "the file ends, expected the number of graphs"),
        (TEXT, "\0\xff", 1, "expected integers"),
    ],
)
def test_broken_text_is_named_by_line(
    tmp_path: Path, old: str, new: str, line: int, error: str
) -> None:
    path = tmp_path / "graphs.txt"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(FileError, match=rf"graphs\.txt, line {line}: .*{error}"):
        list(_read_text(path))


@settings(max_examples=60)
@given(cut=st.integers(0, len(TEXT) - 2))
def test_truncated_text(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "graphs.txt"
    path.write_text(TEXT[:cut])
    with pytest.raises(FileError, match=r"graphs\.txt, line \d+: "):
        list(_read_text(path))


def test_integer_rows(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("1 2\n\n-3 4 5\n")
    assert list(_integer_rows(tmp_path / "x")) == [(1, [1, 2]), (2, []), (3, [-3, 4, 5])]
    with pytest.raises(FileError, match="x, line 2: expected 2 integers, got 0"):
        list(_integer_rows(tmp_path / "x", 2))


# The same graphs in the TU format: one after the other, counted from 1.
TU = {
    "A": "1, 2\n1, 3\n2, 1\n2, 3\n3, 1\n3, 2\n"
    "4, 5\n4, 6\n5, 4\n5, 6\n6, 4\n6, 5\n"
    "7, 8\n8, 7\n8, 9\n9, 8\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n3\n3\n3\n3\n",
    "graph_labels": "1\n3\n2\n",
}


def save_tu(folder: Path, changed: dict[str, str] | None = None) -> Path:
    for name, text in {**TU, **(changed or {})}.items():
        path = folder / "IMDB-MULTI" / f"IMDB-MULTI_{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_tu_holds_the_same_graphs(tmp_path: Path) -> None:
    dataset = load(tmp_path, save_tu(tmp_path), source="tu")
    assert [data.edge_index.tolist() for data in dataset] == [TRIANGLE, TRIANGLE, PATH]
    assert [data.y.tolist() for data in dataset] == [[0], [2], [1]]
    assert [data.num_nodes for data in dataset] == [3, 3, 4]


def test_tu_with_a_last_graph_without_edges(tmp_path: Path) -> None:
    more = {"graph_indicator": TU["graph_indicator"] + "4\n4\n", "graph_labels": "1\n3\n2\n2\n"}
    *_, last = load(tmp_path, save_tu(tmp_path, more), source="tu")
    assert (last.num_nodes, last.num_edges, last.y.tolist()) == (2, 0, [1])


@pytest.mark.parametrize(
    ("name", "old", "new", "error"),
    [
        ("A", "1, 2\n", "1, 11\n", "graph 1 has an edge to a node that it does not have"),
        ("A", "1, 2\n", "11, 1\n", "IndexError"),
        ("A", "1, 2\n", "1, 0\n", "graph 1 has an edge in one direction only"),
        ("A", "1, 2\n", "1, 5\n", "graph 1 has an edge to a node that it does not have"),
        ("A", "1, 2\n", "", "graph 1 has an edge in one direction only"),
        ("A", "1, 2\n", "1, 2, 3\n", "ValueError"),
        ("A", "1, 2\n", "1; 2\n", "ValueError: invalid literal"),
        ("graph_indicator", "1\n2\n", "1\n3\n", "graph 2 has an edge to a node"),
        ("graph_indicator", "1\n1\n1\n", "0\n1\n1\n", "RuntimeError"),
        ("graph_indicator", "3\n3\n3\n3\n", "", "IndexError"),
        ("graph_labels", "1\n3\n2\n", "1\n3\n2\n2\n", "3 graphs and 4 labels"),
        ("graph_labels", "1\n3\n2\n", "1\n3\n", "3 graphs and 2 labels"),
        ("graph_labels", "1\n3\n2\n", "1\n3\n3\n", "2 classes, expected 3"),
        ("graph_labels", "1\n3\n2\n", "", "3 graphs and 0 labels|IndexError|RuntimeError"),
    ],
)
def test_broken_tu(tmp_path: Path, name: str, old: str, new: str, error: str) -> None:
    assert old in TU[name]
    folder = save_tu(tmp_path, {name: TU[name].replace(old, new, 1)})
    with pytest.raises(FileError, match=rf"IMDB-MULTI is not a whole TU folder .*({error})"):
        load(tmp_path, folder, source="tu")
    assert list((tmp_path / "root").rglob("*.pt")) == []
