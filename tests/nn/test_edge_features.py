"""Edge features in the hosts: equal to PyG's layers where it has them, else to the equation."""

from collections.abc import Callable

import pytest
import torch
import torch_geometric.nn as pyg
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch import Tensor
from torch.nn import Module, ReLU, Sequential

from fognn.nn import FOG, GATConv, GCNConv, GINConv, SAGEConv, WithFOG

C, D = 4, 3
LAYERS: dict[str, Callable[[int], Module]] = {
    "gcn-sym": lambda d: GCNConv(C, 5, "sym", d),
    "gcn-mean": lambda d: GCNConv(C, 3, "mean", d),
    "gcn-none": lambda d: GCNConv(C, 5, "none", d),
    "gat": lambda d: GATConv(C, 3, 2, edge_dim=d),
    "gin": lambda d: GINConv(C, 5, edge_dim=d),
    "sage-max": lambda d: SAGEConv(C, 5, "max", edge_dim=d),
    "sage-mean": lambda d: SAGEConv(C, 5, "mean", edge_dim=d),
    "sage-benchmark": lambda d: SAGEConv(C, 5, "max", True, d),
    "fog": lambda d: FOG(C, 5, edge_dim=d),
    "gin+fog": lambda d: WithFOG(GINConv(C, 5, edge_dim=d), FOG(C, 5, edge_dim=d)),
}


def compare(ours: Module, theirs: Callable[[Tensor, Tensor, Tensor], Tensor], graph: Graph, d: int):
    x = graph.randn(graph.num_sources, C).requires_grad_()
    # Not the numbers of x, which would make equal maxima.
    e = graph.randn(graph.edge_index.size(1), d).mul(1.7).requires_grad_()
    results = []
    for layer in (lambda *args: ours(args[0], args[1], edge_attr=args[2]), theirs):
        out = layer(x, graph.edge_index, e)
        grads = torch.autograd.grad(out.sin().sum(), (x, e), materialize_grads=True)
        results.append([out, *grads])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", [C, D])
@settings(max_examples=25)
@given(graph=graphs())
def test_gin_is_pygs_gine(d: int, graph: Graph) -> None:
    torch.manual_seed(0)
    ours = GINConv(C, 5, 7, edge_dim=d).double()
    torch.nn.init.normal_(ours.eps)
    norm = pyg.BatchNorm(7, allow_single_element=True)
    mlp = Sequential(pyg.Linear(C, 7), norm, ReLU(), pyg.Linear(7, 5))
    theirs = pyg.GINEConv(mlp, train_eps=True, edge_dim=None if d == C else d).double()
    with torch.no_grad():
        theirs.eps.copy_(ours.eps)
        mlp[0].load_state_dict(ours.lin_V.state_dict())
        mlp[3].load_state_dict(ours.lin_U.state_dict())
        if ours.lin_e is not None:
            theirs.lin.load_state_dict(ours.lin_e.state_dict())
    compare(ours, theirs, graph, d)


@pytest.mark.parametrize("heads", [1, 2])
@settings(max_examples=25)
@given(graph=graphs())
def test_gat_is_pygs(heads: int, graph: Graph) -> None:
    torch.manual_seed(0)
    ours = GATConv(C, 3, heads, edge_dim=D).double()
    theirs = pyg.GATConv(C, 3, heads=heads, add_self_loops=False, bias=False, edge_dim=D).double()
    weights = {f"att_{end}": getattr(ours, f"att_{end}")[None] for end in ("src", "dst", "edge")}
    linears = {"lin.weight": ours.lin.weight, "lin_edge.weight": ours.lin_e.weight}
    theirs.load_state_dict(weights | linears)
    compare(ours, theirs, graph, D)


def degrees(graph: Graph) -> Tensor:
    return torch.bincount(graph.edge_index[1], minlength=graph.num_sources).double()


