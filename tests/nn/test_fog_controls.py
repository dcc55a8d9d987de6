import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import to_torch_csr_tensor

from fognn.nn import FOG, FOGControl, GCNConv, WithFOG
from fognn.nn.fog_controls import FOG_KINDS

CONTROLS = [kind for kind in FOG_KINDS if kind != "kron"]
WITHOUT_EDGES = ("kron-neighbours", "own")  # those that take no edge features


def literal(
    fog: FOGControl, sources: Tensor, targets: Tensor, edge_index: Tensor, weight=None, e=None
) -> Tensor:
    """The equation of each kind as it stands, with a loop over nodes and their edges."""

    def layer(lin, norm, x: Tensor) -> Tensor:
        h, bn = x @ lin.weight.t() + lin.bias, norm.module
        h = torch.relu(h) if fog.act_first else h
        mean, var = bn.running_mean, bn.running_var
        if bn.training and len(h) > 1:
            mean, var = h.mean(0), h.var(0, unbiased=False)
        h = (h - mean) / (var + bn.eps).sqrt() * bn.weight + bn.bias
        return h if fog.act_first else torch.relu(h)

    same = sources is targets
    h = layer(fog.lin_1, fog.norm_1, sources if same else torch.cat([sources, targets]))
    left, centre = (h, h) if same else h.split([len(sources), len(targets)])
    right = layer(fog.lin_2, fog.norm_2, centre if fog.kind == "own" else left)
    out = []
    for v in range(len(targets)):
        edges = [i for i, target in enumerate(edge_index[1].tolist()) if target == v]
        weights = [1.0 if weight is None else weight[i] for i in edges]
        if fog.kind == "own":  # no neighbour occurs
            out.append(fog.lin_vu.weight @ torch.cat([centre[v], right[v]]) + fog.lin_vu.bias)
            continue
        neighbours = [
            right[edge_index[0, i]] + (0.0 if e is None else fog.lin_e.weight @ e[i]) for i in edges
        ]
        zero = torch.zeros(fog.h2, dtype=h.dtype)
        total = sum((w * s for w, s in zip(weights, neighbours, strict=True)), zero)
        if fog.kind == "kron":
            product = torch.kron(centre[v], total)
        elif fog.kind == "kron-mean":
            product = torch.kron(centre[v], total / sum(weights) if edges else total)
        elif fog.kind == "kron-neighbours":
            product = torch.zeros(fog.h1 * fog.h2, dtype=h.dtype)
            for i, w in zip(edges, weights, strict=True):
                u = edge_index[0, i]
                product = product + w * torch.kron(left[u], right[u])
        elif fog.kind == "hadamard":
            product = centre[v] * total
        else:
            product = torch.cat([centre[v], total])
        out.append(fog.lin_vu.weight @ product + fog.lin_vu.bias)
    return torch.stack(out)


def random_control(graph: Graph, kind: str, training: bool, **options) -> FOGControl:
    torch.manual_seed(graph.seed % 2**31)
    h2 = 3 if kind == "hadamard" else 2
    options = {"act_first": bool(graph.seed % 2)} | options
    fog = FOGControl(4, 5, 3, h2, kind, **options).double()
    for norm in (fog.norm_1, fog.norm_2):  # as after some training
        torch.nn.init.normal_(norm.module.running_mean)
        torch.nn.init.uniform_(norm.module.running_var, 0.5, 2.0)
        torch.nn.init.normal_(norm.module.weight)
        torch.nn.init.normal_(norm.module.bias)
    return fog.train(training)


def check(fog: FOGControl, inputs: list[Tensor], out: Tensor, expected: Tensor) -> None:
    """Equal values and gradients, in double precision."""
    close = {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(out, expected, **close)
    leaves = [*inputs, *fog.parameters()]
    direction = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1))
    grads = [
        torch.autograd.grad(value, leaves, direction, allow_unused=True, materialize_grads=True)
        for value in (out, expected)
    ]
    for got, wanted in zip(*grads, strict=True):
        torch.testing.assert_close(got, wanted, **close)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", FOG_KINDS)
