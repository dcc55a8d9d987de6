from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imdb_example import TEXT

from fognn.datasets.imdb_files import integer_rows, read_text, read_tu
from fognn.utils.errors import FileError

# The same graphs in the TU format: one after the other, counted from 1.
TU = {
    "A": "1, 2\n1, 3\n2, 1\n2, 3\n3, 1\n3, 2\n"
    "4, 5\n4, 6\n5, 4\n5, 6\n6, 4\n6, 5\n"
    "7, 8\n8, 7\n8, 9\n9, 8\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n3\n3\n3\n3\n",
    "graph_labels": "1\n3\n2\n",
}


def write_tu(folder: Path, changed: dict[str, str] | None = None) -> list[Path]:
    paths = []
    for name, text in {**TU, **(changed or {})}.items():
        paths.append(folder / f"IMDB-MULTI_{name}.txt")
        paths[-1].write_text(text)
    return paths


def test_both_formats_hold_the_same_graphs(tmp_path: Path) -> None:
    (tmp_path / "graphs.txt").write_text(TEXT)
    edges = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (6, 7), (7, 8)]
    for sizes, src, dst, y in (read_text(tmp_path / "graphs.txt"), read_tu(write_tu(tmp_path))):
        assert sizes.tolist() == [3, 3, 4]
        assert y.tolist() == [0, 2, 1]
        assert {a.dtype for a in (src, dst)} == {np.dtype(np.int64)}
        got = sorted(zip(src.tolist(), dst.tolist(), strict=True))
        assert got == sorted(edges + [(b, a) for a, b in edges])


def test_integer_rows(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("1, 2\n\n-3 4,5\n")
    assert list(integer_rows(tmp_path / "x")) == [(1, [1, 2]), (2, []), (3, [-3, 4, 5])]
    with pytest.raises(FileError, match="x, line 2: expected 2 integers, got 0"):
        list(integer_rows(tmp_path / "x", 2))


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
        read_text(path)


@settings(max_examples=60)
@given(cut=st.integers(0, len(TEXT) - 2))
def test_truncated_text(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "graphs.txt"
    path.write_text(TEXT[:cut])
    with pytest.raises(FileError, match=r"graphs\.txt, line \d+: "):
        read_text(path)


@pytest.mark.parametrize(
    ("name", "old", "new", "error"),
    [
        ("A", "1, 2\n", "1, 11\n", r"A\.txt, line \d+: .* goes to a node that is not in 1\.\.10"),
        ("A", "1, 2\n", "1, 0\n", "goes to a node that is not in"),
        ("A", "1, 2\n", "1, 5\n", r"the edge 1, 5 joins two graphs"),
        ("A", "1, 2\n", "", r"has the edge 2, 1 in one direction only"),
        ("A", "1, 2\n", "1, 2, 3\n", r"expected 2 integers, got 3"),
        ("A", "1, 2\n", "1; 2\n", r"expected integers, got '1; 2'"),
        ("graph_indicator", "1\n2\n", "1\n3\n", r"line 4: graph 3 is out of order"),
        ("graph_indicator", "1\n1\n1\n", "0\n1\n1\n", r"line 1: graph 0 is out of order"),
        ("graph_indicator", "3\n3\n3\n3\n", "", r"numbers 2 graphs and .* labels 3"),
        ("graph_labels", "3\n", "4\n", r"line 2: expected a label from 1 to 3, got 4"),
        ("graph_labels", "1\n3\n2\n", "", r"numbers 3 graphs and .* labels 0"),
    ],
)
def test_broken_tu(tmp_path: Path, name: str, old: str, new: str, error: str) -> None:
    paths = write_tu(tmp_path, {name: TU[name].replace(old, new, 1)})
    assert old in TU[name]
    with pytest.raises(FileError, match=error):
        read_tu(paths)
