import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from fognn.data import PATTERN
from fognn.data.generators import generate_pattern
from fognn.data.split_dataset import (
    flatten,
    read_npz,
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
    with pytest.raises(FileError, match="could not be written"):
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


def test_pre_transform_with_other_settings_is_no_old_file(tmp_path):
    # Both have the same repr, so PyG alone would read the first file twice.
    for steps in (2, 3, 2):
        walk = T.AddRandomWalkPE(walk_length=steps, attr_name="pe")
        data = PATTERN(tmp_path, num_graphs=3, pre_transform=walk)
        assert data[0].pe.shape == (data[0].num_nodes, steps)
        assert data[0].x.dtype == torch.int64
    assert len(stored(tmp_path)) == 2
    assert "pe" not in PATTERN(tmp_path, num_graphs=3)[0]


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
        edge_attr = 10 * edge_index[0] + edge_index[1]
        return Data(x=torch.arange(n), edge_index=edge_index, edge_attr=edge_attr)

    flat, slices = flatten(tensors(n, edges) for n, edges in graphs)
    for at, (n, edges) in enumerate(graphs):
        cut = slice(*slices["edge_index"][at : at + 2].tolist())
        expected = sorted(edges, key=lambda edge: edge[::-1])
        assert [tuple(edge) for edge in flat["edge_index"][:, cut].t().tolist()] == expected
        assert flat["edge_attr"][cut].tolist() == [10 * s + t for s, t in expected]
        assert int(slices["x"][at + 1] - slices["x"][at]) == n


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_read_npz_of_a_truncated_file(tmp_path, keep):
    path = tmp_path / "a.npz"
    np.savez(path, n=np.arange(1000))
    assert read_npz(path, "n")[0].tolist() == list(range(1000))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(FileError, match=r"a\.npz is truncated or corrupt"):
        read_npz(path, "n")
