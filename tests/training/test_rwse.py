"""Random-walk encodings: those of PyG's transform, in batches, predictions and exports."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules, tiny
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

import fognn
from fognn.data.user_data import random_walks
from fognn.models import Task, create_model
from fognn.training.data import fingerprint, open_split


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