@given(graph=graphs())
def test_equals_the_literal_equation(kind: str, training: bool, graph: Graph) -> None:
    fog = random_control(graph, kind, training)
    x = graph.randn(graph.num_sources, 4).requires_grad_()
    check(fog, [x], fog(x, graph.edge_index), literal(fog, x, x, graph.edge_index))


@pytest.mark.parametrize("kind", FOG_KINDS)
@given(graph=graphs(bipartite=True))
def test_equals_the_literal_equation_bipartite_and_weighted(kind: str, graph: Graph) -> None:
    fog = random_control(graph, kind, training=True)
    x = graph.randn(graph.num_sources, 4).requires_grad_()
    y = (graph.randn(graph.num_targets, 4) + 1).requires_grad_()
    weight = (graph.randn(graph.num_edges).abs() + 0.1).requires_grad_()
    out = fog((x, y), graph.edge_index, weight)
    check(fog, [x, y, weight], out, literal(fog, x, y, graph.edge_index, weight))


@pytest.mark.parametrize("kind", [kind for kind in FOG_KINDS if kind not in WITHOUT_EDGES])
@given(graph=graphs())
def test_edge_features_equal_the_literal_equation(kind: str, graph: Graph) -> None:
    fog = random_control(graph, kind, training=True, edge_dim=3)
    x = graph.randn(graph.num_sources, 4).requires_grad_()
    e = graph.randn(graph.num_edges, 3).requires_grad_()
    out = fog(x, graph.edge_index, edge_attr=e)
    check(fog, [x, e], out, literal(fog, x, x, graph.edge_index, e=e))


def test_kron_is_fog_bitwise() -> None:
    torch.manual_seed(0)
    fog = FOG(6, 8)
    torch.manual_seed(0)
    control = FOGControl(6, 8)
    x, edge_index = torch.randn(20, 6), torch.randint(0, 20, (2, 70))
    assert torch.equal(fog(x, edge_index), control(x, edge_index))
    assert list(fog.state_dict()) == list(control.state_dict())


@pytest.mark.parametrize("kind", CONTROLS)
def test_forms_of_edge_index_agree_and_isolated_nodes(kind: str) -> None:
    fog = FOGControl(6, 8, 4, 4, kind).eval()
    x = torch.randn(9, 6)
    edge_index = torch.randint(0, 8, (2, 30))  # node 8 has no edges
    out = fog(x, edge_index)
    order = EdgeIndex(edge_index, sparse_size=(9, 9)).sort_by("col").values
    torch.testing.assert_close(fog(x, order), out)
    # The values of a sparse matrix are weights, and those of equal edges are added.
    unique = edge_index.unique(dim=1)
    sparse = to_torch_csr_tensor(unique, size=(9, 9)).t().to_sparse_csr()
    torch.testing.assert_close(fog(x, sparse), fog(x, unique))
    if kind not in ("concat", "own"):
        torch.testing.assert_close(out[8], fog.lin_vu.bias)


def test_repr_widths_and_use_beside_a_host() -> None:
    assert str(FOGControl(6, 8, kind="concat")) == "FOGControl(6, 8, h1=4, h2=2, kind=concat)"
    hadamard = FOGControl(-1, 8, kind="hadamard")
    assert (hadamard.h1, hadamard.h2) == (4, 4)
    layer = WithFOG(GCNConv(6, 3), FOGControl(6, 8, kind="concat"))
    assert layer(torch.randn(4, 6), torch.tensor([[0, 1], [1, 2]])).shape == (4, 11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "sum"}, "kind must be one of 'kron', .*, got 'sum'"),
        ({"kind": "hadamard", "h1": 4, "h2": 2}, "h2 must equal h1=4 for kind='hadamard', got 2"),
        ({"kind": "hadamard", "h2": 3}, "h2 must equal h1=4 for kind='hadamard', got 3"),
        ({"kind": "kron-neighbours", "edge_dim": 2}, "edge_dim must be None for .*, got 2"),
        ({"kind": "own", "edge_dim": 2}, "edge_dim must be None for kind='own', got 2"),
        ({"kind": "concat", "h1": 0}, "h1 must be a positive int, got 0"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FOGControl(6, 8, **options)
