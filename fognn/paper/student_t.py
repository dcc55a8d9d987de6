r"""How wide an interval of a few measurements must be."""

import math
import statistics

from fognn.utils import checks

__all__ = ["t_interval", "t_quantile"]


def t_quantile(freedom: int, level: float = 0.95) -> float:
    r"""The :math:`t` with :math:`P(|T| \leq t) =` :obj:`level`, of Student's distribution.

    For whole degrees of freedom the probability is a finite sum of powers of a cosine
    (`Abramowitz and Stegun <https://personal.math.ubc.ca/~cbm/aands/>`_, 26.7.3 and 26.7.4), so
    no library is needed.

    Args:
        freedom: Degrees of freedom.
        level: The probability within.
    """
    checks.positive_int("t_quantile", "freedom", freedom)
    if not 0 < level < 1:
        raise ValueError(f"t_quantile: level must lie between 0 and 1, got {level!r}")
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    while low < (angle := (low + high) / 2) < high:
        if _within(angle, freedom) < level:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(angle)


def _within(angle: float, freedom: int) -> float:
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    terms = []
    for k in range(2 + odd, freedom + 1, 2):
        terms.append(term)
        term *= cosine * cosine * (k - 1) / k
    inner = sine * math.fsum(terms)
    return (angle + inner) * 2 / math.pi if odd else inner


def t_interval(values: list[float], level: float = 0.95) -> tuple[float, float] | None:
    r"""The interval of the mean of independent values; :obj:`None` of fewer than two, which say
    nothing of how far they scatter."""
    count = len(values)
    if count < 2:
        return None
    mean = statistics.fmean(values)
    half = t_quantile(count - 1, level) * statistics.stdev(values) / math.sqrt(count)
    return mean - half, mean + half
