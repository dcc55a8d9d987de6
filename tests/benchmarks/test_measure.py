import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "measure.py"
_spec = importlib.util.spec_from_file_location("benchmarks_measure", FILE)
assert _spec is not None
assert _spec.loader is not None
measure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(measure)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_a_power_law_is_found_again(exponent: float) -> None:
    x = [1e4, 3e4, 1e6, 1e8]
    fitted = measure.fitted_exponent(x, [0.37 * value**exponent for value in x])
    assert fitted == pytest.approx(exponent, abs=1e-12)


def test_the_fit_is_one_of_least_squares_on_logarithms() -> None:
    # By hand: logarithms (0, 0), (1, 3), (2, 3) to base ten lie best around a slope of 1.5.
    assert measure.fitted_exponent([1, 10, 100], [1, 1000, 1000]) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0], [1.0], "two different x"),
        ([2.0, 2.0], [1.0, 3.0], "two different x"),
        ([1.0, 2.0], [1.0], "two different x"),
        ([1.0, 2.0], [0.0, 1.0], "above 0"),
        ([-1.0, 2.0], [1.0, 1.0], "above 0"),
    ],
)
def test_what_has_no_exponent(x: list[float], y: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=f"fitted_exponent: x and y must be .*{message}"):
        measure.fitted_exponent(x, y)
