from typing import Any

import pytest
import torch

from fognn import create_model, list_models
from fognn.models import FewShotNet, GraphNet, Task, count_parameters
from fognn.nn import FOG, FOGControl
from fognn.nn.fog_controls import FOG_KINDS

TASK = Task("graph", out_channels=3, node_channels=4, edge_channels=2)


@pytest.mark.parametrize("name", list_models())
def test_every_name_is_a_network(name: str) -> None:
    if name.startswith("fewshot"):
        assert isinstance(create_model(name), FewShotNet)
        with pytest.raises(ValueError, match="task must be None for"):
            create_model(name, "zinc")
    else:
        network = create_model(name, TASK)
        assert isinstance(network, GraphNet)
        assert network.blocks[0].channels == 64
        assert isinstance(create_model(name.upper(), TASK), GraphNet)


def test_near_names_are_suggested() -> None:
    with pytest.raises(ValueError, match=r"unknown model 'gcn\+fgo'; did you mean 'gcn\+fog'"):
        create_model("gcn+fgo", "zinc")
    with pytest.raises(ValueError, match="unknown task 'zink'; did you mean 'zi"):
        create_model("gcn", "zink")
    with pytest.raises(ValueError, match=r"'transformer'.*known: fog, gcn, "):
        create_model("transformer", "zinc")
    with pytest.raises(ValueError, match="task must be a Task or one of pattern, cluster"):
        create_model("gcn")


def test_settings() -> None:
    net = create_model("gat+fog", TASK, channels=40, layers=2, fog_channels=8, h1=3, h2=5, heads=4)
    fog = net.blocks[0].conv.fog
    assert (fog.h1, fog.h2, fog.out_channels) == (3, 5, 8)
    assert [block.conv.conv.heads for block in net.blocks] == [4, 1]
    assert count_parameters(net) == sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("name", ["fog", "gin+fog"])
