import os
import subprocess
import sys
from unittest import mock

import pytest
import torch
from graph_strategies import Graph, graphs
from hypothesis import given
from hypothesis import strategies as st

from fognn.ops import adjacency, edge_softmax, kernels, spmm


@given(graphs(bipartite=True))
def test_the_fast_and_the_plain_path_agree(graph: Graph) -> None:
    adj = adjacency(graph.edge_index, graph.num_sources, graph.num_targets)
    weight = graph.randn(graph.num_edges, 2)
    for dtype in (torch.float32, torch.float64):
        results = []
        for path in ("cpu", "plain"):
            with mock.patch.object(kernels, "path", return_value=path):
                x = graph.randn(graph.num_sources, 4).to(dtype).requires_grad_()
                w = weight.to(dtype).requires_grad_()
                outs = [
                    spmm(adj, x),
                    spmm(adj, x, adj.sort(w)),
                    spmm(adj, x, reduce="max"),
                    edge_softmax(adj, adj.sort(w)),
                ]
                sum(out.pow(3).sum() for out in outs).backward()
                results.append([*outs, x.grad, w.grad])
        close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
        for fast, slow in zip(*results, strict=True):
            torch.testing.assert_close(fast, slow, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_max_knows_where_it_came_from(dtype: torch.dtype) -> None:
    # Zeros of both signs, infinities, the smallest and the largest numbers, and ties.
    tiny, huge = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    column = [0.0, -0.0, tiny, -tiny, huge, -huge, float("inf"), float("-inf"), 1.0, 1.0]
    x = torch.tensor(column, dtype=dtype).unsqueeze(1)
    for subset in ([0, 1], [2, 3], [4, 5], [5, 7], [6, 4], [8, 9], [1, 3], []):
        edge_index = torch.tensor([[s, 0] for s in subset], dtype=torch.long).reshape(-1, 2).t()
        leaf = x.clone().requires_grad_()
        out = spmm(adjacency(edge_index, len(column)), leaf, reduce="max")
        out[0].sum().backward()
        best = max((column[s] for s in subset), default=0.0)
        assert out[0, 0] == best
        assert leaf.grad.sum() == (1 if subset else 0)
        if subset:
            assert leaf.detach()[leaf.grad.argmax()] == best


def test_max_propagates_nan() -> None:
    x = torch.tensor([[1.0], [float("nan")], [2.0]])
    adj = adjacency(torch.tensor([[0, 1, 2], [0, 0, 1]]), 3)
    for leaf in (x, x.clone().requires_grad_()):
        out = spmm(adj, leaf, reduce="max")
        assert out[0].isnan()
        assert out[1] == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_32_bits(dtype: torch.dtype) -> None:
    count = 5000  # 1 + 1 + ... stops at 256 in bfloat16 and at 2048 in float16
    adj = adjacency(torch.stack([torch.arange(count), torch.zeros(count).long()]), count)
    out = spmm(adj, torch.ones(count, 1, dtype=dtype))
    assert out.dtype == dtype
    assert out[0, 0] == torch.tensor(5000.0).to(dtype)
    assert spmm(adj, torch.ones(count, 1, dtype=dtype), reduce="max")[0, 0] == 1


def test_an_index_that_slips_past_the_checks_is_no_segmentation_fault() -> None:
    adj = adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    wild = adj._replace(source=torch.tensor([0, 10**9]))
    for dtype in (torch.float32, torch.float64):
        for reduce in ("sum", "max"):
            with pytest.raises((IndexError, RuntimeError)):
                spmm(wild, torch.ones(2, 3, dtype=dtype), reduce=reduce)


def _in_a_new_process(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_the_first_loop_leaves_torchs_threads_alone() -> None:
    code = """
import torch
from fognn.ops import add_ends, adjacency
torch.set_num_threads(1)
adj = adjacency(torch.tensor([[0], [0]]), 1)
add_ends(adj, torch.ones(1, 2), torch.ones(1, 2))
print(torch.get_num_threads())
"""
    assert _in_a_new_process(code, NUMBA_NUM_THREADS="2") == "1"


def test_the_environment_chooses_the_plain_path() -> None:
    code = """
import sys, torch
from fognn.ops import add_ends, adjacency, kernels
adj = adjacency(torch.tensor([[0], [0]]), 1)
add_ends(adj, torch.ones(1, 2), torch.ones(1, 2))
print(kernels.has_loops(torch.ones(1)), "fognn.ops.loops" in sys.modules)
"""
    assert _in_a_new_process(code) == "True True"
    assert _in_a_new_process(code, FOGNN_PLAIN="1") == "False False"


def test_loops_take_what_they_can() -> None:
    single, double = torch.ones(1), torch.ones(1, dtype=torch.float64)
    assert kernels.has_loops(single, single)
    assert kernels.has_loops(double)
    assert not kernels.has_loops(single, double)
    assert not kernels.has_loops(single.half())
    assert not kernels.has_loops(single.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.has_loops(single)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_parts_cover_every_row_once(degrees: list[int]) -> None:
    ptr = torch.tensor([0, *degrees]).cumsum(0)
    parts = kernels.parts_of(ptr)
    assert parts[0] == 0
    assert parts[-1] == len(degrees)
    assert (parts[1:] >= parts[:-1]).all()
    even = kernels.even_parts(len(degrees))
    assert (even[0], even[-1]) == (0, len(degrees))


def test_padding() -> None:
    x = torch.randn(3, 17)
    out = kernels.padded(x)
    assert out.shape == (3, 32)
    assert torch.equal(out[:, :17], x)
    assert not out[:, 17:].any()
    assert kernels.padded(out) is out
