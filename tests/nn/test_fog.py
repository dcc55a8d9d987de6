import copy
import pickle

import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import to_torch_csc_tensor, to_torch_csr_tensor

from fognn.experiments import rows
from fognn.nn import FOG, fog_widths


def literal(fog: FOG, x_source: Tensor, x_target: Tensor, edge_index: Tensor, weight=None, e=None):
    """The paper's equations as they stand: a loop over edges, a Kronecker product for each.

    By default FOG's norm is before its activation, in the paper after it. One norm sees all nodes;
    on a bipartite graph those of both sides.
    """

    def norm(module, h: Tensor) -> Tensor:
        bn = module.module
        mean, var = bn.running_mean, bn.running_var
        if bn.training and len(h) > 1:
            mean, var = h.mean(0), h.var(0, unbiased=False)
        return (h - mean) / (var + bn.eps).sqrt() * bn.weight + bn.bias

    def shrunk(module, h: Tensor) -> Tensor:
        return norm(module, torch.relu(h)) if fog.act_first else torch.relu(norm(module, h))

    same = x_source is x_target
    x = x_source if same else torch.cat([x_source, x_target])
    h = shrunk(fog.norm_1, x @ fog.lin_1.weight.t() + fog.lin_1.bias)
    h_source, h_target = (h, h) if same else h.split([len(x_source), len(x_target)])
    h_u = shrunk(fog.norm_2, h_source @ fog.lin_2.weight.t() + fog.lin_2.bias)
    total = [torch.zeros(fog.h1 * fog.h2, dtype=x.dtype) for _ in range(len(x_target))]
    for i, (u, v) in enumerate(edge_index.t().tolist()):
        neighbour = h_u[u] if e is None else h_u[u] + fog.lin_e.weight @ e[i]
        product = torch.kron(h_target[v], neighbour)
        total[v] = total[v] + (product if weight is None else weight[i] * product)
    return torch.stack(total) @ fog.lin_vu.weight.t() + fog.lin_vu.bias


