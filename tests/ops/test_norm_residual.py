import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import BatchNorm1d

from fognn.ops import Norm, kernels, norm_residual


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["fognn.ops.norm_residual"], "SMALLEST", 1)


def random(rows: int, channels: int, seed: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(rows, channels), (rows, channels), (channels,), (channels,)]
    values = [torch.randn(*s, dtype=torch.float64, generator=generator) for s in shapes]
    return [value.to(dtype).requires_grad_() for value in values]


@pytest.mark.parametrize("batch_statistics", [True, False])
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(2, 200), st.integers(1, 40), st.integers(0, 2**32))
def test_equals_torchs_norm(batch_statistics: bool, rows: int, channels: int, seed: int) -> None:
    q, x, weight, bias = random(rows, channels, seed, torch.float64)
    theirs = BatchNorm1d(channels, momentum=1.0, dtype=torch.float64)
    theirs.weight.data, theirs.bias.data = weight.detach().clone(), bias.detach().clone()
    theirs.running_mean.fill_(0.3)
    theirs.running_var.fill_(1.7)
    theirs.train(batch_statistics)
    statistics = (theirs.running_mean.clone(), theirs.running_var.clone())
    statistics = (None, None) if batch_statistics else statistics
    found = norm_residual(q, x, Norm(weight, bias, *statistics, theirs.eps))
    expected = x + theirs(q).relu()
    torch.testing.assert_close(found.out, expected)
    # With this momentum the running statistics are those of the batch, the variance unbiased.
    unbiased = rows / (rows - 1) if batch_statistics else 1.0
    torch.testing.assert_close(found.mean, theirs.running_mean)
    torch.testing.assert_close(found.var * unbiased, theirs.running_var)
    direction = torch.randn_like(expected)
    grads = torch.autograd.grad(found.out, [q, x, weight, bias], direction)
    wanted = torch.autograd.grad(expected, [q, x, theirs.weight, theirs.bias], direction)
    torch.testing.assert_close(grads, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("batch_statistics", [True, False])
def test_gradients_are_those_of_finite_differences(batch_statistics: bool) -> None:
    leaves = random(6, 3, 0, torch.float64)
    statistics = (None, None) if batch_statistics else (torch.zeros(3), torch.ones(3))
    statistics = tuple(s if s is None else s.double() for s in statistics)

    def compute(q: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return norm_residual(q, x, Norm(weight, bias, *statistics, 1e-5)).out

    assert gradcheck(compute, leaves)
    assert gradgradcheck(compute, leaves)


def test_the_plain_path_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    q, x, weight, bias = random(50, 19, 0, torch.float32)
    found = norm_residual(q, x, Norm(weight, bias, None, None, 1e-5))
    monkeypatch.setattr(kernels, "_LOOPS", False)
    torch.testing.assert_close(found, norm_residual(q, x, Norm(weight, bias, None, None, 1e-5)))


def test_a_channel_far_from_zero_keeps_its_variance() -> None:
    """A mean of 10,000 and a spread of 1 in single precision."""
    torch.manual_seed(0)
    q = torch.randn(5000, 2) + 10_000
    norm = Norm(torch.ones(2), torch.zeros(2), None, None, 1e-5)
    found = norm_residual(q, torch.zeros_like(q), norm)
    torch.testing.assert_close(
        found.var, q.double().var(0, correction=0).float(), rtol=1e-3, atol=0
    )


def test_nan_is_not_swallowed() -> None:
    q = torch.tensor([[torch.nan, 1.0], [1.0, 2.0]])
    norm = Norm(torch.ones(2), torch.zeros(2), torch.zeros(2), torch.ones(2), 1e-5)
    found = norm_residual(q, torch.zeros(2, 2), norm)
    assert found.out.isnan().tolist() == [[True, False], [False, False]]


def test_compiles_as_one_operator() -> None:
    q, x, weight, bias = random(5, 3, 0, torch.float32)
    arguments = (q, x, weight, bias, None, None, 1e-5)
    torch.library.opcheck(torch.ops.fognn.norm_residual.default, arguments)
    norm = Norm(weight, bias, None, None, 1e-5)
    compiled = torch.compile(norm_residual, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, x, norm), norm_residual(q, x, norm))


def test_what_is_small_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    q, x, weight, bias = random(5, 3, 0, torch.float32)
    norm = Norm(weight, bias, None, None, 1e-5)
    ran: list[str] = []
    monkeypatch.setattr(kernels, "loop", lambda name, *args: ran.append(name))
    monkeypatch.setattr(sys.modules["fognn.ops.norm_residual"], "SMALLEST", 16)
    norm_residual(q, x, norm)
    assert not ran
    monkeypatch.setattr(sys.modules["fognn.ops.norm_residual"], "SMALLEST", 15)
    norm_residual(q, x, norm)
    assert ran == ["moments", "add_normed"]
