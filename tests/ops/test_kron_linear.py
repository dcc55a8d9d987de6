import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from fognn.ops import kron_linear


def tensors(nodes: int, h1: int = 3, h2: int = 2, out: int = 5, dtype=torch.float64):
    torch.manual_seed(0)
    shapes = ((h1, nodes), (h2, nodes), (out, h1 * h2), (out,))
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("nodes", [0, 1, 7, 4096, 9001])
def test_equals_torch_kron(nodes: int) -> None:
    h, s, weight, bias = tensors(nodes)
    out = kron_linear(h, s, weight, bias)
    rows = [weight @ torch.kron(h[:, n], s[:, n]) + bias for n in range(nodes)]
    expected = torch.stack(rows) if rows else torch.empty(0, 5, dtype=torch.float64)
    torch.testing.assert_close(out, expected)
    expected_grads = torch.autograd.grad(expected.sin().sum(), (h, s, weight, bias)) if rows else ()
    grads = torch.autograd.grad(out.sin().sum(), (h, s, weight, bias))
    for grad, wanted in zip(grads, expected_grads, strict=bool(rows)):
        torch.testing.assert_close(grad, wanted)


def test_gradients_are_those_of_finite_differences() -> None:
    inputs = tensors(6)
    assert gradcheck(kron_linear, inputs)
    assert gradgradcheck(kron_linear, inputs)


def test_autocast_takes_the_lower_precision() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = kron_linear(*tensors(6, dtype=torch.float32))
    assert out.dtype == torch.bfloat16
    out.sum().backward()
