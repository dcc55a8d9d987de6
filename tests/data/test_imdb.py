from pathlib import Path

import pytest
import torch
from imdb_example import TEXT

from fognn.data import IMDBMulti
from fognn.utils.errors import FileError

TRIANGLE = [[1, 2, 0, 2, 0, 1], [0, 0, 1, 1, 2, 2]]
PATH = [[1, 0, 2, 1], [0, 1, 1, 2]]


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
        assert torch.equal(data.x, torch.ones(data.num_nodes, 1))
        assert data.is_undirected()
        assert not data.has_self_loops()
        key = data.edge_index[1] * data.num_nodes + data.edge_index[0]
        assert bool((key.diff() > 0).all())  # by target, then source, and no edge twice


def test_folds_of_the_files(real: IMDBMulti) -> None:
    folds = real.folds()
    assert [(len(train), len(test)) for train, test in folds] == [(1350, 150)] * 10
    assert torch.cat([test for _, test in folds]).sort().values.tolist() == list(range(1500))
    for train, test in folds:
        assert torch.cat([train, test]).sort().values.tolist() == list(range(1500))
    assert folds[0][0][:3].tolist() == [1294, 690, 730]  # the first lines of train_idx-1.txt


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "data" / "imdb_multi" / "IMDBMULTI.txt"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    return path


def test_text(tmp_path: Path, text: Path) -> None:
    dataset = IMDBMulti(tmp_path, data=tmp_path / "data")
    assert [data.edge_index.tolist() for data in dataset] == [TRIANGLE, TRIANGLE, PATH]
    assert [data.y.tolist() for data in dataset] == [[0], [2], [1]]
    assert [data.num_nodes for data in dataset] == [3, 3, 4]  # the last node has no edge
    text.write_text("1\n2 0\n0 1 1\n0 1 0\n")
    assert len(IMDBMulti(tmp_path, data=tmp_path / "data")) == 1


@pytest.mark.parametrize(
    "content", ["", "x", TEXT[:-20], "1\n2 0\n0 1 7\n0 1 0\n", "1\n2\n0 1 1\n0 1 0\n"]
)
def test_wrong_text(tmp_path: Path, text: Path, content: str) -> None:
    text.write_text(content)
    with pytest.raises(FileError, match=r"IMDBMULTI\.txt is truncated or corrupt"):
        IMDBMulti(tmp_path, data=tmp_path / "data")


def test_wrong_folds(tmp_path: Path, text: Path) -> None:
    (text.parent / "10fold_idx").mkdir()
    for part, numbers in (("train", "0 1"), ("test", "1")):
        (text.parent / "10fold_idx" / f"{part}_idx-1.txt").write_text(numbers)
    with pytest.raises(FileError, match="fold 1 of IMDB-MULTI must name each graph once"):
        IMDBMulti(tmp_path, data=tmp_path / "data").folds()
