import pytest

from fognn.report.metric import METRICS


@pytest.mark.parametrize(
    ("name", "axis", "text", "gap"),
    [
        ("balanced_accuracy", "balanced accuracy (%)", "12.35 %", "12.35 percentage points"),
        ("accuracy", "accuracy (%)", "12.35 %", "12.35 percentage points"),
        ("f1", "F1", "12.3457", "12.3457"),
        ("mae", "MAE", "12.3457", "12.3457"),
    ],
)
def test_words(name: str, axis: str, text: str, gap: str) -> None:
    metric = METRICS[name]
    assert metric.axis == axis
    assert metric.text(12.345678) == text
    assert metric.gap(-12.345678) == gap
    assert metric.text(12.345678).startswith(metric.number(12.345678))


@pytest.mark.parametrize("name", METRICS)
def test_advantage(name: str) -> None:
    # Of an error less is better, of all others more.
    sign = -1 if name == "mae" else 1
    assert METRICS[name].advantage(3.0, 1.0) == 2.0 * sign
    assert METRICS[name].advantage(1.0, 3.0) == -2.0 * sign


def test_units_of_losses() -> None:
    assert METRICS["mae"].loss == "L1 loss"
    assert {METRICS[name].loss for name in METRICS if name != "mae"} == {
        "cross-entropy loss (nats)"
    }
