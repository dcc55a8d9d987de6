from itertools import product
from typing import Any

import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given, settings
from torch import Tensor
from torch.autograd import gradcheck
from torch_geometric.utils import scatter

from fognn.ops import Adjacency, Norm, adjacency, gated_edges, gated_sum, kernels, stacked

ALIKE_NORM = list(product([False, True], ["none", "batch", "running"]))


def inputs(graph: Graph, channels: int, alike: bool) -> list[Tensor]:
    width = 2 * kernels.padded_width(channels)
    shapes = [
        (graph.num_targets, width),
        (graph.num_sources, width),
        (1 if alike else graph.num_edges, channels),
        (channels, channels),
        (channels,),
    ]
    # Each its own: the strategy's generator gives the same numbers for the same shape.
    values = [graph.randn(*s).mul(i + 1).add(i / 3) for i, s in enumerate(shapes)]
    for value in values[:2]:
        value.view(len(value), 2, -1)[:, :, channels:] = 0
    return [value.requires_grad_() for value in values]


def norm_of(kind: str, graph: Graph, channels: int) -> Norm | None:
    if kind == "none":
        return None
    weight, bias = graph.randn(channels).requires_grad_(), graph.randn(channels).requires_grad_()
    if kind == "batch":
        return Norm(weight, bias, None, None, 1e-5)
    return Norm(weight, bias, graph.randn(channels), graph.randn(channels).square(), 1e-5)


def literal(
    adj: Adjacency, ends: tuple[Tensor, Tensor], e: Tensor, linear: tuple[Tensor, Tensor], norm: Any
) -> list[Tensor]:
    """The equations, with PyG's scatter and torch's norm."""
    channels, (target, source) = e.size(1), ends
    a, u = (half[:, :channels] for half in target.chunk(2, 1))
    b, v = (half[:, :channels] for half in source.chunk(2, 1))
    hat = a[adj.target] + b[adj.source] + torch.nn.functional.linear(e, *linear)
    sigma = hat.sigmoid()
    options = {"dim": 0, "dim_size": adj.num_targets}
    below = scatter(sigma, adj.target, **options) + 1e-6
    y = u + scatter(sigma * v[adj.source], adj.target, **options) / below
    if norm is None:
        return [y]
    mean = hat.mean(0) if norm.mean is None else norm.mean
    var = hat.var(0, unbiased=False) if norm.var is None else norm.var
    normed = (hat - mean) / (var + norm.eps).sqrt() * norm.weight + norm.bias
    return [y, e + normed.relu(), mean, var]


@pytest.mark.parametrize(("alike", "kind"), ALIKE_NORM)
@settings(max_examples=15)
@given(graph=graphs(bipartite=True, min_edges=2))
def test_loops_equal_the_equations(alike: bool, kind: str, graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    for channels in (1, 5, 35):
        target, source, e, *linear = tensors = inputs(graph, channels, alike)
        norm = norm_of(kind, graph, channels)
        leaves = tensors if norm is None else [*tensors, *norm[:2]]
        found = [t for t in gated_edges(adj, *tensors, norm) if t is not None]
        results = []
        for outputs in (found, literal(adj, (target, source), e, linear, norm)):
            loss = sum(t.sin().sum() for t in outputs[:2])
            results.append([*outputs, *torch.autograd.grad(loss, leaves)])
        for got, wanted in zip(*results, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("alike", "kind"), ALIKE_NORM)
def test_gradients_are_those_of_finite_differences(alike: bool, kind: str) -> None:
    torch.manual_seed(0)
    graph = Graph(torch.tensor([[0, 1, 2, 2, 0, 1], [1, 0, 0, 1, 3, 3]]), 3, 4, 0)
    adj = adjacency(graph.edge_index, 3, 4)
    tensors, norm = inputs(graph, 2, alike), norm_of(kind, graph, 2)

    def compute(*leaves: Tensor) -> tuple[Tensor, ...]:
        used = None if norm is None else norm._replace(weight=leaves[5], bias=leaves[6])
        y, e, *_ = gated_edges(adj, *leaves[:5], used)
        return (y,) if e is None else (y, e)

    leaves = tuple(tensors if norm is None else [*tensors, *norm[:2]])
    assert gradcheck(compute, leaves)


def test_single_precision_is_as_close_to_double_as_the_plain_path() -> None:
    """Gates from -80 to 80: where a sigmoid is tiny, its relative error counts in a quotient."""
    torch.manual_seed(0)
    adj = adjacency(torch.randint(0, 30, (2, 500)), 30)
    tensors = [torch.randn(30, 96), torch.randn(30, 96), torch.randn(500, 40)]
    tensors = [*tensors, torch.randn(40, 40), 20 * torch.randn(40)]
    norm = Norm(torch.ones(40), torch.zeros(40), None, None, 1e-5)
    exact = gated_edges(
        adj,
        *(t.double() for t in tensors),
        norm._replace(weight=norm.weight.double(), bias=norm.bias.double()),
    )
    found = gated_edges(adj, *tensors, norm)
    for got, wanted in zip(found, exact, strict=True):
        torch.testing.assert_close(got, wanted.float(), rtol=1e-5, atol=1e-5)


def test_nan_is_not_swallowed() -> None:
    adj = adjacency(torch.tensor([[0, 1, 0], [0, 0, 1]]), 2)
    tensors = [torch.randn(*s) for s in ((2, 32), (2, 32), (3, 3), (3, 3), (3,))]
    norm = Norm(torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), 1e-5)
    tensors[0][0, 1] = torch.nan
    y, e, *_ = gated_edges(adj, *tensors, norm)
    expected = torch.tensor([[False, True, False], [False, False, False]])
    assert torch.equal(y.isnan(), expected)
    assert torch.equal(e.isnan(), expected[[0, 0, 1]])