def equal_in_values_and_gradients(fog: FOG, inputs: list[Tensor], compute, expect) -> None:
    leaves = [*inputs, *fog.parameters()]
    out, expected = compute(), expect()
    close = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(out, expected, **close)
    direction = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    for got, wanted in zip(
        torch.autograd.grad(out, leaves, direction),
        torch.autograd.grad(expected, leaves, direction, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted, **close)


def random_fog(graph: Graph, *widths: int, training: bool = True, **options) -> FOG:
    torch.manual_seed(graph.seed % 2**31)
    in_channels, h1, h2, out_channels = widths
    options = {"act_first": bool(graph.seed % 2)} | options
    fog = FOG(in_channels, out_channels, h1, h2, **options).double()
    for norm in (fog.norm_1, fog.norm_2):  # as after some training
        torch.nn.init.normal_(norm.module.running_mean)
        torch.nn.init.uniform_(norm.module.running_var, 0.5, 2.0)
        torch.nn.init.normal_(norm.module.weight)
        torch.nn.init.normal_(norm.module.bias)
    return fog.train(training)


@pytest.mark.parametrize("training", [True, False])
@given(graph=graphs())
def test_equals_the_literal_equation(training: bool, graph: Graph) -> None:
    fog = random_fog(graph, 5, 3, 2, 4, training=training)
    x = graph.randn(graph.num_sources, 5).requires_grad_()
    equal_in_values_and_gradients(
        fog,
        [x],
        lambda: fog(x, graph.edge_index),
        lambda: literal(fog, x, x, graph.edge_index),
    )


@pytest.mark.parametrize("training", [True, False])
@given(graph=graphs(bipartite=True))
def test_equals_the_literal_equation_bipartite_and_weighted(training: bool, graph: Graph) -> None:
    fog = random_fog(graph, 3, 4, 2, 3, training=training)
    x_source = graph.randn(graph.num_sources, 3).requires_grad_()
    x_target = (graph.randn(graph.num_targets, 3) + 1).requires_grad_()
    weight = graph.randn(graph.num_edges).requires_grad_()
    equal_in_values_and_gradients(
        fog,
        [x_source, x_target, weight],
        lambda: fog((x_source, x_target), graph.edge_index, weight),
        lambda: literal(fog, x_source, x_target, graph.edge_index, weight),
    )


@pytest.mark.parametrize("weighted", [False, True])
@given(graph=graphs(bipartite=True))
def test_edge_features_equal_the_literal_equation(weighted: bool, graph: Graph) -> None:
    fog = random_fog(graph, 3, 4, 2, 3, edge_dim=3)
    x_source = graph.randn(graph.num_sources, 3).requires_grad_()
    x_target = (graph.randn(graph.num_targets, 3) + 1).requires_grad_()
    e = graph.randn(graph.num_edges, 3).requires_grad_()
    inputs, weight = [x_source, x_target, e], None
    if weighted:
        weight = (graph.randn(graph.num_edges) * 2).requires_grad_()
        inputs.append(weight)
    equal_in_values_and_gradients(
        fog,
        inputs,
        lambda: fog((x_source, x_target), graph.edge_index, weight, e),
        lambda: literal(fog, x_source, x_target, graph.edge_index, weight, e),
    )


def test_edge_features_in_sorted_forms_of_edge_index() -> None:
    torch.manual_seed(0)
    fog, x, e = FOG(4, 5, 3, 2, edge_dim=6).eval(), torch.randn(7, 4), torch.randn(30, 6)
    edge_index = torch.randint(0, 7, (2, 30))
    expected = fog(x, edge_index, edge_attr=e)
    for order in ("row", "col"):
        edges, perm = EdgeIndex(edge_index, sparse_size=(7, 7)).sort_by(order)
        torch.testing.assert_close(fog(x, edges, edge_attr=e[perm]), expected)


def test_bad_edge_features() -> None:
    x, edge_index = torch.randn(6, 4), torch.randint(0, 6, (2, 9))
    fog = FOG(4, 5, edge_dim=6)
    with pytest.raises(ValueError, match="FOG: edge_attr must be given with edge_dim=6, got None"):
        fog(x, edge_index)
    with pytest.raises(ValueError, match="FOG: edge_attr must have 6 channels, got 5"):
        fog(x, edge_index, edge_attr=torch.randn(9, 5))
    with pytest.raises(ValueError, match="FOG: edge_attr must have one entry for each of 9 edges"):
        fog(x, edge_index, edge_attr=torch.randn(8, 6))
    with pytest.raises(ValueError, match="FOG: edge_attr must be None for a layer without"):
        FOG(4, 5)(x, edge_index, edge_attr=torch.randn(9, 6))
    with pytest.raises(ValueError, match="FOG: edge_dim must be a positive int, got True"):
        FOG(4, 5, 3, 2, True)


NORMS = {
    "layer_norm": lambda channels: torch.nn.LayerNorm(channels, eps=1e-5),
    "own": torch.nn.BatchNorm1d,
    "none": lambda channels: torch.nn.Identity(),
}


@pytest.mark.parametrize("act", ["tanh", None, "relu", torch.nn.PReLU()], ids=str)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("act_first", [True, False])
def test_norm_and_act_equal_the_modules_in_order(norm: str, act, act_first: bool) -> None:
    torch.manual_seed(0)
    given_norm = {"own": NORMS["own"], "none": None}.get(norm, norm)
    fog = FOG(4, 5, 3, 2, norm=given_norm, act=act, act_first=act_first).double()
    x = torch.randn(6, 4).double()
    edge_index = torch.randint(0, 6, (2, 9))
    by_name = {"tanh": torch.tanh, "relu": torch.relu, None: lambda h: h}
    phi = act if isinstance(act, torch.nn.Module) else by_name[act]
    norms = [NORMS[norm](channels).double() for channels in (3, 2)]
    h = fog.lin_1(x)
    h = norms[0](phi(h)) if act_first else phi(norms[0](h))
    h_u = fog.lin_2(h)
    h_u = norms[1](phi(h_u)) if act_first else phi(norms[1](h_u))
    total = torch.zeros(6, 3, 2).double()
    for u, v in edge_index.t().tolist():
        total[v] += torch.outer(h[v], h_u[u])
    expected = fog.lin_vu(total.flatten(1))
    torch.testing.assert_close(fog(x, edge_index), expected, rtol=1e-10, atol=1e-10)
    fog.reset_parameters()


def test_a_norm_whose_gradient_needs_its_output() -> None:
    """A ReLU in place would change it."""
    fog = FOG(4, 5, 3, 2, norm=lambda size: torch.nn.Sequential(torch.nn.Tanh()))
    fog(torch.randn(6, 4), torch.randint(0, 6, (2, 9))).sum().backward()
    assert all(value.grad is not None for value in fog.parameters())


def test_layer_norm_does_not_mix_nodes_and_takes_one() -> None:
    fog = FOG(4, 5, 3, 2, norm="layer_norm")
    x, loops = torch.randn(6, 4), torch.arange(6).repeat(2, 1)
    one = fog(x[:1], loops[:, :1])
    torch.testing.assert_close(fog(x, loops)[:1], one)


def test_by_default_no_unit_dominates_in_evaluation() -> None:
    """A unit that is zero on all training nodes, and one unseen node that activates it."""
    torch.manual_seed(0)
    x, loops = torch.randn(50, 4), torch.arange(50).repeat(2, 1)
    largest = {}
    for act_first in (True, False):
        fog = FOG(4, 5, 3, 2, act_first=act_first)
        with torch.no_grad():
            fog.lin_1.bias.fill_(-100.0 if act_first else -3.0)
            if not act_first:
                fog.norm_1.module.bias.fill_(-5.0)  # zero on all nodes, after the norm
            for _ in range(200):
                fog(x, loops)
            fog.eval()
            fog.lin_1.bias += 100.0 if act_first else 0.0
            largest[act_first] = float(fog.shrink(x * 2).abs().max())
    assert largest[True] > 100
    assert largest[False] < 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "graph_norm"}, "norm must be .* got 'graph_norm'"),
        ({"norm": torch.nn.BatchNorm1d(3)}, "norm must be .* got BatchNorm1d"),
        ({"norm": None, "eps": 1e-2}, "eps must be None with norm=None, got 0.01"),
        ({"eps": 0.0}, "eps must be a positive number, got 0.0"),
    ],
)
def test_bad_norms(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"FOG: {message}"):
        FOG(4, 5, 3, 2, **options)


