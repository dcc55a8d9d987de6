import copy
import pickle

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch_geometric.nn.models import GAT, GCN, GIN, PNA, EdgeCNN, GraphSAGE
from torch_geometric.nn.models.basic_gnn import BasicGNN

from fognn.models import with_fog
from fognn.nn import FOG, WithFOG

C, H, NODES, EDGES = 6, 12, 15, 50


class Own(BasicGNN):
    """A user's own model, with an argument of its own."""

    supports_edge_weight = False
    supports_edge_attr = False

    def __init__(self, *args, depth: int = 2, **kwargs) -> None:
        self.depth = depth
        super().__init__(*args, **kwargs)

    def init_conv(self, in_channels, out_channels, **kwargs):
        return pyg.TAGConv(in_channels, out_channels, K=self.depth, **kwargs)


MODELS = {
    "GCN": (GCN, {}),
    "GraphSAGE": (GraphSAGE, {}),
    "GIN": (GIN, {}),
    "GAT": (GAT, {"heads": 2, "v2": True}),
    "PNA": (
        PNA,
        {"aggregators": ["mean", "max"], "scalers": ["identity"], "deg": torch.ones(9).long()},
    ),
    "EdgeCNN": (EdgeCNN, {}),
    "Own": (Own, {"depth": 3}),
}


def graph() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(NODES, C), torch.randint(0, NODES, (2, EDGES))


@pytest.mark.parametrize("jk", [None, "cat"])
@pytest.mark.parametrize("name", MODELS)
def test_shapes_and_gradients(name: str, jk: str | None) -> None:
    model, options = MODELS[name]
    x, edge_index = graph()
    # So few units with ReLU may all be zero, and get no gradient.
    options = {**options, "norm": "batch_norm", "fog_kwargs": {"act": "leaky_relu"}}
    for out_channels in (None, 1, 7):
        net = with_fog(model)(C, H, 3, out_channels=out_channels, jk=jk, **options)
        assert isinstance(net, model)
        assert str(net) == f"{name}WithFOG({C}, {out_channels or H}, num_layers=3)"
        out = net(x, edge_index)
        assert out.shape == (NODES, out_channels or H)
        out.sin().sum().backward()
        fogs = [module for module in net.modules() if isinstance(module, FOG)]
        assert len(fogs) == 3
        assert all(p.grad is not None for p in net.parameters())
        assert all(fog.lin_vu.weight.grad.abs().sum() > 0 for fog in fogs)
        net.reset_parameters()


@pytest.mark.parametrize("act_first", [False, True])
def test_equals_the_layers_one_by_one(act_first: bool) -> None:
    x, edge_index = graph()
    net = with_fog(GCN)(
        C, H, 3, 7, dropout=0.5, norm="layer_norm", act="elu", act_first=act_first, fog_channels=4
    ).eval()
    h = x
    for i, conv in enumerate(net.convs):
        assert isinstance(conv, WithFOG)
        assert conv.fog.out_channels == 4
        h = torch.cat([conv.fog(h, edge_index), conv.conv(h, edge_index)], dim=1)
        assert h.shape == (NODES, H)
        if i == 2:
            h = conv.lin(h)
        elif act_first:
            h = net.norms[i](torch.nn.functional.elu(h))
        else:
            h = torch.nn.functional.elu(net.norms[i](h))
    torch.testing.assert_close(net(x, edge_index), h)


def test_edge_weights_and_edge_features() -> None:
    x, edge_index = graph()
    net = with_fog(GCN)(C, H, 2).eval()
    weight = torch.rand(EDGES)
    out, plain = net(x, edge_index, edge_weight=weight), net(x, edge_index)
    first = net.convs[0]
    assert not torch.allclose(out, plain)
    h = first(x, edge_index, edge_weight=weight)
    torch.testing.assert_close(h[:, : H // 2], first.fog(x, edge_index, weight))
    net = with_fog(GAT)(C, H, 2, edge_dim=3, fog_kwargs={"edge_dim": 3, "eps": 1e-2}).eval()
    e = torch.randn(EDGES, 3, requires_grad=True)
    net(x, edge_index, edge_attr=e)[:, : H // 2].sum().backward()
    assert e.grad.abs().sum() > 0
    assert net.convs[0].fog.norm_1.module.eps == 1e-2


def test_lazy_bipartite_input_and_to_hetero() -> None:
    x, edge_index = graph()
    assert with_fog(GraphSAGE)(-1, H, 2)(x, edge_index).shape == (NODES, H)
    types = (["a", "b"], [("a", "to", "b"), ("b", "to", "a")])
    net = pyg.to_hetero(with_fog(GraphSAGE)((-1, -1), H, 2, 7), types)
    out = net(
        {"a": torch.randn(4, C), "b": torch.randn(5, C)},
        {key: torch.zeros(2, 3, dtype=torch.long) for key in types[1]},
    )
    assert {key: tuple(value.shape) for key, value in out.items()} == {"a": (4, 7), "b": (5, 7)}
    with pytest.raises(ValueError, match=r"in_channels must be .*got \(3, 4\)"):
        with_fog(GraphSAGE)((3, 4), H, 2)


def test_copies() -> None:
    x, edge_index = graph()
    net = with_fog(GCN)(C, H, 2, 7).eval()
    assert with_fog(GCN) is type(net)
    expected = net(x, edge_index)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert type(twin) is type(net)
        torch.testing.assert_close(twin(x, edge_index), expected)


def test_bad_input() -> None:
    for bad in (torch.nn.Linear, BasicGNN, pyg.GCNConv):
        with pytest.raises(ValueError, match=f"with_fog: model .* got {bad.__name__}"):
            with_fog(bad)
    for bad in (0, H, True):
        with pytest.raises(ValueError, match=f"GCNWithFOG: fog_channels must be .*, got {bad}"):
            with_fog(GCN)(C, H, 2, fog_channels=bad)
