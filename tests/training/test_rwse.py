"""Random-walk encodings: those of PyG's transform, in batches, predictions and exports."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import metrics, molecules, tiny
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

import fognn
from fognn.data.graph_files import write_graphs
from fognn.data.user_data import random_walks
from fognn.experiments import protocol
from fognn.models import PretrainedNet, Task, create_model
from fognn.training import evaluate, export, fit, load, predict
from fognn.training.data import fingerprint, open_split, task_of

SMALL = {"training.epochs": 1, "training.batch_size": 8, "model.channels": 8, "machine.threads": 1}


def literal(graph: Data, steps: int) -> torch.Tensor:
    """The diagonals of the powers of the matrix of transition probabilities."""
    nodes = graph.num_nodes
    adj = torch.zeros(nodes, nodes, dtype=torch.float64)
    degree = torch.zeros(nodes, dtype=torch.float64)
    for source, target in graph.edge_index.t().tolist():
        adj[source, target] = 1
        degree[source] += 1
    adj = adj / degree.clamp(min=1).unsqueeze(1)
    power, columns = torch.eye(nodes, dtype=torch.float64), []
    for _ in range(steps):
        power = power @ adj
        columns.append(power.diagonal())
    return torch.stack(columns, dim=1)


def test_isolated_nodes_and_self_loops() -> None:
    """Node 0 has a self loop, nodes 1 and 2 are a pair, node 3 has no edge."""
    edge_index = torch.tensor([[0, 1, 2, 0], [0, 2, 1, 1]])
    graph = Data(x=torch.zeros(4), edge_index=edge_index)
    found = random_walks(graph, 4)
    expected = torch.tensor(
        [[0.5, 0.25, 0.125, 0.0625], [0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 0, 0]], dtype=torch.float32
    )
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found, literal(graph, 4).float())
    assert torch.equal(found, AddRandomWalkPE(4)(graph.clone()).random_walk_pe)
    empty = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=2)
    assert torch.equal(random_walks(empty, 3), torch.zeros(2, 3))


def test_a_datasets_encodings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(data__rwse=5)
    plain = {split: open_split(tiny(), split) for split in ("train", "val")}
    loaders = {split: open_split(config, split) for split in ("train", "val")}
    for split, loader in loaders.items():
        for batch in loader:
            assert batch.rwse.shape == (batch.num_nodes, 5)
            for graph in batch.to_data_list():
                expected = AddRandomWalkPE(5, "rwse")(Data(edge_index=graph.edge_index, x=graph.x))
                assert torch.equal(graph.rwse, expected.rwse)
                torch.testing.assert_close(graph.rwse, literal(graph, 5).float())
        # The same graphs, whose checksum must not depend on the rounding of the encodings.
        assert fingerprint(loader) == fingerprint(plain[split])
    assert all("rwse" not in batch for batch in plain["train"])

    def computed(*_: Any) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(AddRandomWalkPE, "forward", computed)
    assert len(open_split(config, "train")) == len(loaders["train"])
    with pytest.raises(AssertionError, match="computed again"):
        open_split(tiny(data__rwse=6), "train")


def test_the_network_adds_them() -> None:
    torch.manual_seed(0)
    task = Task("node", 3, node_channels=4, encodings=5)
    net = create_model("gcn+fog", task, channels=16, layers=2).eval()
    x, edge_index, rwse = torch.randn(6, 4), torch.randint(0, 6, (2, 20)), torch.rand(6, 5)
    with torch.no_grad():
        out = net(x, edge_index, rwse=rwse)
        assert not torch.equal(out, net(x, edge_index, rwse=rwse + 1))
        walks = net.walk_encoder.lin(net.walk_encoder.norm(rwse))
        h, net.walk_encoder = net.encoder(x) + walks, None
        net.encoder = torch.nn.Identity()
        torch.testing.assert_close(net(h, edge_index), out)


def test_wrong_encodings() -> None:
    task = Task("node", 3, node_channels=4, encodings=5)
    net = create_model("gcn", task, channels=16, layers=2)
    x, edge_index = torch.randn(6, 4), torch.randint(0, 6, (2, 20))
    with pytest.raises(ValueError, match=r"rwse must be .* 5 steps"):
        net(x, edge_index)
    with pytest.raises(ValueError, match="rwse must have 5 channels, got 4"):
        net(x, edge_index, rwse=torch.rand(6, 4))
    with pytest.raises(ValueError, match="rwse must have a row for each of 6 nodes, got 7"):
        net(x, edge_index, rwse=torch.rand(7, 5))
    with pytest.raises(ValueError, match=r"encodings must be .*got -1"):
        Task("node", 3, node_channels=4, encodings=-1)
    with pytest.raises(ValueError, match=r"data.rwse .*got -1"):
        tiny(data__rwse=-1)


def test_train_evaluate_predict_and_export(tmp_path: Path) -> None:
    graphs = molecules(20)
    write_graphs(tmp_path / "graphs.npz", graphs)
    values = SMALL | {"data.rwse": 6, "model.edge_features": True, "model.ffn": 2}
    config = protocol(str(tmp_path / "graphs.npz"), "gin+fog", 0, values)
    result = fit(config, tmp_path / "run", quiet=True)
    again = fit(config, tmp_path / "again", quiet=True)
    assert metrics(result.folder) == metrics(again.folder)
    scores = evaluate(tmp_path / "run", "test")
    assert scores["mae_items"] == pytest.approx(result.test["best"]["items"], rel=1e-5)

    net = load(tmp_path / "run")
    assert predict(tmp_path / "run", tmp_path / "graphs.npz", tmp_path / "out.csv") == 20
    with open(tmp_path / "out.csv", newline="") as file:
        found = [float(row["prediction"]) for row in csv.DictReader(file)]
    with torch.no_grad():
        expected = [
            float(net(g.x, g.edge_index, g.edge_attr, rwse=random_walks(g, 6))) for g in graphs
        ]
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)

    export(tmp_path / "run", tmp_path / "hub")
    exported = PretrainedNet.from_pretrained(tmp_path / "hub")
    graph = graphs[0]
    walks = random_walks(graph, 6)
    with torch.no_grad():
        out = exported(graph.x, graph.edge_index, graph.edge_attr, rwse=walks)
    assert float(out) == pytest.approx(expected[0], rel=1e-4, abs=1e-5)
    assert "AddRandomWalkPE of 6 steps" in (tmp_path / "hub" / "README.md").read_text()


@pytest.mark.parametrize("neighbors", [None, [3, 2]])
def test_one_graph(tmp_path: Path, neighbors: list[int] | None) -> None:
    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "graph.npz",
        x=random.standard_normal((40, 3)),
        edge_index=random.integers(39, size=(2, 150)),  # node 39 has no edge
        y=np.arange(40) % 2,
    )
    values = SMALL | {"data.rwse": 4, "data.neighbors": neighbors, "model.layers": 2}
    config = protocol(str(tmp_path / "graph.npz"), "gin+fog", 0, values)
    assert task_of(config.data).encodings == 4
    edges = np.load(tmp_path / "graph.npz")["edge_index"]
    whole = random_walks(Data(edge_index=torch.from_numpy(edges), num_nodes=40), 4)
    for batch in open_split(config, "train"):
        nodes = batch.n_id if neighbors else torch.arange(40)
        assert torch.equal(batch.rwse, whole[nodes]), "of the whole graph, not of the sample"
    fit(config, tmp_path / "run", quiet=True)
    assert predict(tmp_path / "run", tmp_path / "graph.npz", tmp_path / "out.csv") == 40


class Own(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(5, 1)

    def forward(self, x: torch.Tensor, rwse: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(int(batch.max()) + 1, 5).index_add(0, batch, rwse)
        return self.lin(total)


def test_a_network_of_your_own(tmp_path: Path) -> None:
    result = fognn.train(
        molecules(20), Own(), folder=tmp_path / "run", rwse=5, epochs=1, batch_size=8, quiet=True
    )
    assert result.epochs == 1


def test_images_have_none(tmp_path: Path) -> None:
    from tiny_images import write_cifar

    write_cifar(tmp_path)
    values = {"data.rwse": 3, "data.folder": str(tmp_path)}
    config = protocol("cifar-fs-5way-1shot", "gnn", 0, values)
    with pytest.raises(ValueError, match=r"data.rwse must be 0 for images, got 3"):
        fit(config, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
