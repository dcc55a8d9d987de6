"""Loops over edges for the CPU, compiled by numba at their first call and kept in its cache.

One pass with the values of an edge in registers replaces several operations of torch that each
write a tensor of edges x channels. :mod:`fognn.ops.kernels` chooses where they run; elsewhere the
same equations run in torch. Each must make a step of a network of the paper at least 1.2 times
faster (``benchmarks/loops.py``).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, njit, prange, types
from numba import set_num_threads as set_num_threads
from numba.extending import intrinsic, overload

MOST_THREADS: int = config.NUMBA_NUM_THREADS


def _compiled(function: Callable[..., None]) -> Any:
    """Compiles a loop at its first call, and caches it on disk if a folder is writable."""
    # No "reassoc": it would undo the two-step reduction in _exp.
    options: dict[str, Any] = {"parallel": True, "nogil": True, "error_model": "numpy"}
    options["fastmath"] = {"contract", "nsz"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return njit(**options)(function)


@intrinsic
def _as_float(typing_context, bits):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@njit(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    """The exponential of a float32 to 2 ulp, without a call, so that LLVM makes vectors of it:
    x = n ln 2 + r, a polynomial of r (minimax, as in Cephes' expf), and n into the exponent."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    n = np.float32(math.floor(x * np.float32(1.4426950408889634) + np.float32(0.5)))
    r = x - n * np.float32(0.693359375)
    r = r + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * (r * r) + r + np.float32(1.0)
    return p * _as_float((np.int32(n) + np.int32(127)) << np.int32(23))


def _sigmoid(x):  # type: ignore[no-untyped-def]
    """The sigmoid, inside a loop only."""
    raise NotImplementedError


@overload(_sigmoid, inline="always")
def _(x):  # type: ignore[no-untyped-def]
    if x == types.float32:

        def single(x):  # type: ignore[no-untyped-def]
            value = np.float32(1.0) / (np.float32(1.0) + _exp(-x))
            return value if x == x else x  # the clamp in _exp removes NaN

        return single
    return lambda x: 1.0 / (1.0 + math.exp(-x))


# A loop whose length is not a multiple of a vector's ends with a remainder that is computed one by
# one, and takes as long as the rest. So features of nodes are padded to a multiple of 16 channels
# (``kernels.padded_width``); features of edges, which are large, are not.


@_compiled
def gate_rows(  # type: ignore[no-untyped-def]
    hat,
    of_target,
    of_source,
    ptr,
    source,
    bounds,
    eps,
    origin,
    out,
    average,
    inverse,
    first,
    second,
):
    """Adds the first half of both ends' channels to ``hat``, in place, and averages the second
    half of the sources' through ``sigmoid(hat)``; ``out`` is the average and the second half of
    the target's. ``inverse`` is one over the sums of the gates. For each part of the rows, the sums
    of ``hat - origin`` and of its square go into ``first`` and ``second``, for a norm."""
    channels, width = hat.shape[1], average.shape[1]
    small, one = hat.dtype.type(eps), hat.dtype.type(1)
    for part in prange(bounds.shape[0] - 1):
        raw = np.zeros(width, hat.dtype)
        above = np.empty(width, hat.dtype)
        gates = np.empty(width, hat.dtype)
        moment_1 = np.zeros(width, hat.dtype)
        moment_2 = np.zeros(width, hat.dtype)
        held = 0
        for row in range(bounds[part], bounds[part + 1]):
            above[:] = 0
            gates[:] = 0
            for edge in range(ptr[row], ptr[row + 1]):
                u = source[edge]
                for c in range(channels):
                    raw[c] = hat[edge, c]
                for c in range(width):
                    value = raw[c] + of_target[row, c] + of_source[u, c]
                    gate = _sigmoid(value)
                    above[c] += gate * of_source[u, width + c]
                    gates[c] += gate
                    offset = value - origin[c]
                    moment_1[c] += offset
                    moment_2[c] += offset * offset
                for c in range(channels):
                    hat[edge, c] = raw[c] + of_target[row, c] + of_source[u, c]
            for c in range(width):
                one_over = one / (gates[c] + small)
                inverse[row, c] = one_over
                average[row, c] = above[c] * one_over
            for c in range(channels):
                out[row, c] = of_target[row, width + c] + average[row, c]
            held += ptr[row + 1] - ptr[row]
            if held >= 64 or row == bounds[part + 1] - 1:  # long sums are accumulated in 64 bits
                for c in range(width):
                    first[part, c] += moment_1[c]
                    second[part, c] += moment_2[c]
                moment_1[:] = 0
                moment_2[:] = 0
                held = 0


@_compiled
def add_normed(hat, scale, shift, e, out):  # type: ignore[no-untyped-def]
    """``out = e + relu(hat * scale + shift)``; ``e`` may be one row for all, ``out`` may be
    ``hat``."""
    stride = 0 if e.shape[0] == 1 else 1
    for edge in prange(hat.shape[0]):
        for c in range(hat.shape[1]):
            value = hat[edge, c] * scale[c] + shift[c]
            if value <= 0:  # False for NaN, which stays
                value = hat.dtype.type(0)
            out[edge, c] = e[edge * stride, c] + value


@_compiled
def norm_moments(grad, hat, scale, shift, mean, bounds, first, second):  # type: ignore[no-untyped-def]
    """For each part of the edges, sums of the gradient that passes the ReLU, and of its product
    with ``hat - mean``."""
    channels = hat.shape[1]
    for part in prange(bounds.shape[0] - 1):
        moment_1 = np.empty(channels, hat.dtype)
        moment_2 = np.empty(channels, hat.dtype)
        for start in range(bounds[part], bounds[part + 1], 64):
            moment_1[:] = 0
            moment_2[:] = 0
            for edge in range(start, min(start + 64, bounds[part + 1])):
                for c in range(channels):
                    value = hat[edge, c]
                    passed = grad[edge, c]
                    if value * scale[c] + shift[c] <= 0:
                        passed = hat.dtype.type(0)
                    moment_1[c] += passed
                    moment_2[c] += passed * (value - mean[c])
            for c in range(channels):
                first[part, c] += moment_1[c]
                second[part, c] += moment_2[c]


@_compiled
def gate_backward(  # type: ignore[no-untyped-def]
    start, bands, hat, of_source, average, through, target, source,
    grad, scale, shift, back_0, back_1, d_hat, grad_target, grad_source,
):  # fmt: skip
    """The gradients of ``hat`` for ``len(d_hat)`` edges from ``start`` on, through the gates and,
    if ``grad`` has one row an edge, through norm and ReLU; they are added to the gradients of the
    two ends. ``through`` is the gradient of the gated sums. Each thread has its own band of
    channels, so that the order of the sums is always the same."""
    with_norm = grad.shape[0] == hat.shape[0]
    channels, width = hat.shape[1], average.shape[1]
    one, zero = hat.dtype.type(1), hat.dtype.type(0)
    for band in prange(bands):
        # Unsigned: LLVM makes vectors of loops whose index cannot be negative.
        low = np.uint64(band * (width // 8) // bands * 8)
        half = low + np.uint64(width)
        wide = np.uint64((band + 1) * (width // 8) // bands * 8) - low
        filled = max(min(np.uint64(channels), low + wide), low) - low
        raw, passing = np.zeros(wide, hat.dtype), np.zeros(wide, hat.dtype)
        of_hat, of_v = np.empty(wide, hat.dtype), np.empty(wide, hat.dtype)
        for i in range(d_hat.shape[0]):
            edge = start + i
            row, u = target[edge], source[edge]
            for c in range(filled):
                raw[c] = hat[edge, low + c]
            for c in range(wide):
                gate = _sigmoid(raw[c])
                slope = through[row, low + c]
                of_v[c] = gate * slope
                difference = of_source[u, half + c] - average[row, low + c]
                of_hat[c] = slope * difference * gate * (one - gate)
            if with_norm:
                for c in range(filled):
                    passing[c] = grad[edge, low + c]
                for c in range(wide):
                    passed = passing[c] * scale[low + c]
                    if raw[c] * scale[low + c] + shift[low + c] <= 0:
                        passed = zero
                    of_hat[c] += passed + back_0[low + c] + back_1[low + c] * raw[c]
            for c in range(wide):
                d_hat[i, low + c] = of_hat[c]
            for c in range(wide):
                grad_target[row, low + c] += of_hat[c]
            for c in range(wide):
                grad_source[u, low + c] += of_hat[c]
            for c in range(wide):
                grad_source[u, half + c] += of_v[c]


@_compiled
def add_ends(p, q, target, source, out):  # type: ignore[no-untyped-def]
    """``out = relu(p[source] + q[target])``."""
    for edge in prange(source.shape[0]):
        row, u = target[edge], source[edge]
        for c in range(p.shape[1]):
            value = p[u, c] + q[row, c]
            if value <= 0:  # False for NaN, which stays
                value = p.dtype.type(0)
            out[edge, c] = value


@_compiled
def add_ends_backward(bands, grad, out, target, source, grad_p, grad_q):  # type: ignore[no-untyped-def]
    """Adds the gradients that pass the ReLU to both ends, one thread a band of channels."""
    channels = grad.shape[1]
    for band in prange(bands):
        low = np.uint64(band * channels // bands)
        width = np.uint64((band + 1) * channels // bands) - low
        passed = np.empty(width, grad.dtype)
        for edge in range(source.shape[0]):
            row, u = target[edge], source[edge]
            for c in range(width):
                value = grad[edge, low + c]
                if out[edge, low + c] <= 0:
                    value = grad.dtype.type(0)
                passed[c] = value
            for c in range(width):
                grad_p[u, low + c] += passed[c]
            for c in range(width):
                grad_q[row, low + c] += passed[c]


@_compiled
def max_rows(x, ptr, source, out, place):  # type: ignore[no-untyped-def]
    """The maximum over the in-edges of each row, and the source of the first edge that has it. NaN
    is above all numbers. ``x`` is padded."""
    width, channels = x.shape[1], out.shape[1]
    for row in prange(out.shape[0]):
        if ptr[row] == ptr[row + 1]:
            out[row, :] = 0
            place[row, :] = x.shape[0]
            continue
        first = source[ptr[row]]
        best = np.empty(width, x.dtype)
        found = np.empty(width, np.int32)
        for c in range(width):
            best[c] = x[first, c]
            found[c] = first
        for edge in range(ptr[row] + 1, ptr[row + 1]):
            u = source[edge]
            number = np.int32(u)
            for c in range(width):
                value = x[u, c]
                above = not (value <= best[c] or best[c] != best[c])
                best[c] = value if above else best[c]
                found[c] = number if above else found[c]
        for c in range(channels):
            out[row, c] = best[c]
            place[row, c] = found[c]


@_compiled
def add_at_max(bands, grad, place, out):  # type: ignore[no-untyped-def]
    """Adds gradients to the rows that :func:`max_rows` found, one thread a band of channels."""
    channels = grad.shape[1]
    for band in prange(bands):
        low, high = band * channels // bands, (band + 1) * channels // bands
        for row in range(grad.shape[0]):
            for c in range(low, high):
                u = place[row, c]
                if u < out.shape[0]:
                    out[u, c] += grad[row, c]
