r"""The figure of a run, means over runs, the paired difference of two networks, its verdict, and
the answer of a comparison in a sentence."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from scipy.stats import t as student_t

from fognn.experiments.ledger import LedgerEntry

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


class Estimate(NamedTuple):
    r"""A mean of independent values, their standard deviation, and the 95 % confidence interval of
    the mean by Student's t distribution (:obj:`None` for a single value)."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None


def estimate(values: Sequence[float]) -> Estimate:
    r"""Returns the mean of values with its deviation and interval."""
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        return Estimate(mean, None, None, None)
    sd = statistics.stdev(values)
    half = float(student_t.ppf(0.975, count - 1)) * sd / math.sqrt(count)
    return Estimate(mean, sd, mean - half, mean + half)


class Difference(NamedTuple):
    r"""The mean difference of two networks over the runs that both have.

    The two runs of a pair have the ``"seed"`` in common; or the ``"fold"``, for runs over folds
    with a single common seed. Folds share training graphs, so their interval is too narrow.
    """

    value: float
    low: float | None
    high: float | None
    pairs: int
    over: str

    @property
    def note(self) -> str:
        r"""The number of pairs as text: ``"3 seeds"`` or ``"1 seed: no interval"``."""
        count = pluralize(self.pairs, self.over)
        return f"{count}: no interval" if self.low is None else count


def score_of(scores: Mapping[str, Any], at: str, over: str) -> dict[str, Any]:
    r"""Returns the figure of a run, or of a fold, that a table shows: on the test split; without
    one, as on IMDB-MULTI, on the validation split at the best epoch, over items."""
    split = "test"
    if scores["test"] is None:
        split, at, over = "val", "best", "items"
    return {"split": split, "at": at, "over": over, "value": scores[split][at][over]}


def value_of(entry: LedgerEntry, at: str, over: str) -> float:
    return float(score_of(entry.result, at, over)["value"])


def paired_difference(
    ours: Sequence[LedgerEntry], theirs: Sequence[LedgerEntry], at: str, over: str
) -> Difference | None:
    r"""Returns the difference of the runs of two networks, the first minus the second; :obj:`None`
    if they have no seed in common."""
    first, second = ({entry.seed: entry for entry in runs} for runs in (ours, theirs))
    common = [(first[seed], second[seed]) for seed in first if seed in second]
    if not common:
        return None
    shared = "seed"
    found = [value_of(one, at, over) - value_of(other, at, over) for one, other in common]
    if len(common) == 1:
        mine, other = (_folds(entry, at, over) for entry in common[0])
        if mine and mine.keys() == other.keys():
            shared, found = "fold", [mine[fold] - other[fold] for fold in mine]
    mean, _, low, high = estimate(found)
    return Difference(mean, low, high, len(found), shared)


def _folds(entry: LedgerEntry, at: str, over: str) -> dict[int, float]:
    folds = entry.result.get("folds") or []
    return {fold["fold"]: score_of(fold, at, over)["value"] for fold in folds}


def verdict_of(difference: Difference | None, metric: str, decides: bool = True) -> str:
    r"""Returns whether the first of two networks is better than the second.

    It is ``"better"`` if the whole 95 % interval of the difference is on the better side of 0,
    ``"worse"`` if it is on the other side, and ``"inconclusive"`` if it has 0 in it. One or two
    seeds decide nothing: their difference is ``"maybe better"`` or ``"maybe worse"``. The same is
    true of an interval over the folds of one run, which is too narrow. Without a common run it is
    ``"not measured"``. Without ``decides``, no interval decides.
    """
    if difference is None:
        return "not measured"
    advantage = METRICS[metric].advantage
    if difference.low is None or difference.high is None:
        return "maybe better" if advantage(difference.value) > 0 else "maybe worse"
    low, high = sorted((advantage(difference.low), advantage(difference.high)))
    sure = decides and difference.over == "seed" and difference.pairs > 2
    if low > 0:
        return "better" if sure else "maybe better"
    if high < 0:
        return "worse" if sure else "maybe worse"
    return "inconclusive"


def difference_of(line: Any) -> Difference | None:
    r"""Returns the difference in a row of a frame (a Series, or a tuple of ``itertuples``);
    :obj:`None` if it has none."""
    if pd.isna(line.paired):
        return None
    low, high = (None, None) if pd.isna(line.low) else (float(line.low), float(line.high))
    return Difference(float(line.paired), low, high, int(line.pairs), line.paired_over)


def winner_of(frame: pd.DataFrame) -> Any:
    r"""Returns the row of the network with the best validation metric, the mean over seeds;
    :obj:`None` without networks. The test split is not used."""
    if not len(frame):
        return None
    validation, higher = frame["validation"], METRICS[frame["metric"].iloc[0]].higher_is_better
    return frame.loc[validation.idxmax() if higher else validation.idxmin()]


def sentence_of(frame: pd.DataFrame) -> str:
    r"""Returns the answer in a sentence: for each host of a
    :func:`~fognn.experiments.results.compare_frame` whether FOG is better or worse, or whether the
    comparison is inconclusive, and what its intervals are over."""
    found = [(line, gap) for line in frame.itertuples() if (gap := difference_of(line)) is not None]
    if not found:
        return "No host has runs with and without FOG, so there is nothing to compare."
    parts = [_finding(line, gap) for line, gap in found]
    folds = any(gap.over == "fold" for _, gap in found)
    if any(line.verdict.startswith("maybe") for line, _ in found):
        why = "folds share training data" if folds else "another seed may show the opposite"
        parts.append(f"{FEW}: {why}")
    text = f"{'; '.join(parts)}."
    if all(gap.low is None for _, gap in found):
        return text
    split = "folds, which share training data" if folds else "training seeds of one split"
    return f"{text} The intervals are over {split}."


def _finding(line: Any, gap: Difference) -> str:
    metric, over = METRICS[line.metric], pluralize(gap.pairs, gap.over)
    unit = f"points of {metric.label}" if metric.percent else metric.label
    half = None if gap.low is None or gap.high is None else (gap.high - gap.low) / 2
    wide = "" if half is None else f" ± {metric.number(half)}"
    network = f"{line.network}{note_of(line)}"
    if line.verdict == "inconclusive":
        amount = f"{metric.signed(gap.value)}{wide} {unit}"
        return f"{network} against {line.host} ({amount} over {over}): inconclusive"
    verb = "was" if line.verdict.startswith("maybe") else "is"
    how = f"{verb} {line.verdict.removeprefix('maybe ')} than {line.host}"
    return f"{network} {how} by {metric.number(abs(gap.value))}{wide} {unit} over {over}"


def note_of(line: Any) -> str:
    r"""Returns what tells a network from the same one in another comparison, in brackets."""
    return f" ({line.note})" if line.note else ""
