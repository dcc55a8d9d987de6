from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch_geometric.transforms as T

from fognn.datasets.sbm import CLUSTER, PATTERN
from fognn.datasets.sbm_generator import generate_cluster, generate_pattern
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
    with pytest.raises(FileError, match="disk is full"):
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
    with pytest.raises(FileError, match=r"is damaged .* remove it"):
        PATTERN(tmp_path, num_graphs=2)
    path.unlink()
    assert len(PATTERN(tmp_path, num_graphs=2)) == 2


def test_root_defaults_to_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path))
    CLUSTER(num_graphs=2)
    assert len(stored(tmp_path / "cluster")) == 1


def test_root_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="could not be written"):
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
