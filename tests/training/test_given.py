from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, molecules
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_mean_pool
from torch_geometric.nn.models import GCN

import fognn
from fognn.training import evaluate
from fognn.training.given import give_data

SMALL: dict[str, Any] = {"epochs": 2, "batch_size": 8, "threads": 1, "quiet": True}


class Net(torch.nn.Module):
    def __init__(self, out: int = 1) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(28, 8)
        self.conv = GCNConv(8, 8)
        self.lin = torch.nn.Linear(8, out)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> Any:
        h = self.conv(self.embedding(x), edge_index).relu()
        return self.lin(global_mean_pool(h, batch))


class OnData(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, data: Data) -> torch.Tensor:
        return self.net(data.x, data.edge_index, data.batch).squeeze(1)


class Tokens(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn = GCN(7, 16, 2, 6)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.gnn(torch.nn.functional.one_hot(x, 7).float(), edge_index)


def one_graph(classes: int = 3) -> Data:
    torch.manual_seed(0)
    y = torch.arange(60) % classes
    mask = torch.arange(60) % 5
    return Data(
        x=torch.nn.functional.one_hot(y).float() + torch.randn(60, classes),
        edge_index=torch.stack([torch.arange(60), (torch.arange(60) + classes) % 60]),
        y=y,
        train_mask=mask < 3,
        val_mask=mask == 3,
        test_mask=mask == 4,
    )


@pytest.mark.parametrize("make", [Net, OnData])
def test_a_list_of_graphs_and_a_module(tmp_path: Path, make: type) -> None:
    graphs, net = molecules(40), make()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    result = fognn.train(graphs, net, folder=tmp_path / "a", **SMALL)
    assert result.data.startswith("python:list-40-")
    assert result.metric == "mae"
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), "a copy is trained"
    assert fognn.train(graphs, net, folder=tmp_path / "a", **SMALL) == result, "read, not trained"
    trained = fognn.load(tmp_path / "a", module=make())
    assert any(not torch.equal(value, before[n]) for n, value in trained.state_dict().items())
    assert evaluate(tmp_path / "a")["mae_items"] == pytest.approx(result.metrics["test/mae"])


def test_a_longer_run_is_the_same_as_one_without_a_stop(tmp_path: Path) -> None:
    graphs, net = molecules(40), Net()
    fognn.train(graphs, net, folder=tmp_path / "whole", **SMALL)
    again = fognn.train(graphs, net, folder=tmp_path / "again", **SMALL)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "again")
    assert "in Python, with the same objects" in again.command


def test_one_graph_with_masks_and_a_basic_gnn(tmp_path: Path) -> None:
    net = GCN(3, 16, 2, 3)
    result = fognn.train(one_graph(), net, folder=tmp_path / "a", **SMALL | {"epochs": 20}, lr=0.05)
    assert result.metric == "accuracy"
    assert result.metrics["test/accuracy"] > 60


def test_names_for_either(tmp_path: Path) -> None:
    result = fognn.train(
        molecules(40), "gcn+fog", folder=tmp_path / "a", **SMALL, **{"model.channels": 8}
    )
    assert result.model == "gcn+fog"
    result = fognn.train("cluster", Tokens(), folder=tmp_path / "b", fraction=0.001, **SMALL)
    assert result.data == "CLUSTER"


def test_given_splits(tmp_path: Path) -> None:
    graphs = molecules(30)
    parts = {"train": graphs[:20], "val": graphs[20:24], "test": graphs[24:]}
    result = fognn.train(parts, Net(), folder=tmp_path / "a", **SMALL)
    assert result.folder == tmp_path / "a"
    assert "split: 20 train, 4 val, 6 test" in (tmp_path / "a" / "log.txt").read_text()


def test_other_data_have_another_name() -> None:
    graphs = molecules(12)
    assert give_data(graphs) == give_data(molecules(12))
    graphs[3].x[0] += 1
    assert give_data(graphs) != give_data(molecules(12))


class Needy(torch.nn.Module):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, weather: Any) -> None: ...


@pytest.mark.parametrize(
    ("data", "model", "settings", "message"),
    [
        (3, "gcn", {}, "data must be a PyG dataset, a list of Data or one Data, got int"),
        ([], "gcn", {}, "data must be a PyG dataset"),
        ({"train": []}, "gcn", {}, "data must have the keys train, val, test, got train"),
        (molecules(12), Needy(), {}, "Needy.forward needs 'weather'"),
        (molecules(12), Net(3), {}, r"row for each graph and 1 columns, \[8, 1\], got \[8, 3\]"),
        (molecules(12), Net(), {"ranks": 2}, "machine.ranks must be 1 for data or a network"),
        (molecules(12), Net(), {"model.channels": 8}, "channels"),
    ],
)
def test_wrong_objects(
    tmp_path: Path, data: Any, model: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fognn.train(data, model, folder=tmp_path / "a", **SMALL, **settings)


def test_loading_without_the_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fognn.train(molecules(40), Net(), folder=tmp_path / "a", **SMALL)
    monkeypatch.setattr("fognn.training.given._GRAPHS", {})
    monkeypatch.setattr("fognn.training.given._MODULES", {})
    with pytest.raises(ValueError, match=r"fognn\.load\(run, module=network\)"):
        fognn.load(tmp_path / "a")
    with pytest.raises(ValueError, match=r"module must be the network that .* got another one"):
        fognn.load(tmp_path / "a", module=Net(2))
    with pytest.raises(ValueError, match="were given as a Python object"):
        fognn.train(config=tmp_path / "a" / "config.yaml", folder=tmp_path / "b", quiet=True)
