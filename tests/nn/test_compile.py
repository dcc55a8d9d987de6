"""FOG and every host beside it trace without a graph break, and export."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.export import Dim, export
from torch_geometric import EdgeIndex

from fognn.nn import (
    FOG,
    FOGControl,
    GATConv,
    GatedGCNConv,
    GCNConv,
    GINConv,
    SAGEConv,
    WithFOG,
)
from fognn.nn.fog_controls import FOG_KINDS
from fognn.ops import adjacency

C = 8
LAYERS = {
    "FOG": lambda: FOG(C, 5, 3, 2),
    **{
        f"FOG({kind})": partial(FOGControl, C, 5, 3, 3, kind=kind)
        for kind in FOG_KINDS
        if kind != "kron"
    },
    "FOG(layer_norm)": lambda: FOG(C, 5, 3, 2, norm="layer_norm", act="gelu"),
    "GatedGCN+FOG(edge_dim)": lambda: WithFOG(GatedGCNConv(C, 6), FOG(C, 5, 3, 2, edge_dim=C)),
    "GCN+FOG": lambda: WithFOG(GCNConv(C, 6), FOG(C, 5, 3, 2)),
    "GCN(sym)+FOG": lambda: WithFOG(GCNConv(C, 6, "sym"), FOG(C, 5, 3, 2)),
    "GAT+FOG": lambda: WithFOG(GATConv(C, 3, 2), FOG(C, 5, 3, 2)),
    "GIN+FOG": lambda: WithFOG(GINConv(C, 6), FOG(C, 5, 3, 2)),
    "GraphSAGE+FOG": lambda: WithFOG(SAGEConv(C, 6), FOG(C, 5, 3, 2)),
    "GraphSAGE(mean)+FOG": lambda: WithFOG(SAGEConv(C, 6, "mean"), FOG(C, 5, 3, 2)),
    "GatedGCN+FOG": lambda: WithFOG(GatedGCNConv(C, 6), FOG(C, 5, 3, 2)),
}


def inputs(name: str, nodes: int = 20, edges: int = 60) -> tuple[Tensor, ...]:
    torch.manual_seed(nodes)
    x, edge_index = torch.randn(nodes, C), torch.randint(0, nodes, (2, edges))
    return (x, edge_index, torch.randn(edges, C)) if "Gated" in name else (x, edge_index)


def first(out) -> Tensor:
    return out if isinstance(out, Tensor) else out[0]


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("name", LAYERS)
def test_compile_without_a_graph_break(name: str) -> None:
    # aot_eager traces forwards and backwards as inductor does, without its C++ compiler.
    layer, args = LAYERS[name](), inputs(name)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    leaves, results = list(layer.parameters()), []
    for module in (layer, compiled):
        out = first(module(*args))
        loss = out.sin().sum()
        results.append([out, *torch.autograd.grad(loss, leaves, materialize_grads=True)])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_compile_with_inductor(name: str) -> None:
    layer, args = LAYERS[name](), inputs(name)
    out = first(torch.compile(layer, fullgraph=True)(*args))
    out.sum().backward()
    torch.testing.assert_close(out, first(layer(*args)), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_ahead_of_time(tmp_path: Path) -> None:
    layer = LAYERS["GAT+FOG"]().eval()
    shapes = (({0: Dim("nodes", min=2)}, {1: Dim("edges", min=2)}),)
    with torch.no_grad():
        program = export(layer, inputs("GAT"), dynamic_shapes=shapes)
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / "layer.pt2")
        )
        loaded, args = torch._inductor.aoti_load_package(path), inputs("GAT", 33, 100)
        torch.testing.assert_close(loaded(*args), layer(*args))


def test_compile_with_other_forms_of_edge_index() -> None:
    layer = LAYERS["GCN+FOG"]()
    x, edge_index = inputs("GCN")
    expected = layer(x, edge_index)
    edges = EdgeIndex(edge_index, sparse_size=(20, 20)).sort_by("col")[0]
    forms = {
        "filled": edges.clone().fill_cache_(),
        "sorted": edges,
        "unsorted": EdgeIndex(edge_index, sparse_size=(20, 20)),
        "by source": EdgeIndex(edge_index, sparse_size=(20, 20)).sort_by("row")[0],
        "adjacency": adjacency(edge_index, 20),
    }
    for name, form in forms.items():
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x, form), expected, msg=name)


def test_a_wild_index_under_compile_is_an_error() -> None:
    layer = torch.compile(FOG(C, 5, 3, 2), fullgraph=True, backend="aot_eager")
    with pytest.raises((RuntimeError, IndexError)):
        layer(torch.randn(20, C), torch.tensor([[0, 10**6], [1, 2]]))


@pytest.mark.parametrize("name", LAYERS)
def test_export_for_any_graph(name: str) -> None:
    layer = LAYERS[name]().eval()
    nodes, edges = Dim("nodes", min=2), Dim("edges", min=2)
    args = inputs(name)
    shapes = ({0: nodes}, {1: edges}, {0: edges})[: len(args)]
    if isinstance(layer, WithFOG):  # its forward takes what its conv takes, as *args
        shapes = (shapes,)
    with torch.no_grad():
        program = export(layer, args, dynamic_shapes=shapes)
        for size in ((20, 60), (33, 100)):
            args = inputs(name, *size)
            torch.testing.assert_close(first(program.module()(*args)), first(layer(*args)))
