"""The kernels behind the sums over edges: which of torch's own runs where.

On the CPU a float32 sum is ``embedding_bag`` (fbgemm's loop over CSR rows: of torch's ways the
fastest from 64 channels on, and as fast as the next at 8: ``benchmarks/kernels.py``); a float64
sum, the maximum and the products are ``torch.sparse``'s on CSR. Elsewhere, and for dtypes that
these lack, the plain gather and scatter runs. :func:`has_csr_kernels` is the one place that
chooses.

Where torch has no kernel that spares a tensor of edges x channels, numba's loops
(:mod:`fognn.ops.loops`) run on the CPU; :func:`has_loops` is the one place that chooses. Without
numba, or with ``FOGNN_PLAIN=1`` in the environment, the same equations run in torch.
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

from fognn.ops.adjacency import rows_of
from fognn.utils.checks import outside

# Torch says it once a process, of matrices that no user of ours ever sees.
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)


def has_csr_kernels(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


_LOOPS = find_spec("numba") is not None and os.environ.get("FOGNN_PLAIN", "") != "1"
_ONE_AT_A_TIME = threading.Lock()  # numba's fallback for threads does not stand two callers


def has_loops(*tensors: Tensor) -> bool:
    """Whether numba's loops take these tensors. Autocast's mixture of dtypes is torch's."""
    first = tensors[0]
    if not (_LOOPS and has_csr_kernels(first)) or torch.is_autocast_enabled("cpu"):
        return False
    return all(t.dtype == first.dtype and t.device == first.device for t in tensors)


@functools.cache
def _loops() -> Any:
    """Loads numba, at the first loop. Where its threads are those of torch's OpenMP, starting them
    sets torch's number of threads to that of the cores."""
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
    """Cuts rows into parts of about as many edges, a few for each thread."""
    ends = ptr.detach().numpy()
    parts = np.searchsorted(ends, np.linspace(0, ends[-1], 4 * torch.get_num_threads() + 1))
    parts[0], parts[-1] = 0, len(ends) - 1
    return parts


def even_parts(count: int) -> np.ndarray:
    """Cuts ``count`` edges into parts, a few for each thread."""
    return np.linspace(0, count, 4 * torch.get_num_threads() + 1).astype(np.int64)


