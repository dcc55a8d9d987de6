r"""The metrics of the tasks, as a reader wants to see them."""

from dataclasses import dataclass

__all__ = ["METRICS", "Metric"]


@dataclass(frozen=True)
class Metric:
    r"""How a metric is called and printed.

    Args:
        label (str): Its name.
        loss (str): The loss that goes with it, with its unit.
        percent (bool): Whether its unit is per cent.
        higher_is_better (bool): Whether more of it is better.
    """

    label: str
    loss: str = "cross-entropy loss (nats)"
    percent: bool = False
    higher_is_better: bool = True

    @property
    def digits(self) -> int:
        r"""Digits behind the point."""
        return 2 if self.percent else 4

    @property
    def axis(self) -> str:
        r"""The name with the unit, for an axis or a column."""
        return f"{self.label} (%)" if self.percent else self.label

    def number(self, value: float) -> str:
        r"""The value without its unit."""
        return f"{value:.{self.digits}f}"

    def text(self, value: float) -> str:
        r"""The value with its unit."""
        return f"{self.number(value)} %" if self.percent else self.number(value)

    def gap(self, difference: float) -> str:
        r"""A difference of two values, without its sign."""
        size = self.number(abs(difference))
        return f"{size} percentage points" if self.percent else size

    def advantage(self, one: float, other: float) -> float:
        r"""By how much :obj:`one` is better than :obj:`other`; below 0 if it is worse."""
        return one - other if self.higher_is_better else other - one


METRICS = {
    "balanced_accuracy": Metric("balanced accuracy", percent=True),
    "accuracy": Metric("accuracy", percent=True),
    "f1": Metric("F1"),
    "mae": Metric("MAE", loss="L1 loss", higher_is_better=False),
}