def test_repr_and_widths() -> None:
    assert str(FOG(144, 144, 16, 8)) == "FOG(144, 144, h1=16, h2=8)"
    fogs = [row for row in rows() if row.h1 is not None]
    assert len(fogs) == 44
    for row in fogs:  # the rule that the paper does not state
        assert fog_widths(row.p or 48) == (row.h1, row.h2), row
    assert fog_widths(1) == (1, 1)


def test_isolated_nodes_get_the_bias() -> None:
    torch.manual_seed(0)  # else both factors can be zero by chance
    fog, x = FOG(4, 5, 3, 2), torch.randn(6, 4)
    nothing = torch.empty(2, 0, dtype=torch.long)
    assert torch.equal(fog(x, nothing), fog.lin_vu.bias.expand(6, 5))
    out = fog(x, torch.tensor([[0], [1]]))
    assert torch.equal(out[0], fog.lin_vu.bias)
    assert not torch.equal(out[1], fog.lin_vu.bias)
    assert fog(torch.empty(0, 4), nothing).shape == (0, 5)


def test_a_single_node_in_training_uses_the_running_statistics() -> None:
    fog, loop = FOG(4, 5, 3, 2), torch.tensor([[0], [0]])
    before = copy.deepcopy(fog.state_dict())
    out = fog(torch.ones(1, 4), loop)
    torch.testing.assert_close(out, fog.eval()(torch.ones(1, 4), loop))
    for key, value in fog.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_all_forms_of_edge_index_agree() -> None:
    torch.manual_seed(0)
    edge_index = (
        torch.randint(0, 7, (2, 30)).unique(dim=1).contiguous()
    )  # a matrix has no multi-edges
    x, fog = torch.randn(7, 4), FOG(4, 5, 3, 2).eval()
    expected = fog(x, edge_index)
    edges = EdgeIndex(edge_index, sparse_size=(7, 7))
    forms = {
        "EdgeIndex": edges,
        "by target": edges.sort_by("col")[0],
        "by source": edges.sort_by("row")[0],
        "csr": to_torch_csr_tensor(edge_index, size=(7, 7)).t().to_sparse_csr(),
        "csr, transposed": to_torch_csr_tensor(edge_index, size=(7, 7)).t(),
        "csc, transposed": to_torch_csc_tensor(edge_index, size=(7, 7)).t(),
    }
    for name, form in forms.items():
        torch.testing.assert_close(fog(x, form), expected, msg=name)


