"""The kernels behind the sums over edges, and the choice between them.

A float32 sum on the CPU is ``embedding_bag`` (of torch's kernels the fastest from 64 channels on
and as fast as the next at 8, see ``benchmarks/kernels.py``). Other sums and the products of edges
are ``torch.sparse``'s on CSR (on CUDA, cuSPARSE's SpMM and SDDMM), and for other devices and dtypes
gather and scatter. The maximum gathers a few channels at a time.

Where torch has no kernel that avoids a tensor of edges x channels, numba's loops
(:mod:`fognn.ops.loops`) run on the CPU, see :func:`has_loops`. Without numba, or with
``FOGNN_PLAIN=1`` in the environment, the same equations run in torch.
"""

import functools
import importlib
import os
import threading
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.index import ptr2index

from fognn.utils.checks import outside


def path(x: Tensor) -> str:
    """The path that ``x`` takes: ``"cpu"``, ``"cuda"`` or ``"plain"``."""
    if x.dtype not in (torch.float32, torch.float64):
        return "plain"
    return x.device.type if x.device.type in ("cpu", "cuda") else "plain"


_LOOPS = find_spec("numba") is not None and os.environ.get("FOGNN_PLAIN", "") != "1"
# numba's own thread pool, its fallback without OpenMP, crashes with two callers at once.
_ONE_AT_A_TIME = threading.Lock()


def has_loops(*tensors: Tensor) -> bool:
    """Whether numba's loops run on these tensors: on the CPU, of one dtype, without autocast."""
    first = tensors[0]
    if not (_LOOPS and path(first) == "cpu") or torch.is_autocast_enabled("cpu"):
        return False
    return all(t.dtype == first.dtype and t.device == first.device for t in tensors)


@functools.cache
def _loops() -> Any:
    """Imports numba, at the first loop."""
    # If numba's threads are torch's OpenMP's, starting them sets torch's number of threads.
    threads = torch.get_num_threads()
    loops = importlib.import_module("fognn.ops.loops")
    loops.set_num_threads(1)
    torch.set_num_threads(threads)
    return loops


def loop(name: str, *args: Any) -> None:
    """Runs one of numba's loops with as many threads as torch has."""
    arrays = [arg.detach().numpy() if isinstance(arg, Tensor) else arg for arg in args]
    with _ONE_AT_A_TIME:
        loops = _loops()
        loops.set_num_threads(min(torch.get_num_threads(), loops.MOST_THREADS))
        getattr(loops, name)(*arrays)


def parts_of(ptr: Tensor) -> np.ndarray:
    """Bounds of parts of the rows with about equally many edges, four parts a thread."""
    ends = ptr.detach().numpy()
    parts = np.searchsorted(ends, np.linspace(0, ends[-1], 4 * torch.get_num_threads() + 1))
    parts[0], parts[-1] = 0, len(ends) - 1
    return parts


def even_parts(count: int) -> np.ndarray:
    """Bounds of equal parts of ``count`` rows, four parts a thread."""
    return np.linspace(0, count, 4 * torch.get_num_threads() + 1).astype(np.int64)