def test_many_chunks_and_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    adj = adjacency(torch.randint(0, 40, (2, 700)), 40)
    shapes = (40, 96), (40, 96), (700, 35), (35, 35), (35,)
    tensors = [torch.randn(*s, dtype=torch.float64) for s in shapes]
    norm = Norm(*(torch.randn(35, dtype=torch.float64) for _ in range(2)), None, None, 1e-5)
    leaves = [t.requires_grad_() for t in (*tensors, *norm[:2])]
    threads, results = torch.get_num_threads(), []
    try:
        for chunk, count in ((10_000, 1), (64, 2)):
            monkeypatch.setattr(kernels, "chunk_of", lambda _, chunk=chunk: chunk)
            torch.set_num_threads(count)
            y, e, *_ = gated_edges(adj, *tensors, norm)
            loss = y.sin().sum() + e.cos().sum()
            results.append([y, e, *torch.autograd.grad(loss, leaves)])
    finally:
        torch.set_num_threads(threads)
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


def test_saves_only_the_gates_and_what_is_there_anyway() -> None:
    adj = adjacency(torch.randint(0, 50, (2, 3000)), 50)
    tensors = [
        torch.randn(*s).requires_grad_() for s in ((50, 32),) * 2 + ((3000, 8), (8, 8), (8,))
    ]
    norm = Norm(torch.ones(8), torch.zeros(8), None, None, 1e-5)
    saved: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        saved[t.data_ptr()] = t.numel()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        gated_edges(adj, *tensors, norm)
    large = [
        n for pointer, n in saved.items() if n >= 3000 * 8 and pointer != tensors[2].data_ptr()
    ]
    assert len(large) == 1


def test_compiles_and_exports_as_one_operator() -> None:
    adj = adjacency(torch.randint(0, 6, (2, 20)), 6)
    tensors = [torch.randn(*s) for s in ((6, 32),) * 2 + ((20, 3), (3, 3), (3,))]
    norm = Norm(torch.ones(3), torch.zeros(3), None, None, 1e-5)
    arguments = (*tensors, *norm[:4], adj.ptr, adj.source, 1e-5, 1e-6, True)
    tensors[0].requires_grad_()
    torch.library.opcheck(torch.ops.fognn.gated_edges.default, arguments)
    compiled = torch.compile(gated_edges, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(adj, *tensors, norm), gated_edges(adj, *tensors, norm))


def test_stacked_linears() -> None:
    torch.manual_seed(0)
    for channels in (3, 16):
        linears = [torch.nn.Linear(5, channels) for _ in range(2)]
        x, width = torch.randn(4, 5), kernels.padded_width(channels)
        out = torch.nn.functional.linear(x, *stacked(*((m.weight, m.bias) for m in linears)))
        assert out.shape == (4, 2 * width)
        for half, linear in zip(out.chunk(2, dim=1), linears, strict=True):
            torch.testing.assert_close(half[:, :channels], linear(x))
            assert not half[:, channels:].any()


def test_a_source_that_is_not_there_is_an_error() -> None:
    wrong = Adjacency(torch.tensor([0, 1]), torch.tensor([7]))
    tensors = [torch.ones(*s) for s in ((1, 32), (3, 32), (1, 2), (2, 2), (2,))]
    with pytest.raises(IndexError, match=r"must name sources in 0\.\.2"):
        gated_edges(wrong, *tensors, None)


@settings(max_examples=30)
@given(graphs(bipartite=True))
def test_the_gated_sum_equals_the_equation(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    x = graph.randn(graph.num_sources, 3)
    gate = graph.randn(graph.num_edges, 3)
    expected = torch.zeros(graph.num_targets, 3, dtype=torch.float64)
    for v in range(graph.num_targets):
        edges = [i for i, target in enumerate(graph.edge_index[1]) if target == v]
        above = sum(gate[i].sigmoid() * x[graph.edge_index[0, i]] for i in edges)
        below = sum(gate[i].sigmoid() for i in edges)
        if edges:
            expected[v] = above / (below + 1e-6)
    torch.testing.assert_close(gated_sum(adj, adj.sort(gate), x), expected)
