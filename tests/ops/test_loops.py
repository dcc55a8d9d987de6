"""The loops' own arithmetic; the operators that run them are tested against their equations."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from numba import njit

from fognn.ops import loops


@njit
def sigmoids(x, out):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        out[i] = loops._sigmoid(x[i])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sigmoid_is_exact_to_a_few_last_places(dtype: torch.dtype) -> None:
    x = torch.cat([torch.linspace(-86, 86, 100_003), torch.linspace(-1, 1, 1001)]).to(dtype)
    out = torch.empty_like(x)
    sigmoids(x.numpy(), out.numpy())
    expected = x.double().sigmoid()
    assert ((out - expected) / expected).abs().max() < 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_beyond_the_range_of_exp(dtype: type) -> None:
    x = np.array([-np.inf, -1e30, -200, 0, 200, 1e30, np.inf, np.nan], dtype)
    out = np.empty_like(x)
    sigmoids(x, out)
    np.testing.assert_allclose(out, [0, 0, 0, 0.5, 1, 1, 1, np.nan], atol=1e-37)


def test_a_loop_that_numba_has_not_seen_says_so_outside() -> None:
    with pytest.raises(NotImplementedError):
        loops._sigmoid(0.0)


def test_no_place_for_a_cache() -> None:
    """As in a container whose files are read-only."""
    code = """
from numba.core import caching
getattr(caching, 'CacheImpl', getattr(caching, '_CacheImpl', None))._locator_classes = []
import torch
from fognn.ops import add_ends, adjacency
adj = adjacency(torch.tensor([[0], [0]]), 1)
print(add_ends(adj, torch.ones(1, 2), torch.ones(1, 2)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[2.0, 2.0]]"
