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
Entries = Sequence[LedgerEntry]


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

    def figure(self, mean: float, sd: float) -> str:
        r"""A mean, and its standard deviation if it is not NaN: ``0.3280 ± 0.0040``."""
        return self.number(mean) + ("" if math.isnan(sd) else f" ± {self.number(sd)}")

    def signed(self, difference: float) -> str:
        r"""A difference of two values with its sign; none if it rounds to 0."""
        text = self.number(abs(difference))
        sign = "−" if difference < 0 else "+"
        return text if float(text) == 0 else f"{sign}{text}"

    def interval(self, low: float, high: float) -> str:
        r"""``[−0.1000, +0.2000]``; an empty string for NaN."""
        return "" if math.isnan(low) else f"[{self.signed(low)}, {self.signed(high)}]"

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
    r"""A mean of independent values, their standard deviation, and the 95 % interval of the mean by
    Student's t distribution (NaN for a single value)."""

    mean: float
    sd: float
    low: float
    high: float


def estimate(values: Sequence[float]) -> Estimate:
    r"""Returns the mean of values with its deviation and interval."""
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        return Estimate(mean, math.nan, math.nan, math.nan)
    sd = statistics.stdev(values)
    half = float(student_t.ppf(0.975, count - 1)) * sd / math.sqrt(count)
    return Estimate(mean, sd, mean - half, mean + half)


class Difference(NamedTuple):
    r"""The mean difference of two networks over the runs that both have: of the same ``"seed"``; or
    of the same ``"fold"``, whose interval is too narrow, because folds share training graphs."""

    value: float
    low: float  # NaN for a single pair
    high: float
    pairs: int
    over: str

    @property
    def note(self) -> str:
        r"""The number of pairs as text: ``"3 seeds"`` or ``"1 seed: no interval"``."""
        count = pluralize(self.pairs, self.over)
        return f"{count}: no interval" if math.isnan(self.low) else count


def difference_over(values: Sequence[float], over: str = "seed") -> Difference | None:
    r"""Returns the mean of some differences; :obj:`None` if there are none."""
    if not values:
        return None
    mean, _, low, high = estimate(values)
    return Difference(mean, low, high, len(values), over)


def figure_of(scores: Mapping[str, Any], at: str, over: str) -> tuple[str, str, str]:
    r"""Returns the split, the epoch and the average of a table's figure of a run, or of a fold:
    without a test split, as on IMDB-MULTI, those of validation at the best epoch, over items."""
    return ("val", "best", "items") if scores["test"] is None else ("test", at, over)


def value_of(scores: Mapping[str, Any], at: str, over: str) -> float:
    r"""Returns this figure."""
    split, at, over = figure_of(scores, at, over)
    return float(scores[split][at][over])


def gaps(ours: Entries, theirs: Entries, at: str, over: str) -> dict[int, float]:
    r"""Returns the first network minus the second, for each seed that both have."""
    first = {entry.seed: value_of(entry.result, at, over) for entry in ours}
    second = {entry.seed: value_of(entry.result, at, over) for entry in theirs}
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def paired_difference(ours: Entries, theirs: Entries, at: str, over: str) -> Difference | None:
    r"""Returns the mean of :func:`gaps`, of one seed over folds; :obj:`None` without any."""
    found = gaps(ours, theirs, at, over)
    if len(found) == 1:
        mine, other = (
            {fold["fold"]: value_of(fold, at, over) for fold in entry.result.get("folds") or ()}
            for runs in (ours, theirs)
            for entry in runs
            if entry.seed in found
        )
        if mine and mine.keys() == other.keys():
            return difference_over([mine[fold] - other[fold] for fold in mine], "fold")
    return difference_over(list(found.values()))


