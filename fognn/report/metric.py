r"""The metrics of the tasks: their names, units and number formats in all reports."""

from dataclasses import dataclass

from fognn.experiments.protocols import config_of
from fognn.experiments.table_line import TableLine

__all__ = ["METRICS", "Metric", "metric_of"]


@dataclass(frozen=True)
class Metric:
    r"""The description of a metric.

    Args:
        label (str): Its name.
        loss (str, optional): The loss that is minimised with it, with its unit.
            (default: :obj:`"cross-entropy loss (nats)"`)
        percent (bool, optional): Whether its unit is per cent. (default: :obj:`False`)
        higher_is_better (bool, optional): Whether higher values are better.
            (default: :obj:`True`)
    """

    label: str
    loss: str = "cross-entropy loss (nats)"
    percent: bool = False
    higher_is_better: bool = True

    @property
    def axis(self) -> str:
        r"""The name with the unit, for an axis or a column."""
        return f"{self.label} (%)" if self.percent else self.label

    @property
    def direction(self) -> str:
        r"""``"higher is better"`` or ``"lower is better"``."""
        return "higher is better" if self.higher_is_better else "lower is better"

    def number(self, value: float) -> str:
        r"""The value without its unit, with at least as many digits as the paper prints."""
        return f"{value:.{3 if self.percent else 4}f}"

    def signed(self, difference: float) -> str:
        r"""A difference of two values with its sign; none if it rounds to 0."""
        text = self.number(abs(difference))
        if float(text) == 0:
            return text
        return f"{'−' if difference < 0 else '+'}{text}"

    def interval(self, ends: tuple[float, float] | None) -> str:
        r"""``[−0.1000, +0.2000]``, or an empty string for :obj:`None`."""
        return "" if ends is None else f"[{', '.join(map(self.signed, ends))}]"

    def advantage(self, one: float, other: float) -> float:
        r"""By how much :obj:`one` is better than :obj:`other`; negative if it is worse."""
        return one - other if self.higher_is_better else other - one


METRICS = {
    "balanced_accuracy": Metric("balanced accuracy", percent=True),
    "accuracy": Metric("accuracy", percent=True),
    "f1": Metric("F1"),
    "mae": Metric("MAE", loss="L1 loss", higher_is_better=False),
    "rmse": Metric("RMSE", loss="L1 or squared loss", higher_is_better=False),
    "roc_auc": Metric("ROC-AUC"),
    "average_precision": Metric("average precision"),
}


def metric_of(line: TableLine) -> Metric:
    r"""The metric of a row of the paper."""
    return METRICS[config_of(line.paper).training.metric]
