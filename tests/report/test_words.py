import pytest

from fognn.report.words import capital, joined, many


@pytest.mark.parametrize(
    ("words", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_joined(words: list[str], text: str) -> None:
    assert joined(words) == text


def test_capital() -> None:
    assert capital("on GCN") == "On GCN"
    assert capital("") == ""


def test_many() -> None:
    assert [many(n, "epoch") for n in (0, 1, 2, 1000)] == [
        "0 epochs", "1 epoch", "2 epochs", "1,000 epochs",
    ]  # fmt: skip
