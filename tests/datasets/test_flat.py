import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.datasets.flat import file_stamp, flatten, read_npz, slices_of
from fognn.utils.errors import FileError


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
