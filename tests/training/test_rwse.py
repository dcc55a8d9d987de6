"""Random-walk encodings: those of PyG's transform, in batches, predictions and exports."""

from typing import Any

import pytest
import torch
from tiny_runs import open_split, tiny
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from fognn.models import Task, create_model
from fognn.training.data import fingerprint


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
