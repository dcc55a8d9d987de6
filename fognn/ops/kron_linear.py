r"""A Linear of the Kronecker product of two vectors per node.

.. math::
    \mathbf{p}_n = \mathbf{W} (\mathbf{h}_n \otimes \mathbf{s}_n) + \mathbf{b}

The product is never stored for all nodes: on the CPU it is computed for a few thousand nodes at a
time, which fit into the cache, and again in the backward. Nodes are the last dimension, so that
each row of the product is a product of two rows.
"""

import torch
from torch import Tensor


def kron_linear(h: Tensor, s: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    r"""Returns ``[num_nodes, out_channels]``.

    Args:
        h (torch.Tensor): The left factor, ``[h1, num_nodes]``.
        s (torch.Tensor): The right factor, ``[h2, num_nodes]``.
        weight (torch.Tensor): The weight, ``[out_channels, h1 * h2]``, over
            ``[h[0] * s, h[1] * s, ...]``.
        bias (torch.Tensor): The bias, ``[out_channels]``.
    """
    if torch.is_autocast_enabled(h.device.type):  # as for a Linear
        dtype = torch.get_autocast_dtype(h.device.type)
        h, s, weight, bias = (t.to(dtype) for t in (h, s, weight, bias))
    return _kron_linear(h.contiguous(), s.contiguous(), weight, bias)


def _parts(h: Tensor) -> list[slice]:
    size = 4096 if h.device.type == "cpu" else max(h.size(1), 1)
    return [slice(start, start + size) for start in range(0, h.size(1), size)]


def _kron(h: Tensor, s: Tensor) -> Tensor:
    return (h.unsqueeze(1) * s.unsqueeze(0)).flatten(0, 1)


@torch.library.custom_op("fognn::kron_linear", mutates_args=())
def _kron_linear(h: Tensor, s: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    out = h.new_empty(h.size(1), weight.size(0))
    for part in _parts(h):
        torch.addmm(bias, _kron(h[:, part], s[:, part]).t(), weight.t(), out=out[part])
    return out


@_kron_linear.register_fake
def _(h, s, weight, bias):  # type: ignore[no-untyped-def]
    return h.new_empty(h.size(1), weight.size(0))


@torch.library.custom_op("fognn::kron_linear_backward", mutates_args=())
def _kron_linear_backward(
    grad: Tensor, h: Tensor, s: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    grad_h, grad_s = torch.empty_like(h), torch.empty_like(s)
    grad_weight = torch.zeros_like(weight)
    for part in _parts(h):
        h_part, s_part = h[:, part], s[:, part]
        grad_kron = (weight.t() @ grad[part].t()).view(h.size(0), s.size(0), -1)
        torch.sum(grad_kron * s_part.unsqueeze(0), 1, out=grad_h[:, part])
        torch.sum(grad_kron * h_part.unsqueeze(1), 0, out=grad_s[:, part])
        grad_weight.addmm_(grad[part].t(), _kron(h_part, s_part).t())
    return grad_h, grad_s, grad_weight, grad.sum(0)


@_kron_linear_backward.register_fake
def _(grad, h, s, weight):  # type: ignore[no-untyped-def]
    tensors = (h, s, weight)
    return (*(torch.empty_like(t) for t in tensors), grad.new_empty(grad.size(1)))


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs[:3])


def _backward(ctx, grad):  # type: ignore[no-untyped-def]
    h, s, weight = ctx.saved_tensors
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        # A second derivative is needed: the same in differentiable operations.
        grad_kron = (weight.t() @ grad.t()).view(h.size(0), s.size(0), -1)
        grad_h = (grad_kron * s.unsqueeze(0)).sum(1)
        grad_s = (grad_kron * h.unsqueeze(1)).sum(0)
        return grad_h, grad_s, grad.t() @ _kron(h, s).t(), grad.sum(0)
    return _kron_linear_backward(grad, h, s, weight)


_kron_linear.register_autograd(_backward, setup_context=_setup)