def test_edge_weights_in_any_form_of_edge_index() -> None:
    torch.manual_seed(0)
    edge_index = torch.randint(0, 7, (2, 30)).unique(dim=1).contiguous()
    weight, x, fog = torch.randn(edge_index.size(1)), torch.randn(7, 4), FOG(4, 5, 3, 2).eval()
    expected = fog(x, edge_index, weight)
    torch.testing.assert_close(fog(x, edge_index, weight.unsqueeze(1)), expected)
    for order in ("row", "col"):
        edges, perm = EdgeIndex(edge_index, sparse_size=(7, 7)).sort_by(order)
        torch.testing.assert_close(fog(x, edges, weight[perm]), expected)
    for convert in (to_torch_csr_tensor, to_torch_csc_tensor):
        matrix = convert(edge_index, weight, size=(7, 7)).t()
        torch.testing.assert_close(fog(x, matrix), expected)
        with pytest.raises(ValueError, match="edge_weight must be None for a sparse edge_index"):
            fog(x, matrix, weight)


@given(graph=graphs())
def test_permutations(graph: Graph) -> None:
    fog = random_fog(graph, 4, 3, 2, 3)
    x = graph.randn(graph.num_sources, 4)
    out = fog(x, graph.edge_index)
    generator = torch.Generator().manual_seed(graph.seed)
    nodes = torch.randperm(graph.num_sources, generator=generator)
    place = torch.empty_like(nodes)
    place[nodes] = torch.arange(len(nodes))
    torch.testing.assert_close(fog(x[nodes], place[graph.edge_index]), out[nodes])
    edges = torch.randperm(graph.num_edges, generator=generator)
    torch.testing.assert_close(fog(x, graph.edge_index[:, edges]), out)


@given(first=graphs(), second=graphs())
def test_a_batch_is_its_graphs_one_by_one(first: Graph, second: Graph) -> None:
    fog = random_fog(first, 4, 3, 2, 3, training=False)
    x = [graph.randn(graph.num_sources, 4) for graph in (first, second)]
    joint = torch.cat([first.edge_index, second.edge_index + first.num_sources], dim=1)
    apart = torch.cat([fog(x[0], first.edge_index), fog(x[1], second.edge_index)])
    torch.testing.assert_close(fog(torch.cat(x), joint), apart)