def chunk_of(channels: int) -> int:
    """How many edges' features stay in a core's cache between two passes: two megabytes."""
    return max(2**19 // max(channels, 1), 64)


def padded_width(channels: int) -> int:
    """The next multiple of 16: a loop that long has no remainder."""
    return -(-channels // 16) * 16


def padded(x: Tensor) -> Tensor:
    """``x`` with zeros up to :func:`padded_width` channels."""
    more = padded_width(x.size(-1)) - x.size(-1)
    return F.pad(x.detach(), (0, more)) if more else x


def bands_of(channels: int) -> int:
    """Bands of channels, one for each thread, none so narrow that it is no vector."""
    return max(min(torch.get_num_threads(), channels // 8), 1)


def check_sources(index: Tensor, num_sources: int) -> None:
    """Refuses an :class:`Adjacency` of somebody's own making that names a node that is not there:
    torch's CSR kernels, and ours, would follow it into foreign memory."""
    if outside(index, num_sources) is not None:
        raise IndexError(f"edge_index must name sources in 0..{num_sources - 1}")


def _csr(ptr: Tensor, index: Tensor, weight: Tensor | None, x: Tensor) -> Tensor:
    check_sources(index, x.size(0))
    if weight is None:
        weight = torch.ones(index.size(0), dtype=x.dtype)
    size = (ptr.size(0) - 1, x.size(0))
    return torch.sparse_csr_tensor(ptr, index, weight, size, check_invariants=False)


def sum_rows(x: Tensor, ptr: Tensor, index: Tensor, weight: Tensor | None) -> Tensor:
    """Sums ``weight[i] * x[index[i]]`` over each row of ``ptr``."""
    if x.dtype in (torch.float16, torch.bfloat16):  # a sum of many terms wants 32 bits
        weight = None if weight is None else weight.float()
        return sum_rows(x.float(), ptr, index, weight).to(x.dtype)
    if index.numel() == 0 or x.size(1) == 0:
        return x.new_zeros(ptr.size(0) - 1, x.size(1))
    if not has_csr_kernels(x):
        message = x.index_select(0, index)
        if weight is not None:
            message = message * weight.unsqueeze(1)
        out = x.new_zeros(ptr.size(0) - 1, x.size(1))
        return out.index_add_(0, rows_of(ptr, index.size(0)), message)
    if x.dtype == torch.float32:
        return F.embedding_bag(
            index, x, ptr, mode="sum", per_sample_weights=weight, include_last_offset=True
        )
    return torch.sparse.mm(_csr(ptr, index, weight, x), x, "sum")


def heads_of(x: Tensor, heads: int) -> list[Tensor]:
    """Cuts channels into heads."""
    return [part.contiguous() for part in x.view(x.size(0), heads, -1).unbind(1)]


def dot_edges(a: Tensor, b: Tensor, ptr: Tensor, index: Tensor, heads: int) -> Tensor:
    """The product of ``a`` at each edge's row with ``b`` at its index, a head at a time."""
    pairs = zip(heads_of(a, heads), heads_of(b, heads), strict=True)
    # Torch refuses a CSR matrix of more entries than places, which multi-edges can make.
    if has_csr_kernels(a) and 0 < index.size(0) <= a.size(0) * b.size(0):
        pattern = _csr(ptr, index, None, b)
        products = [torch.sparse.sampled_addmm(pattern, x, y.t(), beta=0.0) for x, y in pairs]
        return torch.stack([product.values() for product in products], dim=1)
    row = rows_of(ptr, index.size(0))
    return torch.stack(
        [(x.index_select(0, row) * y.index_select(0, index)).sum(1) for x, y in pairs], dim=1
    )


def max_rows(
    x: Tensor, ptr: Tensor, index: Tensor, with_source: bool
) -> tuple[Tensor, Tensor | None]:
    """The maximum of ``x[index[i]]`` over each row of ``ptr``, zero for an empty row, and if asked
    the source that it came from, ``len(x)`` for an empty row."""
    if index.numel() == 0:
        out = x.new_zeros(ptr.size(0) - 1, x.size(1))
        return out, torch.full_like(out, x.size(0), dtype=index.dtype)
    if not has_csr_kernels(x):
        return _max_plain(x, ptr, index)
    if not with_source:
        return torch.sparse.mm(_csr(ptr, index, None, x), x, "amax"), None
    if x.dtype == torch.float32 and x.size(0) <= _MAX_PACKED:
        return _max_packed(x, ptr, index)
    return _max_csr(x, ptr, index)


_MAX_PACKED = 1 << 21


def _max_packed(x: Tensor, ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """A float32 (32 bits, as an integer of the same order) and the number of its row (21 bits)
    are one exact float64, so the maximum of those tells where it came from. It takes half the time
    of torch's kernel with positions, and does not depend on the values as that one does."""

    def ordered(bits: Tensor) -> Tensor:  # its own inverse
        return bits ^ ((bits >> 31) & 0x7FFFFFFF)

    row = torch.arange(x.size(0), dtype=torch.float64).unsqueeze(1)
    code = ordered(x.view(torch.int32)).double().mul_(_MAX_PACKED).add_(row)
    best = torch.sparse.mm(_csr(ptr, index, None, code), code, "amax")
    high = (best / _MAX_PACKED).floor_()
    source = best.sub_(high, alpha=_MAX_PACKED).to(index.dtype)
    out = ordered(high.int()).view(torch.float32)
    empty = (ptr.diff() == 0).unsqueeze(1)
    return out.masked_fill_(empty, 0.0), source.masked_fill_(empty, x.size(0))


def _max_csr(x: Tensor, ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():  # torch records where a maximum came from only for a gradient
        out, edge = torch.ops.aten._sparse_mm_reduce_impl(
            _csr(ptr, index, None, x), x.detach().requires_grad_(), "amax"
        )
    return out.detach(), torch.cat([index, index.new_tensor([x.size(0)])])[edge]


def _max_plain(x: Tensor, ptr: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    row = rows_of(ptr, index.size(0)).long().unsqueeze(1).expand(-1, x.size(1))
    message = x.index_select(0, index)
    out = x.new_zeros(ptr.size(0) - 1, x.size(1))
    out = out.scatter_reduce(0, row, message, "amax", include_self=False)
    source = index.unsqueeze(1).expand_as(message)
    source = torch.where(message == out.gather(0, row), source, x.size(0))
    none = torch.full_like(out, x.size(0), dtype=index.dtype)
    return out, none.scatter_reduce(0, row, source, "amin")
