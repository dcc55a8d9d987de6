import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.report.metric import METRICS
from fognn.report.site_numbers import cell, interval, plus_minus, signed, value

MAE, ACCURACY = METRICS["mae"], METRICS["accuracy"]


def test_numbers_have_at_least_the_digits_of_the_paper() -> None:
    assert value(0.307, MAE) == "0.3070"
    assert value(85.663, ACCURACY) == "85.663"


@pytest.mark.parametrize(
    ("number", "text"), [(0.1, "+0.1000"), (-0.1, "−0.1000"), (0.0, "0.0000"), (-1e-9, "0.0000")]
)
def test_a_difference_has_a_sign_unless_it_is_none(number: float, text: str) -> None:
    assert signed(number, MAE) == text


@given(st.floats(-1e6, 1e6))
def test_a_sign_does_not_change_the_number(number: float) -> None:
    text = signed(number, MAE).replace("−", "-")
    assert float(text) == pytest.approx(number, abs=0.00005001)


def test_what_is_not_there_has_a_dash_and_no_place_in_the_order() -> None:
    for missing in (cell(None, "x"), plus_minus(None, 1.0, MAE)):
        assert (missing.text, missing.order) == ("–", "")
    assert interval(None, MAE) == ""


def test_cells_are_sorted_by_all_digits() -> None:
    mean = plus_minus(0.30701234, 0.013, MAE)
    assert (mean.text, float(mean.order)) == ("0.3070 ± 0.0130", 0.30701234)
    assert plus_minus(0.3, None, MAE).text == "0.3000"
    assert interval((-0.1, 0.2), MAE) == "[−0.1000, +0.2000]"