def verdict_of(difference: Difference | None, metric: str, decides: bool = True) -> str:
    r"""Returns whether the first of two networks is ``"better"`` or ``"worse"``.

    The 95 % interval of their difference decides, ``"inconclusive"`` if it has 0 in it. One or two
    seeds, and folds of one run, decide nothing, nor does any interval without ``decides``:
    ``"maybe better"``, ``"maybe worse"``. Without a common run it is ``"not measured"``.
    """
    if difference is None:
        return "not measured"
    if difference.low <= 0 <= difference.high:  # not for NaN
        return "inconclusive"
    verdict = "better" if METRICS[metric].advantage(difference.value) > 0 else "worse"
    sure = decides and difference.over == "seed" and difference.pairs > 2
    return verdict if sure else f"maybe {verdict}"


def difference_of(line: Any) -> Difference | None:
    r"""Returns the difference in a row of a frame; :obj:`None` if it has none."""
    if pd.isna(line.paired):
        return None
    return Difference(line.paired, line.low, line.high, int(line.pairs), line.paired_over)


def networks_table(frame: pd.DataFrame) -> pd.DataFrame:
    r"""Returns the rows of a :func:`~fognn.experiments.results.networks_frame` as texts."""
    metric = METRICS[frame["metric"].iloc[0]]
    split = "validation" if frame["figure"].iloc[0].startswith("val") else "test"
    gaps = [difference_of(line) for line in frame.itertuples()]
    memory = (frame["peak_memory"] // 2**20).map("{:,}".format, na_action="ignore")
    columns = {
        "network": frame["network"],
        "parameters": frame["parameters"].map("{:,}".format),
        "lr": frame["lr"].map("{:g}".format),
        f"{split} {metric.axis}": [metric.figure(o.mean, o.sd) for o in frame.itertuples()],
        "seeds": frame["seeds"].map(len).map(str),
        "difference": [NONE if gap is None else metric.signed(gap.value) for gap in gaps],
        "95 % interval": [(metric.interval(*gap[1:3]) if gap else "") or NONE for gap in gaps],
        "verdict": frame["verdict"].replace("", NONE),
        "epochs": frame["epochs"].map("{:.0f}".format),
        "s an epoch": frame["seconds_per_epoch"].map("{:.2f}".format),
        "peak MiB": memory.astype(object).fillna(NONE),
    }
    return pd.DataFrame(columns)


def sentence_of(frame: pd.DataFrame) -> str:
    r"""Returns the answer of a :func:`~fognn.experiments.results.networks_frame` in a sentence: for
    each host whether FOG is better or worse, and what its intervals are over."""
    found = [(line, gap) for line in frame.itertuples() if (gap := difference_of(line)) is not None]
    if not found:
        return "No host has runs with and without FOG, so there is nothing to compare."
    parts = [_finding(line, gap) for line, gap in found]
    folds = any(gap.over == "fold" for _, gap in found)
    if any(line.verdict.startswith("maybe") for line, _ in found):
        why = "folds share training data" if folds else "another seed may show the opposite"
        parts.append(f"one or two seeds decide nothing: {why}")
    text = f"{'; '.join(parts)}."
    if all(math.isnan(gap.low) for _, gap in found):
        return text
    split = "folds, which share training data" if folds else "training seeds of one split"
    return f"{text} The intervals are over {split}."


def _finding(line: Any, gap: Difference) -> str:
    metric, over = METRICS[line.metric], pluralize(gap.pairs, gap.over)
    unit = f"points of {metric.label}" if metric.percent else metric.label
    half = (gap.high - gap.low) / 2
    if line.verdict == "inconclusive":
        amount = f"{metric.signed(gap.value)} ± {metric.number(half)} {unit}"
        return f"{line.network} against {line.host} ({amount} over {over}): inconclusive"
    verb = "was" if line.verdict.startswith("maybe") else "is"
    how = f"{verb} {line.verdict.removeprefix('maybe ')} than {line.host}"
    return f"{line.network} {how} by {metric.figure(abs(gap.value), half)} {unit} over {over}"