def chunk_of(channels: int) -> int:
    """The number of edges whose features stay in a core's cache between two passes (2 MB)."""
    return max(2**19 // max(channels, 1), 64)


def padded_width(channels: int) -> int:
    """The next multiple of 16: a loop of that length has no remainder after its vectors."""
    return -(-channels // 16) * 16


def padded(x: Tensor) -> Tensor:
    """``x`` with zeros up to :func:`padded_width` channels."""
    more = padded_width(x.size(-1)) - x.size(-1)
    return F.pad(x.detach(), (0, more)) if more else x


def bands_of(channels: int) -> int:
    """The number of bands of channels: one a thread, each at least 8 channels wide."""
    return max(min(torch.get_num_threads(), channels // 8), 1)


def check_sources(index: Tensor, num_sources: int) -> None:
    """Raises an :class:`IndexError` if an :class:`Adjacency` that was built by hand names a node
    that does not exist: CSR kernels and loops would read memory that is not theirs."""
    message = f"edge_index must name sources in 0..{num_sources - 1}"
    if index.is_cuda:  # checked on the device, so that nothing waits for it
        torch._assert_async(((index >= 0) & (index < num_sources)).all(), message)
    elif outside(index, num_sources) is not None:
        raise IndexError(message)


@functools.cache
def _warned() -> None:
    """Lets torch issue its warning about CSR, once a process, where nobody sees it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1))


def _csr(ptr: Tensor, index: Tensor, weight: Tensor | None, x: Tensor) -> Tensor:
    _warned()
    check_sources(index, x.size(0))
    if weight is None:
        weight = torch.ones(index.size(0), dtype=x.dtype, device=x.device)
    size = (ptr.size(0) - 1, x.size(0))
    return torch.sparse_csr_tensor(ptr, index, weight, size, check_invariants=False)


def sum_rows(x: Tensor, ptr: Tensor, index: Tensor, weight: Tensor | None) -> Tensor:
    """Sums ``weight[i] * x[index[i]]`` over each row of ``ptr``."""
    if x.dtype in (torch.float16, torch.bfloat16):  # a sum of many terms needs 32 bits
        weight = None if weight is None else weight.float()
        return sum_rows(x.float(), ptr, index, weight).to(x.dtype)
    if index.numel() == 0 or x.size(1) == 0:
        return x.new_zeros(ptr.size(0) - 1, x.size(1))
    chosen = path(x)
    if chosen == "plain":
        message = x.index_select(0, index)
        if weight is not None:
            message = message * weight.unsqueeze(1)
        out = x.new_zeros(ptr.size(0) - 1, x.size(1))
        return out.index_add_(0, ptr2index(ptr, index.size(0)), message)
    if chosen == "cuda":
        return _csr(ptr, index, weight, x) @ x
    if x.dtype == torch.float32:
        return F.embedding_bag(
            index, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True
        )
    return torch.sparse.mm(_csr(ptr, index, weight, x), x, "sum")


def heads_of(x: Tensor, heads: int) -> list[Tensor]:
    """The channels of each head."""
    return [part.contiguous() for part in x.view(x.size(0), heads, -1).unbind(1)]


def dot_edges(a: Tensor, b: Tensor, ptr: Tensor, index: Tensor, heads: int) -> Tensor:
    """The dot product of ``a`` at each edge's row with ``b`` at its index, for each head."""
    if a.dtype in (torch.float16, torch.bfloat16):  # as in sum_rows
        return dot_edges(a.float(), b.float(), ptr, index, heads).to(a.dtype)
    pairs = zip(heads_of(a, heads), heads_of(b, heads), strict=True)
    # Multi-edges can make more entries than a dense matrix has, which torch does not allow in CSR.
    if path(a) != "plain" and 0 < index.size(0) <= a.size(0) * b.size(0):
        pattern = _csr(ptr, index, None, b)
        products = [torch.sparse.sampled_addmm(pattern, x, y.t(), beta=0.0) for x, y in pairs]
        return torch.stack([product.values() for product in products], dim=1)
    row = ptr2index(ptr, index.size(0))
    return torch.stack(
        [(x.index_select(0, row) * y.index_select(0, index)).sum(1) for x, y in pairs], dim=1
    )


def max_rows(x: Tensor, ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The maximum of ``x[index[i]]`` over each row of ``ptr``, zero for an empty row, and the index
    that it came from (of equal ones the first), ``len(x)`` for an empty row."""
    if has_loops(x):
        check_sources(index, x.size(0))
        out = x.new_empty(ptr.size(0) - 1, x.size(1))
        place = torch.empty_like(out, dtype=index.dtype)
        loop("max_rows", padded(x), ptr, index, out, place)
        return out, place
    # A few channels at a time, so that no tensor of edges x channels is held.
    parts = [_max_plain(part, ptr, index) for part in x.split(_MAX_CHANNELS, dim=1)]
    outs, places = zip(*parts, strict=True)
    return torch.cat(outs, dim=1), torch.cat(places, dim=1)


_MAX_CHANNELS = 8


def _max_plain(x: Tensor, ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    row = ptr2index(ptr, index.size(0)).long().unsqueeze(1).expand(-1, x.size(1))
    message = x.index_select(0, index)
    out = x.new_zeros(ptr.size(0) - 1, x.size(1))
    out = out.scatter_reduce(0, row, message, "amax", include_self=False)
    edge = torch.arange(index.size(0), device=x.device).unsqueeze(1).expand_as(message)
    edge = torch.where(message == out.gather(0, row), edge, index.size(0))
    none = torch.full_like(out, index.size(0), dtype=torch.long)
    edge = none.scatter_reduce(0, row, edge, "amin")
    return out, torch.cat([index, index.new_tensor([x.size(0)])])[edge]


def add_at_max(grad: Tensor, place: Tensor, num_sources: int) -> Tensor:
    """Adds each entry of ``grad`` to the row of its channel that :func:`max_rows` found."""
    if has_loops(grad):
        out = grad.new_zeros(num_sources, grad.size(1))
        loop("add_at_max", bands_of(grad.size(1)), grad, place, out)
        return out
    # An additional row takes the gradients of nodes without in-edges.
    out = grad.new_zeros(num_sources + 1, grad.size(1))
    return out.scatter_add(0, place.long(), grad)[:-1]
