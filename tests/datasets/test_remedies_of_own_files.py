"""Whatever a message about a user's own graphs, molecules or archives tells to do works."""

import os
import pickle
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyg_roots
import pytest
import torch
from chaos.samples import heterophilous, molecules_csv, node_graph, one_graph
from tiny_runs import molecules
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset, TUDataset

from fognn.datasets import FileError, open_pyg, read_graphs, write_graphs
from fognn.datasets.array_pickle import load_arrays
from fognn.datasets.own_data import read_own_data
from fognn.datasets.single_graph import read_single_graph
from fognn.training.config import DataConfig
from fognn.training.own_data import own_task
from fognn.utils import files
from fognn.utils.files import unzip

# Files of graphs


def save_a_list(path: Path) -> Path:
    torch.save(molecules(12), path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def write(path: Path) -> Path:
    write_graphs(path.with_suffix(".npz"), molecules(12))
    return path.with_suffix(".npz")


def savez(path: Path) -> Path:
    with np.load(write(path.with_name("other"))) as arrays:
        np.savez(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


WANTED = (
    r"save a list of Data \(of a dataset, list\(dataset\)\) with torch\.save, or write the graphs "
    r"with fognn\.datasets\.write_graphs"
)
NPZ = r"write it again, with numpy\.savez or fognn\.datasets\.write_graphs"


@pytest.mark.parametrize("remedy", [save_a_list, write, savez])
@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        (
            "a.pt",
            lambda path: path.write_bytes(b"nonsense"),
            rf"not a whole \.pt file .*: {WANTED}",
        ),
        ("a.pt", lambda path: torch.save(3, path), rf"a\.pt holds .*: {WANTED}"),
        ("a.pt", lambda path: torch.save(os.mkdir, path), rf"names posix\.mkdir, .*: {WANTED}"),
        ("a.npz", lambda path: path.write_bytes(b"PK"), rf"not a whole \.npz file .*: {NPZ}"),
    ],
)
def test_write_the_graphs_again(
    tmp_path: Path,
    name: str,
    spoil: Callable[[Path], Any],
    words: str,
    remedy: Callable[[Path], Path],
) -> None:
    spoil(tmp_path / name)
    with pytest.raises((FileError, ValueError), match=words) as caught:
        read_own_data(tmp_path / name)
    assert "weights_only" not in str(caught.value), "torch's advice runs the file's code"
    assert len(read_graphs(remedy(tmp_path / name))) == 12


def test_write_one_graph_again(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(b"PK")
    with pytest.raises(
        FileError, match=r"graph\.npz is not a whole .*: write it again, with numpy"
    ):
        read_single_graph(path)
    one_graph(path)  # numpy.savez
    assert read_single_graph(path).num_nodes == 40


def test_name_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = write(tmp_path / "folder" / "a")
    with pytest.raises(FileError, match=r"is not there: name a \.pt or \.npz file, or a folder of"):
        read_graphs(tmp_path / "no.pt")
    assert [len(read_graphs(p)) for p in (save_a_list(tmp_path / "a"), path, path.parent)] == [
        12
    ] * 3
    with pytest.raises(FileError, match=r"name a \.pt or \.npz file of one graph with masks"):
        read_single_graph(tmp_path / "no.npz")
    one_graph(tmp_path / "graph.npz")
    read_single_graph(tmp_path / "graph.npz")
    with pytest.raises(FileError, match="is not there: name an existing file"):
        load_arrays(tmp_path / "no.pkl")
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"a": np.ones(1)}, 2))
    assert list(load_arrays(tmp_path / "a.pkl")) == ["a"]


# Graphs


@pytest.mark.parametrize("name", ["x", "edge_attr", "y"])
def test_number_the_classes_or_tokens_from_0(tmp_path: Path, name: str) -> None:
    graphs = molecules(12, classes=2)
    graphs[0][name][0] = 2**40
    torch.save(graphs, tmp_path / "a.pt")
    data = DataConfig(name=str(tmp_path / "a.pt"))
    words = rf"{name} of integers must be below .*: number the classes or tokens from 0, without"
    with pytest.raises(ValueError, match=words):
        own_task(data)
    known = torch.cat([graph[name] for graph in graphs]).unique()
    for graph in graphs:
        graph[name] = torch.searchsorted(known, graph[name])
    torch.save(graphs, tmp_path / "a.pt")
    own_task(data)


