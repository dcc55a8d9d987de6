import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from fognn.ops import dropout, kernels


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_drops_as_many_as_it_should_and_keeps_the_mean(p: float) -> None:
    """Over all, over each row and over each column: five standard deviations."""
    torch.manual_seed(0)
    out = dropout(torch.ones(400, 300), p)
    dropped = (out == 0).double()
    assert torch.allclose(out[out != 0], torch.tensor(1 / (1 - p)))
    for share, count in ((dropped.mean(), 120_000), (dropped.mean(0), 400), (dropped.mean(1), 300)):
        assert ((share - p).abs() < 5 * np.sqrt(p * (1 - p) / count)).all()


def test_neighbours_and_calls_are_independent() -> None:
    torch.manual_seed(0)
    first, second = (dropout(torch.ones(500, 200), 0.5) / 2 for _ in range(2))
    pairs = [(first, second), (first[1:], first[:-1]), (first[:, 1:], first[:, :-1])]
    for a, b in pairs:
        assert abs(float((a * b).mean()) - 0.25) < 5 * 0.44 / np.sqrt(a.numel())


def test_torchs_seed_decides() -> None:
    x = torch.randn(20, 30)
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(dropout(x, 0.5))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_threads_do_not_decide() -> None:
    x, threads, results = torch.randn(200, 30), torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            torch.manual_seed(0)
            results.append(dropout(x, 0.3))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*results)


def test_the_gradient_passes_where_the_value_passed() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 40, requires_grad=True)
    out = dropout(x, 0.5)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(grad, (out != 0) * 2.0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def same_numbers(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return dropout(x, 0.5)

    assert gradcheck(same_numbers, x)
    assert gradgradcheck(same_numbers, x)


def test_nothing_to_do() -> None:
    x = torch.randn(3, 4)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x
    assert dropout(torch.empty(0, 4), 0.5).shape == (0, 4)


def test_nan_stays_where_it_is_kept() -> None:
    out = dropout(torch.full((50, 20), torch.nan), 0.5)
    assert 0.3 < out.isnan().double().mean() < 0.7


def test_elsewhere_it_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_LOOPS", False)
    torch.manual_seed(0)
    expected = torch.nn.functional.dropout(torch.ones(5, 5), 0.5)
    torch.manual_seed(0)
    assert torch.equal(dropout(torch.ones(5, 5), 0.5), expected)


def test_compiles_as_one_operator() -> None:
    x = torch.randn(5, 3, requires_grad=True)
    torch.library.opcheck(torch.ops.fognn.dropout.default, (x, 0.5, 7))
    torch.compile(dropout, backend="eager", fullgraph=True)(x, 0.5)