@pytest.mark.parametrize("norm", ["sym", "mean", "none"])
@pytest.mark.parametrize("out", [3, 5])
@settings(max_examples=15)
@given(graph=graphs())
def test_gcn_is_its_equation(norm: str, out: int, graph: Graph) -> None:
    torch.manual_seed(0)
    ours = GCNConv(C, out, norm, D).double()
    degree = degrees(graph)

    def literal(x: Tensor, edge_index: Tensor, e: Tensor) -> Tensor:
        source, target = edge_index
        message = ours.lin(x)[source] + ours.lin_e(e)
        if norm == "sym":  # a source without in-edges has no weight, as in PyG
            factor = (degree[source] * degree[target]).rsqrt()
            message = message * factor.masked_fill(factor.isinf(), 0.0).unsqueeze(1)
        elif norm == "mean":
            message = message / degree[target].unsqueeze(1)
        return message.new_zeros(x.size(0), out).index_add(0, target, message) + ours.bias

    compare(ours, literal, graph, D)


@pytest.mark.parametrize("aggr", ["max", "mean"])
@pytest.mark.parametrize("d", [C, D])
@settings(max_examples=15)
@given(graph=graphs())
def test_sage_is_its_equation(aggr: str, d: int, graph: Graph) -> None:
    torch.manual_seed(0)
    ours = SAGEConv(C, 5, aggr, edge_dim=d).double()

    def literal(x: Tensor, edge_index: Tensor, e: Tensor) -> Tensor:
        source, target = edge_index
        message = x[source] + (e if ours.lin_e is None else ours.lin_e(e))
        if aggr == "max":
            message = ours.lin_P(message).relu()
        rows = [message[target == v] for v in range(x.size(0))]
        zero = message.new_zeros(C)
        reduced = [
            zero if not len(row) else row.amax(0) if aggr == "max" else row.mean(0) for row in rows
        ]
        return ours.lin_U(torch.cat([x, torch.stack(reduced)], dim=1))

    compare(ours, literal, graph, d)


@pytest.mark.parametrize("name", LAYERS)
def test_an_explainers_mask(name: str) -> None:
    """A mask of ones changes nothing; a mask of zeros removes all messages."""
    torch.manual_seed(0)
    layer = LAYERS[name](C).double().eval()
    edge_index, x = torch.randint(0, 9, (2, 40)), torch.randn(9, C).double()
    e = torch.randn(40, C).double()
    plain = layer(x, edge_index, edge_attr=e)
    for value in (1.0, 0.0):
        for part in layer.modules():
            if hasattr(part, "explain"):
                part.explain = True
                part._edge_mask, part._apply_sigmoid = torch.full((40,), value), False
        found = layer(x, edge_index, edge_attr=e)
        if value:
            torch.testing.assert_close(found, plain)
        else:
            torch.testing.assert_close(found, layer(x, edge_index, edge_attr=e + 3.0))


@pytest.mark.parametrize("name", LAYERS)
def test_it_compiles(name: str) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name](D)
    edge_index, x = torch.randint(0, 9, (2, 40)), torch.randn(9, C)
    e = torch.randn(40, D)
    torch.compiler.reset()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    layer.eval()
    torch.testing.assert_close(
        compiled(x, edge_index, edge_attr=e), layer(x, edge_index, edge_attr=e)
    )


@pytest.mark.parametrize("name", [name for name in LAYERS if "+" not in name])
def test_bad_input(name: str) -> None:
    layer, owner = LAYERS[name](D), type(LAYERS[name](D)).__name__
    x, edge_index = torch.randn(5, C), torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=f"{owner}: edge_attr must be given with edge_dim={D}"):
        layer(x, edge_index)
    with pytest.raises(ValueError, match=rf"{owner}: edge_attr .*\b2\b"):
        layer(x, edge_index, edge_attr=torch.randn(3, D))
    with pytest.raises(ValueError, match=rf"{owner}: edge_attr must have {D} channels, got 7"):
        layer(x, edge_index, edge_attr=torch.randn(2, 7))
    with pytest.raises(ValueError, match=f"{owner}: edge_attr must be None"):
        LAYERS[name](None)(x, edge_index, edge_attr=torch.randn(2, D))
    with pytest.raises(ValueError, match=f"{owner}: edge_dim must be a positive int, got 0"):
        LAYERS[name](0)


def test_gin_with_edges_is_not_lazy() -> None:
    with pytest.raises(ValueError, match="GINConv: in_channels must be a positive int, got -1"):
        GINConv(-1, 4, edge_dim=3)