def test_swapping_the_centre_with_a_neighbour_is_seen_in_the_second_order_only() -> None:
    # Two centres, 0 and 3, with the same multiset {a, b, b} of centre and neighbours:
    # a has the neighbours b, b and b has the neighbours a, b.
    torch.manual_seed(0)
    a, b = torch.randn(2, 4)
    x = torch.stack([a, b, b, b, a, b])
    edge_index = torch.tensor([[1, 2, 4, 5], [0, 0, 3, 3]])
    first_order = x.clone().index_add_(0, edge_index[1], x[edge_index[0]])
    torch.testing.assert_close(first_order[0], first_order[3])
    fog = FOG(4, 5, 3, 2).eval()
    out = fog(x, edge_index)
    assert (out[0] - out[3]).abs().max() > 1e-3


def test_lazy_in_channels() -> None:
    lazy = FOG(-1, 5, 3, 2)
    assert str(lazy) == "FOG(-1, 5, h1=3, h2=2)"
    x, edge_index = torch.randn(6, 4), torch.randint(0, 6, (2, 9))
    twin = copy.deepcopy(lazy)
    assert lazy(x, edge_index).shape == (6, 5)
    assert str(lazy) == "FOG(4, 5, h1=3, h2=2)"
    twin.load_state_dict(lazy.state_dict())
    torch.testing.assert_close(twin.eval()(x, edge_index), lazy.eval()(x, edge_index))
    with pytest.raises(ValueError, match=r"x\[1\] \(targets\) must have 4 channels, got 3"):
        FOG(-1, 5, 3, 2)((torch.randn(6, 4), torch.randn(6, 3)), edge_index)


def test_copies_give_the_same() -> None:
    fog, x = FOG(4, 5, 3, 2).eval(), torch.randn(6, 4)
    edge_index = torch.randint(0, 6, (2, 9))
    expected = fog(x, edge_index)
    fresh = FOG(4, 5, 3, 2).eval()
    fresh.load_state_dict(fog.state_dict())
    for twin in (copy.deepcopy(fog), pickle.loads(pickle.dumps(fog)), fresh):
        assert torch.equal(twin(x, edge_index), expected)


def test_autocast() -> None:
    fog, x = FOG(4, 5, 3, 2), torch.randn(50, 4)
    edge_index = torch.randint(0, 50, (2, 200))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = fog(x, edge_index)
    assert out.dtype == torch.bfloat16
    out.sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in fog.parameters())
    torch.testing.assert_close(out.float(), fog(x, edge_index), rtol=0.1, atol=0.3)


@pytest.mark.parametrize("name", ["in_channels", "h1", "h2", "out_channels"])
@pytest.mark.parametrize("bad", [0, -2, 1.5])
def test_bad_widths(name: str, bad) -> None:
    widths = {"in_channels": 4, "h1": 3, "h2": 2, "out_channels": 5, name: bad}
    with pytest.raises(ValueError, match=rf"FOG: {name} must be a positive int, got {bad}"):
        FOG(**widths)


def test_bad_input() -> None:
    fog, x = FOG(4, 5, 3, 2), torch.randn(6, 4)
    edge_index = torch.randint(0, 6, (2, 9))
    for bad, message in (
        (torch.randn(6, 3), "x must have 4 channels, got 3"),
        (x.double(), "x must be torch.float32 like the layer's weights, got torch.float64"),
        (x.long(), "x must be floating point, got torch.int64"),
        ((x,), r"x must be a tensor or a pair \(x_source, x_target\), got tuple"),
        ((x, None), r"x\[1\] \(targets\) must be a \[num_nodes, channels\] tensor"),
    ):
        with pytest.raises(ValueError, match=f"FOG: {message}"):
            fog(bad, edge_index)
    for bad in (torch.tensor([[0], [6]]), torch.tensor([[-1], [0]])):
        with pytest.raises(ValueError, match=r"edge_index: .* must lie in 0\.\.5"):
            fog(x, bad)
    with pytest.raises(ValueError, match="edge_weight must have one entry for each of 9 edges"):
        fog(x, edge_index, torch.ones(8))
    with pytest.raises(ValueError, match=r"edge_weight must have shape \[num_edges\], got"):
        fog(x, edge_index, torch.ones(9, 2))
