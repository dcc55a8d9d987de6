import math
from statistics import NormalDist

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.paper.student_t import t_interval, t_quantile

# The printed tables of Student's distribution, two-sided 95 % and 99 %.
PRINTED = {
    1: (12.706, 63.657), 2: (4.303, 9.925), 3: (3.182, 5.841), 4: (2.776, 4.604),
    5: (2.571, 4.032), 6: (2.447, 3.707), 7: (2.365, 3.499), 8: (2.306, 3.355),
    9: (2.262, 3.250), 10: (2.228, 3.169), 11: (2.201, 3.106), 12: (2.179, 3.055),
    15: (2.131, 2.947), 19: (2.093, 2.861), 20: (2.086, 2.845), 25: (2.060, 2.787),
    29: (2.045, 2.756), 30: (2.042, 2.750), 40: (2.021, 2.704), 60: (2.000, 2.660),
    120: (1.980, 2.617),
}  # fmt: skip
# Student's own data of 1908: hours of sleep that two drugs add, in ten patients.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


@pytest.mark.parametrize("freedom", PRINTED)
def test_printed_tables(freedom: int) -> None:
    found = tuple(round(t_quantile(freedom, level), 3) for level in (0.95, 0.99))
    assert found == PRINTED[freedom]


@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_torchs_density_between(freedom: int, level: float) -> None:
    end = t_quantile(freedom, level)
    x = torch.linspace(-end, end, 20001, dtype=torch.float64)
    density = torch.distributions.StudentT(torch.tensor(float(freedom))).log_prob(x).exp()
    assert float(torch.trapezoid(density, x)) == pytest.approx(level, abs=1e-5)


def test_closed_forms() -> None:
    # Cauchy's distribution, and that of two degrees of freedom.
    for level in (0.001, 0.5, 0.95, 0.999999):
        assert t_quantile(1, level) == pytest.approx(math.tan(math.pi * level / 2), rel=1e-9)
        wanted = level * math.sqrt(2 / (1 - level**2))
        assert t_quantile(2, level) == pytest.approx(wanted, rel=1e-9)
    assert t_quantile(10**5) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-4)


def test_students_interval() -> None:
    # As R prints it: t.test(extra ~ group, sleep, paired = TRUE).
    differences = [a - b for a, b in zip(FIRST, SECOND, strict=True)]
    assert t_interval(differences) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)


def test_too_few() -> None:
    assert t_interval([]) is None
    assert t_interval([1.0]) is None
    assert t_interval([1.0, 1.0]) == (1.0, 1.0)


@pytest.mark.parametrize("freedom", [0, -1, 1.5, True])
def test_bad_freedom(freedom: int) -> None:
    with pytest.raises(ValueError, match="t_quantile: freedom must be a positive int"):
        t_quantile(freedom)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, math.nan])
def test_bad_level(level: float) -> None:
    with pytest.raises(ValueError, match="t_quantile: level must lie between 0 and 1"):
        t_quantile(3, level)
