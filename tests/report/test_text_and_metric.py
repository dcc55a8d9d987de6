"""Words, numbers, plain tables and metrics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.report.metric import METRICS
from fognn.report.text import capital, joined, number, percents, pluralize, shortened, text_table

# --- words ---


@pytest.mark.parametrize(
    ("words", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_joined(words: list[str], text: str) -> None:
    assert joined(words) == text


def test_percents() -> None:
    assert percents([0.2, 0.02, 0.2]) == "2 % and 20 %"
    assert percents([1e-5, 0.125]) == "0.001 % and 12.5 %"


def test_capital() -> None:
    assert capital("on GCN") == "On GCN"
    assert capital("") == ""


def test_shortened_in_the_middle() -> None:
    assert [shortened("abcdefgh", most) for most in (8, 7, 4, 1)] == [
        "abcdefgh", "abc…fgh", "ab…h", "…",
    ]  # fmt: skip


def test_many() -> None:
    assert [pluralize(n, "epoch") for n in (0, 1, 2, 1000)] == [
        "0 epochs", "1 epoch", "2 epochs", "1,000 epochs",
    ]  # fmt: skip


# --- text table ---


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(12000, 4, "12,000"), (0.01526, 4, "0.0153"), (6098.92, 1, "6,098.9"), (-2.0, 2, "-2.00")],
)
def test_number(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_text_table() -> None:
    got = text_table(["name", "n"], [["a", "1,000"], ["long name", "5"]], right=[1])
    assert got.split("\n") == [
        "name           n",
        "---------  -----",
        "a          1,000",
        "long name      5",
    ]


def test_no_blanks_at_the_end() -> None:
    assert text_table(["a", "b"], [["x", ""]]).split("\n") == ["a  b", "-  -", "x"]


# --- metric ---


@pytest.mark.parametrize(
    ("name", "axis", "text", "direction"),
    [
        ("balanced_accuracy", "balanced accuracy (%)", "12.346", "higher is better"),
        ("accuracy", "accuracy (%)", "12.346", "higher is better"),
        ("f1", "F1", "12.3457", "higher is better"),
        ("mae", "MAE", "12.3457", "lower is better"),
    ],
)
def test_names_and_numbers(name: str, axis: str, text: str, direction: str) -> None:
    metric = METRICS[name]
    assert (metric.axis, metric.number(12.345678), metric.direction) == (axis, text, direction)


@pytest.mark.parametrize(
    ("number", "text"), [(0.1, "+0.1000"), (-0.1, "−0.1000"), (0.0, "0.0000"), (-1e-9, "0.0000")]
)
def test_a_difference_has_a_sign_unless_it_is_none(number: float, text: str) -> None:
    assert METRICS["mae"].signed(number) == text


@given(st.floats(-1e6, 1e6))
def test_a_sign_does_not_change_the_number(number: float) -> None:
    text = METRICS["mae"].signed(number).replace("−", "-")
    assert float(text) == pytest.approx(number, abs=0.00005001)


def test_interval() -> None:
    assert METRICS["mae"].interval((-0.1, 0.2)) == "[−0.1000, +0.2000]"
    assert METRICS["mae"].interval(None) == ""


@pytest.mark.parametrize("name", METRICS)
def test_advantage(name: str) -> None:
    # Of an error less is better, of all others more.
    sign = -1 if name in ("mae", "rmse") else 1
    assert METRICS[name].advantage(3.0, 1.0) == 2.0 * sign
    assert METRICS[name].advantage(1.0, 3.0) == -2.0 * sign


def test_units_of_losses() -> None:
    assert METRICS["mae"].loss == "L1 loss"
    assert {METRICS[name].loss for name in METRICS if name not in ("mae", "rmse")} == {
        "cross-entropy loss (nats)"
    }
