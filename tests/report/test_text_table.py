import pytest

from fognn.report.text_table import number, text_table


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
