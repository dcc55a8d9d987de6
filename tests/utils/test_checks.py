import pytest
import torch

from fognn.utils import checks


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_positive_int_refuses(value) -> None:
    with pytest.raises(ValueError, match=r"FOG: h2 must be a positive int, got"):
        checks.positive_int("FOG", "h2", value)


def test_int_in_range() -> None:
    checks.int_in_range("L", "rank", 1, 0, 2)
    checks.int_in_range("L", "seed", 2**64 - 1, 0)
    with pytest.raises(
        ValueError, match="L: rank must be an int of at least 0 and less than 2, got 2"
    ):
        checks.int_in_range("L", "rank", 2, 0, 2)
    for bad in (-1, 2**64, True, 1.0, "1"):
        with pytest.raises(ValueError, match=f"L: seed must be an int of at least 0, got {bad!r}"):
            checks.int_in_range("L", "seed", bad, 0)


def test_one_of() -> None:
    checks.one_of("L", "norm", "a", ("a", "b"))
    with pytest.raises(ValueError, match=r"L: norm must be one of 'a', 'b', got 'c'"):
        checks.one_of("L", "norm", "c", ("a", "b"))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(3), r"x must be a \[num_nodes, channels\] tensor, got \[3\]"),
        ([1.0], r"tensor, got list"),
        (torch.zeros(3, 4, dtype=torch.long), r"must be floating point, got torch.int64"),
        (torch.zeros(3, 4).double(), r"must be torch.float32 like the layer's weights"),
        (torch.zeros(3, 5), r"must have 4 channels, got 5"),
    ],
)
def test_features_refuses(x, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checks.features("L", "x", x, 4, torch.float32)


def test_features_admits_what_autocast_mixes() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        checks.features("L", "x", torch.zeros(3, 4).bfloat16(), 4, torch.float32)


def test_per_edge() -> None:
    checks.per_edge("L", "w", torch.zeros(3, 2), 3)
    with pytest.raises(ValueError, match=r"w must have one entry for each of 4 edges"):
        checks.per_edge("L", "w", torch.zeros(3), 4)
    with pytest.raises(ValueError, match=r"got shape \[\]"):
        checks.per_edge("L", "w", torch.tensor(1.0), 1)


def test_outside() -> None:
    assert checks.outside(torch.tensor([0, 2, 1]), 3) is None
    assert checks.outside(torch.tensor([0, 3, 1]), 3) == 3
    assert checks.outside(torch.tensor([9, -2, 1]), 3) == -2
    assert checks.outside(torch.empty(0, dtype=torch.long), 0) is None
