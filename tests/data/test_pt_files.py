import os
import pickle

import numpy as np
import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.edge_index import SortOrder

from fognn.data.graph_files import read_graphs
from fognn.utils.errors import FileError


class OwnData(Data):
    pass


class Touch:
    """A file with it in runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def graph(nodes: int, edges: int) -> Data:
    generator = torch.Generator().manual_seed(nodes)
    return Data(
        x=torch.rand(nodes, 3, generator=generator),
        edge_index=torch.randint(nodes, (2, edges), generator=generator),
        y=torch.rand(1, generator=generator),
    )


GRAPHS = [graph(3, 4), graph(5, 6), graph(1, 0)]


def same(found, expected) -> bool:
    return len(found) == len(expected) and all(
        type(a) is Data
        and sorted(a.keys()) == sorted(b.keys())
        and all(torch.equal(a[key], b[key]) for key in b.keys())  # noqa: SIM118
        for a, b in zip(found, expected, strict=True)
    )


def collated_and(third):
    data, slices = InMemoryDataset.collate(GRAPHS)
    return (data.to_dict(), slices, third)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        GRAPHS,
        tuple(GRAPHS),
        tuple(GRAPHS[:2]),
        Batch.from_data_list(GRAPHS),
        InMemoryDataset.collate(GRAPHS),
        collated_and(Data),
    ],
    ids=["list", "tuple", "pair", "batch", "collated", "collated dict"],
)
def test_what_people_save(tmp_path, content, zipped):
    torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    count = 2 if isinstance(content, tuple) and content[1] is GRAPHS[1] and len(content) == 2 else 3
    assert same(read_graphs(tmp_path / "a.pt"), GRAPHS[:count])


def test_one_graph(tmp_path):
    torch.save(GRAPHS[0], tmp_path / "a.pt")
    assert same(read_graphs(tmp_path / "a.pt"), GRAPHS[:1])
    torch.save(InMemoryDataset.collate(GRAPHS[:1]), tmp_path / "a.pt")
    assert same(read_graphs(tmp_path / "a.pt"), GRAPHS[:1])


def test_what_pyg_itself_saves(tmp_path):
    InMemoryDataset.save(GRAPHS, str(tmp_path / "a.pt"))
    assert same(read_graphs(tmp_path / "a.pt"), GRAPHS)


def test_sorted_edges(tmp_path):
    item = GRAPHS[0].clone()
    item.edge_index = EdgeIndex(item.edge_index, sparse_size=(3, 3)).sort_by("col").values
    item.edge_index.fill_cache_()
    torch.save([item], tmp_path / "a.pt")
    if b"getattr" in pickle.dumps(SortOrder.COL):
        # So early versions of Python 3.11 write an enum. A file that names getattr can run code.
        with pytest.raises(FileError, match="it names getattr"):
            read_graphs(tmp_path / "a.pt")
        return
    (found,) = read_graphs(tmp_path / "a.pt")
    assert torch.equal(found.edge_index, item.edge_index.as_tensor())


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ([OwnData(x=torch.ones(1))], r"test_pt_files\.OwnData"),
        (HeteroData(), r"torch_geometric\.data\.hetero_data\.HeteroData"),
        ([np.ones(3)], r"numpy\._?core\.multiarray\._reconstruct"),
        (torch.nn.Linear(1, 1), r"torch\.nn\.modules\.linear\.Linear"),
        (collated_and(OwnData), r"test_pt_files\.OwnData"),
    ],
)
def test_a_file_with_other_names_is_not_read(tmp_path, content, name):
    torch.save(content, tmp_path / "a.pt")
    message = rf"a\.pt is not read, it names \S*{name}, .*: save a list of Data .*write_graphs"
    with pytest.raises(FileError, match=message):
        read_graphs(tmp_path / "a.pt")


def test_a_file_runs_nothing(tmp_path):
    path, made = tmp_path / "a.pt", tmp_path / "made"
    torch.save([Touch(made)], path)
    with pytest.raises(FileError, match=r"is not read, it names posix\.mkdir"):
        read_graphs(path)
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists()  # so the file does what the test is about


def test_a_batch_without_slices(tmp_path):
    torch.save(Batch(x=torch.ones(2, 1), batch=torch.tensor([0, 1])), tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt holds a Batch that does not know where"):
        read_graphs(tmp_path / "a.pt")


@pytest.mark.parametrize("content", ["text", 3, None, torch.ones(3)])
def test_no_graphs(tmp_path, content):
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=rf"a\.pt holds a {type(content).__name__}: save a list"):
        read_graphs(tmp_path / "a.pt")


@pytest.mark.parametrize("keep", [0, 1, 10, 0.5, 0.99])
def test_a_truncated_file(tmp_path, keep):
    torch.save(GRAPHS, tmp_path / "a.pt")
    whole = (tmp_path / "a.pt").read_bytes()
    cut = whole[: int(keep * len(whole)) if isinstance(keep, float) else keep]
    (tmp_path / "a.pt").write_bytes(cut)
    with pytest.raises(FileError, match=r"a\.pt is not a whole \.pt file of graphs"):
        read_graphs(tmp_path / "a.pt")


@pytest.mark.parametrize("content", [b"hello world " * 30, pickle.dumps([1]), b"\0" * 100])
def test_other_files(tmp_path, content):
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(FileError, match=r"a\.pt is not a whole \.pt file of graphs"):
        read_graphs(tmp_path / "a.pt")


def test_graphs_that_pyg_cannot_take_apart(tmp_path):
    data, slices = InMemoryDataset.collate(GRAPHS)
    torch.save((data, {**slices, "edge_index": torch.tensor([0])}), tmp_path / "a.pt")
    with pytest.raises(FileError, match=r"a\.pt is not a whole \.pt file of graphs"):
        read_graphs(tmp_path / "a.pt")


def test_a_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "graphs.pt"
    torch.save(GRAPHS, path)
    content = path.read_bytes()
    place = content.index(GRAPHS[1].x.numpy().tobytes())
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(FileError, match=r"graphs\.pt is not a whole \.pt file.*checksum"):
        read_graphs(path)


@pytest.mark.parametrize("nodes", [2**31, 2**40, 2**62])
def test_nodes_that_are_numbered_with_large_gaps(tmp_path, nodes):
    path = tmp_path / "graphs.pt"
    torch.save([Data(edge_index=torch.tensor([[0], [nodes]]))], path)
    with pytest.raises(ValueError, match=rf"graph 0: num_nodes.* at most 10,000,000.*{nodes + 1}"):
        read_graphs(path)
    torch.save([Data(edge_index=torch.tensor([[0], [1]]), num_nodes=nodes)], path)
    with pytest.raises(ValueError, match=rf"graph 0: num_nodes.* at most 10,000,000.*{nodes}"):
        read_graphs(path)