def test_kinds_of_fog(name: str) -> None:
    def network(**settings: Any) -> GraphNet:
        torch.manual_seed(0)
        return create_model(name, TASK, layers=2, **settings)

    usual, kron = network(), network(fog_kind="kron")
    assert all(
        torch.equal(*pair) for pair in zip(usual.parameters(), kron.parameters(), strict=True)
    )
    assert not any(isinstance(module, FOGControl) for module in kron.modules())
    for kind in FOG_KINDS[1:]:
        found = [m for m in network(fog_kind=kind).modules() if isinstance(m, FOG)]
        assert [(type(fog), fog.kind, fog.act_first) for fog in found] == [
            (FOGControl, kind, False)
        ] * 2


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("gcn+fog", {"fog_channels": 64}, "fog_channels .* got 64"),
        ("fog", {"fog_channels": 32}, "fog_channels must be 64, like channels, for 'fog' alone"),
        ("gcn", {"h1": 3}, "'gcn' has no setting 'h1'; known: norm, channels"),
        ("gcn+fog", {"fog_eps": 0}, "eps .* got 0"),
        ("fog", {"fog_epsilon": 1}, "has no setting 'fog_epsilon'; known: .*fog_act, fog_eps"),
        ("gcn+fog", {"h2": 0}, "FOG: h2 must be a positive int, got 0"),
        ("gcn+fog", {"channels": 0}, "channels must be a positive int, got 0"),
        ("gcn+fog", {"heads": 4}, r"'gcn\+fog' has no setting 'heads'; known: norm"),
        ("gat", {"heads": 7}, "heads must divide its 64 channels, got 7"),
        ("gatv2", {"heads": 7}, "heads must divide its 64 channels, got 7"),
        ("pna", {"degrees": [3, 0]}, r"degrees must be the number .*, got \[3, 0\]"),
        ("gcn+fog", {"fog_kind": "sum"}, "kind .* got 'sum'"),
    ],
)
def test_bad_settings(name: str, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_model(name, TASK, **settings)


@pytest.mark.parametrize("name", ["fog", "gcn", "gin+fog", "gatedgcn-e+fog"])
def test_feed_forward_blocks(name: str) -> None:
    plain = create_model(name, TASK, channels=12, layers=3)
    for none in (None, 0, 0.0):
        same = create_model(name, TASK, channels=12, layers=3, ffn=none)
        assert same.state_dict().keys() == plain.state_dict().keys()
    net = create_model(name, TASK, channels=12, layers=3, ffn=1.5, dropout=0.1)
    assert [block.feed_forward.hidden for block in net.blocks] == [18] * 3
    assert {block.feed_forward.dropout.p for block in net.blocks} == {0.1}
    own = 12 * 18 + 18 + 18 * 12 + 12 + 2 * 12
    assert count_parameters(net) == count_parameters(plain) + 3 * own
    out = net(torch.randn(5, 4), torch.tensor([[0, 1], [1, 2]]), torch.randn(2, 2))
    assert out.shape == (1, 3)
    with pytest.raises(ValueError, match=r"factor .* got -1"):
        create_model(name, TASK, ffn=-1)


@pytest.mark.parametrize("name", ["gcn", "gin"])
def test_readout(name: str) -> None:
    usual = create_model(name, TASK).head.readout
    assert usual == ("sum" if name == "gin" else "mean")
    for readout in ("mean", "sum"):
        assert create_model(name, TASK, readout=readout).head.readout == readout
    with pytest.raises(ValueError, match=r"readout must be .*got 'max'"):
        create_model(name, TASK, readout="max")
    with pytest.raises(ValueError, match="readout must be None for outputs on nodes, got 'sum'"):
        create_model(name, Task("node", 2, node_channels=4), readout="sum")


TAKE_EDGES = ["fog", *(f"{h}{f}" for h in ("gcn", "gat", "gin", "graphsage") for f in ("", "+fog"))]


@pytest.mark.parametrize("name", [*TAKE_EDGES, "gatedgcn-e+fog"])
@pytest.mark.parametrize(
    "edges", [{"edge_tokens": 4}, {"edge_tokens": (3, 2)}, {"edge_channels": 2}]
)
def test_edge_features(name: str, edges: dict[str, Any]) -> None:
    """All layers read them: a change of one edge changes the output."""
    torch.manual_seed(0)
    task = Task("node", 3, node_channels=4, **edges)
    net = create_model(name, task, channels=32, layers=2, edge_features=True).eval()
    for block in net.blocks:
        parts = [part for part in (block.conv, getattr(block.conv, "conv", None)) if part]
        parts += [block.conv.fog] if hasattr(block.conv, "fog") else []
        assert [p.edge_dim for p in parts if hasattr(p, "edge_dim")] or "gated" in name
        assert all(part.edge_dim == 32 for part in parts if hasattr(part, "edge_dim"))
    x, edge_index = torch.randn(6, 4), torch.randint(0, 6, (2, 20))
    if "edge_channels" in edges:
        attr = torch.randn(20, 2)
        other = attr + torch.eye(20)[:, :1]
    else:
        attr = torch.zeros((20, 2) if isinstance(edges["edge_tokens"], tuple) else 20).long()
        other = attr.clone()
        other[0] = 1
    with torch.no_grad():
        out = net(x, edge_index, attr)
        assert not torch.equal(net(x, edge_index, other), out)
        # The order of the edges does not matter.
        perm = torch.randperm(20)
        again = net(x, edge_index[:, perm], other[perm])
        torch.testing.assert_close(again, net(x, edge_index, other))
    with pytest.raises(ValueError, match="edge_attr must be given"):
        net(x, edge_index)


def test_tasks_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="level must be one of"):
        Task("path", 1, node_tokens=3)
    for given in ({}, {"node_tokens": 3, "node_channels": 3}):
        with pytest.raises(ValueError, match="exactly one of node_tokens and node_channels"):
            Task("node", 1, **given)
    with pytest.raises(ValueError, match="at most one of edge_tokens and edge_channels"):
        Task("node", 1, node_tokens=3, edge_tokens=2, edge_channels=2)


def test_edge_features_of_other_networks() -> None:
    with pytest.raises(ValueError, match=r"edge_features must be False .*'gatedgcn-e'"):
        create_model("gatedgcn+fog", TASK, edge_features=True)
    bare = Task("graph", 3, node_channels=4)
    with pytest.raises(ValueError, match="task must have edge_tokens"):
        create_model("gcn", bare, edge_features=True)
    plain, same = (create_model("gatedgcn-e", TASK, edge_features=f) for f in (False, True))
    assert count_parameters(plain) == count_parameters(same)
