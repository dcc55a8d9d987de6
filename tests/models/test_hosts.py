import re

import pytest
import torch
import torch_geometric.nn as pyg
from torch.nn import Linear, Module
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from fognn.models import GraphNet, Task, create_model, list_models, register_host
from fognn.models.hosts import HOSTS

TASK = Task("node", out_channels=3, node_channels=4, edge_channels=2)


@pytest.fixture(autouse=True)
def same_hosts():
    before = dict(HOSTS)
    yield
    HOSTS.clear()
    HOSTS.update(before)


def graph():
    torch.manual_seed(0)
    return torch.randn(9, 4), torch.randint(0, 9, (2, 30)), torch.randn(30, 2)


def test_a_layer_of_pyg_under_a_name() -> None:
    @register_host("tag", act="elu")
    def tag(in_channels: int, out_channels: int, K: int = 3) -> Module:
        return pyg.TAGConv(in_channels, out_channels, K=K)

    assert list_models("tag*") == ["tag", "tag+fog"]
    x, edge_index, _ = graph()
    for name, q in (("tag", 16), ("tag+fog", 12)):
        settings = {} if name == "tag" else {"fog_channels": 4}
        net = create_model(name, TASK, channels=16, layers=2, K=2, **settings)
        assert isinstance(net, GraphNet)
        convs = [module for module in net.modules() if isinstance(module, pyg.TAGConv)]
        assert [(c.in_channels, c.out_channels, c.K) for c in convs] == [(16, q, 2)] * 2
        net(x, edge_index).sum().backward()
        assert all(p.grad is not None for p in net.parameters())
        net.reset_parameters()
    with pytest.raises(ValueError, match=r"'tag\+fog' has no setting 'heads'; known: K, channels"):
        create_model("tag+fog", TASK, heads=2)


def test_equals_the_host_that_is_there_already() -> None:
    @register_host("mygin")
    def my_gin(in_channels: int, out_channels: int) -> Module:
        mlp = pyg.MLP([in_channels, out_channels, out_channels], norm="batch_norm")
        return pyg.GINConv(mlp, train_eps=True)

    torch.manual_seed(0)
    theirs = create_model("mygin+fog", TASK, channels=16, layers=2).double()
    ours = create_model("gin+fog", TASK, channels=16, layers=2).double()
    ours.encoder, ours.head = theirs.encoder, theirs.head  # GIN has a head of its own
    for a, b in zip(ours.blocks, theirs.blocks, strict=True):
        a.norm, a.conv.fog = b.norm, b.conv.fog
        gin, mlp = a.conv.conv, b.conv.conv.conv.nn
        gin.lin_V.load_state_dict(mlp.lins[0].state_dict())
        gin.lin_U.load_state_dict(mlp.lins[1].state_dict())
    x, edge_index, _ = graph()
    x = x.double()
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))
    # An explainer's mask has the order of the user's edges in both.
    mask = torch.randn(30).double()
    results = []
    for net in (ours, theirs):
        set_masks(net, mask, edge_index)
        results.append(net(x, edge_index))
        clear_masks(net)
    torch.testing.assert_close(results[0], results[1])
    assert not torch.allclose(results[0], ours(x, edge_index))


def test_edge_features() -> None:
    @register_host("gine", edges=True)
    def gine(in_channels: int, out_channels: int) -> Module:
        return pyg.GINEConv(Linear(in_channels, out_channels))

    x, edge_index, e = graph()
    net = create_model("gine+fog", TASK, channels=16, layers=2).eval()
    out = net(x, edge_index, e)
    assert not torch.allclose(out, net(x, edge_index, -e))
    perm = torch.randperm(30)
    torch.testing.assert_close(net(x, edge_index[:, perm], e[perm]), out)
    with pytest.raises(ValueError, match=r"edge_tokens or edge_channels for 'gine\+fog'"):
        create_model("gine+fog", Task("node", out_channels=3, node_channels=4))


@pytest.mark.parametrize("bad", ["", "Mine", "a+b", "myfog", "2x", None])
def test_bad_names(bad) -> None:
    with pytest.raises(ValueError, match=f"register_host: name .* got {re.escape(repr(bad))}"):
        register_host(bad)


def test_names_that_are_taken_and_layers_that_do_not_fit() -> None:
    for taken in ("gcn", "fewshot-gnn"):
        with pytest.raises(ValueError, match=f"name must be a new one, got '{taken}'"):
            register_host(taken)
    register_host("backwards")(lambda i, o: pyg.SAGEConv(i, o, flow="target_to_source"))
    with pytest.raises(ValueError, match=r"flow .* 'backwards' must be 'source_to_target'"):
        create_model("backwards", TASK)
    register_host("narrow")(lambda i, o: pyg.SAGEConv(i, o - 1))
    with pytest.raises(ValueError, match="64 for a layer that gives 63"):
        create_model("narrow", TASK)(*graph()[:2])
