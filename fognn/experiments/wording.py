r"""How metrics, numbers and verdicts are worded in all answers, tables and pages."""

from collections.abc import Sequence
from dataclasses import dataclass

NONE = "–"  # shown where there is no value
FEW = "one or two seeds decide nothing"

# What a verdict of fognn.experiments.results.verdict_of means for a claim of the paper, in the
# order in which they decide: one comparison that is worse is enough, all must be better.
CLAIMS = {
    "worse": "does not hold here",
    "maybe worse": "seen the other way, not sure",
    "inconclusive": "inconclusive",
    "maybe better": "seen, not sure",
    "partly": "holds where measured",
    "better": "holds here",
    "not measured": "not measured yet",
}


@dataclass(frozen=True)
class Metric:
    r"""The name of a metric, the loss that is minimised with it, and its direction."""

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

    def figure(self, mean: float, sd: float | None) -> str:
        r"""A mean, and its standard deviation if there is one: ``0.3280 ± 0.0040``."""
        known = sd is not None and sd == sd
        return self.number(mean) + (f" ± {self.number(sd)}" if known and sd is not None else "")

    def signed(self, difference: float) -> str:
        r"""A difference of two values with its sign; none if it rounds to 0."""
        text = self.number(abs(difference))
        if float(text) == 0:
            return text
        return f"{'−' if difference < 0 else '+'}{text}"

    def interval(self, low: float | None, high: float | None) -> str:
        r"""``[−0.1000, +0.2000]``; an empty string without an interval."""
        if low is None or high is None or low != low:
            return ""
        return f"[{self.signed(low)}, {self.signed(high)}]"

    def advantage(self, one: float, other: float = 0.0) -> float:
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


def pluralize(count: int, what: str) -> str:
    r"""``1 epoch``, ``2 epochs``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def joined(words: Sequence[str]) -> str:
    r"""``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