def test_number_the_nodes_from_0(tmp_path: Path) -> None:
    edges = torch.tensor([[5, 2**40], [2**40, 5]])
    torch.save([Data(edge_index=edges, y=torch.ones(1))] * 12, tmp_path / "a.pt")
    with pytest.raises(ValueError, match="number the nodes from 0, without large gaps"):
        read_own_data(tmp_path / "a.pt")
    edges = edges.unique(return_inverse=True)[1]
    torch.save([Data(edge_index=edges, y=torch.ones(1))] * 12, tmp_path / "a.pt")
    read_own_data(tmp_path / "a.pt")


def test_give_edge_index_instead_of_edges(tmp_path: Path) -> None:
    heterophilous(tmp_path)
    with np.load(tmp_path / "graph.npz") as file:
        arrays = dict(file) | {"edge_attr": np.ones((100, 2), np.float32)}
    np.savez(tmp_path / "graph.npz", **arrays)
    with pytest.raises(ValueError, match=r"edge_attr beside edges.*: give edge_index of shape"):
        read_single_graph(tmp_path / "graph.npz")
    np.savez(tmp_path / "graph.npz", **node_graph(), edge_attr=arrays["edge_attr"])
    assert read_single_graph(tmp_path / "graph.npz").edge_attr.shape == (100, 2)


def test_task_classification(tmp_path: Path) -> None:
    molecules_csv(tmp_path)
    with pytest.raises(ValueError, match="got 'a'; --task classification takes each text as a"):
        read_own_data(tmp_path / "molecules.csv", target_column="kind")
    # The option of that name is this argument.
    read_own_data(tmp_path / "molecules.csv", target_column="kind", task="classification")


@pytest.mark.parametrize(
    ("name", "words"),
    [("pyg:FakeDataset", "which PyG generates"), ("pyg:StochasticBlockModelDataset", "needs .*")],
)
def test_save_the_list_of_a_dataset(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(
        ValueError, match=rf"{words}: save list\(dataset\) with torch\.save and name"
    ):
        open_pyg(name)
    pyg_roots.tu_dataset(tmp_path)
    generated = FakeDataset(12, avg_num_nodes=8)
    for dataset in (generated, TUDataset(str(tmp_path / "pyg" / "TUDataset"), "TINY")):
        torch.save(list(dataset), tmp_path / "a.pt")
        assert len(read_graphs(tmp_path / "a.pt")) == len(dataset)
        read_own_data(tmp_path / "a.pt")


# Archives


def outside(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("../x", "1")


def link(path: Path) -> None:
    member = zipfile.ZipInfo("x")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(member, "/")


def encrypted(path: Path) -> None:
    official(path)
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x", "0" * 10**6)


def official(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("d/x", "1")


OFFICIAL = "; download the archive from its official address"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (outside, f"outside the folder{OFFICIAL}"),
        (link, f"is a link{OFFICIAL}"),
        (encrypted, f"is encrypted{OFFICIAL}"),
        (bomb, f"its own size{OFFICIAL}"),
        (lambda path: path.write_bytes(b"PK"), "is damaged .*: remove it and download it again"),
        (lambda path: None, "does not exist: name an existing zip file"),
    ],
)
def test_download_the_archive_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None], words: str
) -> None:
    monkeypatch.setattr(files, "_BOMB_FLOOR", 10**5)
    path = tmp_path / "a.zip"
    spoil(path)
    with pytest.raises(FileError, match=words):
        unzip(path, tmp_path / "out")
    path.unlink(missing_ok=True)
    official(path)
    unzip(path, tmp_path / "out")
    assert (tmp_path / "out" / "d" / "x").read_text() == "1"


def test_remove_the_link(tmp_path: Path) -> None:
    for name in ("out", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "d").symlink_to(tmp_path / "elsewhere")
    official(tmp_path / "a.zip")
    with pytest.raises(FileError, match=r"out/d is a link out of it; remove the link"):
        unzip(tmp_path / "a.zip", tmp_path / "out")
    (tmp_path / "out" / "d").unlink()
    unzip(tmp_path / "a.zip", tmp_path / "out")
    assert (tmp_path / "out" / "d" / "x").exists()
