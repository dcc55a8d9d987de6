"""Inputs that would fill the memory, block or end in a traceback give one line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules
from torch_geometric.data import Data

from fognn.data import read_graphs
from fognn.data.smiles_csv import read_smiles_csv
from fognn.data.sources import cache_dir
from fognn.data.statistics import count_graphs
from fognn.experiments import protocol
from fognn.training import fit, load
from fognn.training.config import DataConfig
from fognn.training.own_data import own_task
from fognn.utils.errors import FileError


def saved(path: Path, change: Callable[[list[Data]], Any], classes: int = 2) -> Path:
    graphs = molecules(20, classes=classes)
    change(graphs)
    torch.save(graphs, path)
    return path


@pytest.mark.parametrize("value", [10**6, 5 * 10**6, 2**40, 2**62, 2**63 - 1])
@pytest.mark.parametrize("name", ["x", "edge_attr", "y"])
def test_a_huge_class_or_token(tmp_path: Path, name: str, value: int) -> None:
    def change(graphs: list[Data]) -> None:
        graphs[7][name][0] = value

    path = saved(tmp_path / "mine.pt", change)
    words = rf"mine\.pt, graph 7: {name} of integers must be below .*, got {value}"
    with pytest.raises(ValueError, match=words):
        own_task(DataConfig(str(path)))
    if name == "y":
        with pytest.raises(ValueError, match=f"y of integers must be below .*, got {value}"):
            count_graphs(read_graphs(path))


@pytest.mark.parametrize("name", ["x", "edge_attr"])
def test_a_negative_token(tmp_path: Path, name: str) -> None:
    def change(graphs: list[Data]) -> None:
        graphs[7][name][0] = -(2**63)

    path = saved(tmp_path / "mine.pt", change)
    words = rf"mine\.pt, graph 7: {name} of integers must not be negative, got -9223372036854775808"
    with pytest.raises(ValueError, match=f"{words}: number the tokens from 0, or give floating"):
        own_task(DataConfig(str(path)))

    def from_zero(graphs: list[Data]) -> None:
        graphs[7][name][0] = 0

    assert own_task(DataConfig(str(saved(tmp_path / "from_zero.pt", from_zero))))

    def floating(graphs: list[Data]) -> None:
        change(graphs)
        for graph in graphs:
            graph[name] = graph[name].float()

    assert own_task(DataConfig(str(saved(tmp_path / "floating.pt", floating))))


def test_gaps_between_tokens_are_allowed(tmp_path: Path) -> None:
    def change(graphs: list[Data]) -> None:
        graphs[3].x[0] = 20_000

    task = own_task(DataConfig(str(saved(tmp_path / "mine.pt", change))))
    assert task.node_tokens == 20_001


@pytest.mark.parametrize("classes", [True, False])
def test_labels_of_edges_where_there_are_none(tmp_path: Path, classes: bool) -> None:
    def change(graphs: list[Data]) -> None:
        for graph in graphs:
            graph.y = graph.edge_attr - 1 if classes else graph.edge_attr.float()
        for graph in graphs[::4]:
            graph.edge_index, graph.edge_attr = graph.edge_index[:, :0], graph.edge_attr[:0]
            graph.y = graph.y[:0]

    path = saved(tmp_path / "mine.pt", change)
    task = own_task(DataConfig(str(path)))
    assert (task.level, task.out_channels) == ("edge", 3 if classes else 1)
    values = {"epochs": 1, "model.channels": 8, "machine.threads": 1}
    fit(protocol(str(path), "gcn", 0, values), tmp_path / "run", quiet=True)


@pytest.mark.parametrize("ending", [".pt", ".npz", ".csv"])
@pytest.mark.parametrize("kind", ["pipe", "device", "loop"])
def test_not_a_regular_file(tmp_path: Path, kind: str, ending: str) -> None:
    path = tmp_path / f"mine{ending}"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)
    with pytest.raises((FileError, ValueError), match=rf"mine\{ending}"):
        own_task(DataConfig(str(path), target="y"))
    if ending != ".csv":
        # A file of a folder, too.
        with pytest.raises(FileError, match=rf"mine\{ending} (must be a regular|cannot be read)"):
            read_graphs(tmp_path)


def test_a_pipe_as_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("")
    os.mkfifo(tmp_path / "best.ckpt")
    with pytest.raises(FileError, match=r"best\.ckpt is damaged"):
        load(tmp_path)


TENSORS = {
    "meta": lambda: torch.empty(10, 3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(10, 3), 0.1, 0, torch.qint8),
    "expanded": lambda: torch.ones(1, 1).expand(10**7 + 1, 1),
    "huge": lambda: torch.ones(1, 1).expand(2**40, 3),
}


@pytest.mark.parametrize("kind", list(TENSORS))
@pytest.mark.parametrize("name", ["x", "edge_index", "edge_attr", "y"])
@pytest.mark.filterwarnings("ignore")
def test_special_tensors(tmp_path: Path, kind: str, name: str) -> None:
    graphs = molecules(3)
    graphs[1][name] = TENSORS[kind]()
    torch.save(graphs, tmp_path / "mine.pt")
    with pytest.raises((ValueError, FileError), match=r"mine\.pt") as caught:
        read_graphs(tmp_path / "mine.pt")
    assert len(str(caught.value).splitlines()) == 1


def test_a_small_expanded_tensor_is_read(tmp_path: Path) -> None:
    graphs = molecules(3)
    for graph in graphs:
        graph.x = torch.ones(1, 1).expand(graph.x.size(0), 4)
    torch.save(graphs, tmp_path / "mine.pt")
    assert read_graphs(tmp_path / "mine.pt")[0].x.shape[1] == 4


def test_counts_that_overflow(tmp_path: Path) -> None:
    content = {
        "n": torch.tensor([2**62] * 4),
        "e": torch.tensor([0] * 4),
        "x": torch.zeros(0),
        "edge_index": torch.zeros(2, 0, dtype=torch.long),
    }
    torch.save(content, tmp_path / "mine.pt")
    with pytest.raises(ValueError, match=rf"x must have {2**64} rows"):
        read_graphs(tmp_path / "mine.pt")


def test_no_such_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for use in (
        lambda: read_graphs("~nosuchuser/mine.pt"),
        lambda: load("~nosuchuser/run"),
        lambda: own_task(DataConfig("~nosuchuser/mine.pt")),
        lambda: fit(protocol("zinc", "gcn"), "~nosuchuser/run"),
    ):
        with pytest.raises(FileError, match=r"~nosuchuser/.* home directory that is not known"):
            use()
    monkeypatch.delenv("FOGNN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without HOME and a user
    with pytest.raises(FileError, match=r"home directory that is not known.*FOGNN_CACHE"):
        cache_dir()


def test_a_long_smiles_string(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"smiles\nCC\n{'C' * 130_000}\nCO\n")
    words = r"line 3: smiles must have at most 10,000 characters, got 130,000"
    with pytest.raises(ValueError, match=words) as caught:
        read_smiles_csv(path)
    assert len(str(caught.value)) < 300 + len(str(path))
    with pytest.warns(UserWarning, match="1 of 3 lines were skipped"):
        assert len(read_smiles_csv(path, skip_bad=True)[0]) == 2


def test_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("smiles\n" + "CC\n" * 5)
    read_smiles_csv(path)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("fognn.data.smiles_csv._PAUSE", -1.0)
    read_smiles_csv(path)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", f"{path}: read to line 6")
