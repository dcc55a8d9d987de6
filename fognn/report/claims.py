r"""The claims of the paper's text, and the verdicts of the measurements on them."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fognn.experiments.pairing import Paired, paired_difference
from fognn.experiments.table_line import TableLine
from fognn.experiments.tables import TABLES
from fognn.report.measurements import Measurements, host_of
from fognn.report.metric import Metric, metric_of
from fognn.report.text import joined, percents, pluralize

__all__ = [
    "FEW",
    "RULE",
    "VERDICTS",
    "Claim",
    "Comparison",
    "Judgement",
    "claims",
    "few_seeds",
    "judge",
    "judge_all",
    "verdict_of",
]

RULE = (
    "A claim is a set of comparisons between two networks, each over the seeds that both have. It "
    "holds here if all of them are measured and the 95 % interval of every difference lies on the "
    "paper's side of 0, and does not if one lies on the other side. One or two seeds decide "
    "nothing: their differences are seen, and not sure. Where there are only runs on a fraction of "
    "the data, they are shown, and are not sure either. All networks have the paper's settings: "
    "where learning rates are unequal, a difference is not FOG's alone (fognn table rates has "
    "ZINC's pairs with equal tries)."
)
# Two differences may be alike by chance.
FEW = "one or two seeds decide nothing"

# In the order in which they decide: one comparison that fails is enough, all must hold.
VERDICTS = {
    "fails": "does not hold here",
    "against": "seen the other way, not sure",
    "unclear": "not clear",
    "seen": "seen, not sure",
    "partly": "holds where measured",
    "holds": "holds here",
    "missing": "not measured yet",
}


def verdict_of(paired: Paired | None, metric: Metric, decides: bool = True) -> str:
    r"""Whether the first of two networks is better than the second: one of :obj:`VERDICTS`.

    It holds if the whole 95 % interval of the difference is on the better side of 0, and fails if
    the whole interval is on the other side. One or two seeds decide nothing, see :func:`few_seeds`:
    their difference was seen. The same is true of an interval over the folds of one run, which
    share most of their graphs: it is too narrow.

    Args:
        paired (Paired, optional): The difference, the first network minus the second.
        metric (Metric): The metric.
        decides (bool, optional): If set to :obj:`False`, no interval decides.
            (default: :obj:`True`)
    """
    if paired is None:
        return "missing"
    if paired.interval is None:
        return "seen" if metric.advantage(paired.difference, 0.0) > 0 else "against"
    low, high = sorted(metric.advantage(end, 0.0) for end in paired.interval)
    sure = decides and not few_seeds(paired)
    if low > 0:
        return "holds" if sure else "seen"
    if high < 0:
        return "fails" if sure else "against"
    return "unclear"


def few_seeds(paired: Paired) -> str:
    r"""Returns the seeds of a difference if they are too few to decide, ``"one seed"`` or
    ``"two seeds"``; empty if they are enough."""
    seeds = paired.pairs if paired.over == "seed" else 1  # the folds are of one seed
    return {1: "one seed", 2: "two seeds"}.get(seeds, "")


@dataclass(frozen=True)
class Claim:
    r"""A statement of the paper that a measurement can contradict.

    A network is named by its path: ``"zinc/ZINC/GCN+FOG"``, and with the number of its parameters
    where a table has it more than once, ``"widths/ZINC/GCN+FOG/25847"``.

    Args:
        text (str): The claim.
        quote (str): The paper's words.
        pairs (tuple): Pairs of networks; the paper says that the first is better.
    """

    text: str
    quote: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def table(self) -> str:
        r"""The table that it is about."""
        return self.pairs[0][0].partition("/")[0]


@cache
def claims() -> tuple[Claim, ...]:
    r"""All claims, in the order of the paper's tables."""
    text = files("fognn.report").joinpath("claims.toml").read_text(encoding="utf-8")
    return tuple(_claim(entry) for entry in tomllib.loads(text)["claim"])


def _claim(entry: dict[str, Any]) -> Claim:
    pairs = tuple(
        (_path(where, better), _path(where, than))
        for where in entry["where"]
        for better, than in entry["pairs"]
    )
    return Claim(entry["text"], entry["quote"], pairs)


def _path(where: str, name: str) -> str:
    r"""A whole path begins with a table's name, which no network has."""
    return name if name.count("/") > 1 else f"{where}/{name}"


@dataclass(frozen=True)
class Comparison:
    r"""Two networks, of which the paper says that the first is better.

    Args:
        better (TableLine): The first.
        than (TableLine): The second.
        paired (Paired, optional): The measured difference over the seeds of both.
    """

    better: TableLine
    than: TableLine
    paired: Paired | None

    @property
    def metric(self) -> Metric:
        return metric_of(self.better)

    @property
    def advantage(self) -> float | None:
        r"""By how much the first is better; negative if it is worse."""
        if self.paired is None:
            return None
        return self.metric.advantage(self.paired.difference, 0.0)

    @property
    def interval(self) -> tuple[float, float] | None:
        r"""The 95 % interval of :attr:`advantage`."""
        if self.paired is None or self.paired.interval is None:
            return None
        low, high = sorted(self.metric.advantage(end, 0.0) for end in self.paired.interval)
        return low, high

    @property
    def printed(self) -> float:
        r"""By how much the first is better in the paper."""
        # A claim names rows of the paper only, see Measurements.find.
        return self.metric.advantage(self.better.paper.mean or 0.0, self.than.paper.mean or 0.0)

    @property
    def equal_rates(self) -> bool:
        r"""Whether the runs of both have the same learning rate."""
        return self.better.lr == self.than.lr

    @property
    def verdict(self) -> str:
        r"""One of :obj:`VERDICTS`."""
        return verdict_of(self.paired, self.metric, self.better.fraction is None)


@dataclass(frozen=True)
class Judgement:
    r"""A claim and its comparisons.

    Args:
        claim (Claim): The claim.
        comparisons (tuple): All of them, measured or not.
    """

    claim: Claim
    comparisons: tuple[Comparison, ...]

    @property
    def verdict(self) -> str:
        r"""One of :obj:`VERDICTS`."""
        each = {comparison.verdict for comparison in self.comparisons}
        if each == {"holds", "missing"}:
            return "partly"
        return next(verdict for verdict in VERDICTS if verdict in each)

    @property
    def text(self) -> str:
        r"""The verdict in words."""
        return VERDICTS[self.verdict] + self._part

    @property
    def _part(self) -> str:
        r"""``", on 2 % of the data"``; empty if all comparisons are on all of the data."""
        measured = [c.better.fraction for c in self.comparisons if c.paired is not None]
        parts = [part for part in measured if part is not None]
        if not parts:
            return ""
        return f", {'in part ' * (None in measured)}on {percents(parts)} of the data"

    @property
    def measured(self) -> str:
        r"""The number of comparisons and of seeds behind the verdict, and how many comparisons are
        of networks with unequal learning rates; empty if there are none."""
        measured = [c for c in self.comparisons if c.paired is not None]
        if not measured:
            return ""
        total = pluralize(len(self.comparisons), "comparison")
        text = f"{len(measured)} of {total} measured, {_pairs(measured)}"
        unequal = sum(not c.equal_rates for c in measured)
        return f"{text}; unequal learning rates in {unequal}" if unequal else text

    @property
    def sure(self) -> str:
        r"""What is measured, and which comparisons are contrary to the paper's, in sentences."""
        if not self.measured:
            return ""
        sentences = [f"{self.measured}."]
        contrary = [c for c in self.comparisons if c.advantage is not None and c.advantage <= 0]
        if contrary:
            named = "; ".join(f"{c.better.label} against {c.than.label}" for c in contrary)
            sentences.append(f"The other way round: {named}.")
        return " ".join(sentences)


def judge(claim: Claim, measurements: Measurements) -> Judgement:
    r"""Compares all networks of a claim: on all of the data, or on the largest fraction of it that
    both are measured on."""
    comparisons = []
    for one, other in claim.pairs:
        whole = measurements.find(one), measurements.find(other)
        found = [_compared(*pair, measurements) for pair in (whole, *_parts(*whole, measurements))]
        comparisons.append(next((c for c in found if c.paired is not None), found[0]))
    return Judgement(claim, tuple(comparisons))


def _parts(
    better: TableLine, than: TableLine, measurements: Measurements
) -> list[tuple[TableLine, TableLine]]:
    r"""Both networks on the same fraction of the data, the largest one first."""
    parts = [
        {
            part.fraction: part
            for part in measurements.tables[line.table]
            if part.row == line.row and not part.variant and part.fraction is not None
        }
        for line in (better, than)
    ]
    # A host is looked for among the variants, too: it may be measured where its row is not.
    return [(parts[0][part], parts[1].get(part, than)) for part in sorted(parts[0], reverse=True)]


def _compared(better: TableLine, than: TableLine, measurements: Measurements) -> Comparison:
    if better.paper.model == f"{than.paper.model}+FOG":
        # The paper's GCN has another norm than its GCN+FOG: the host has the same norm.
        than = host_of(better, measurements.tables[better.table]) or than
    if better.fraction != than.fraction:
        return Comparison(better, than, None)
    shown = TABLES[better.table]
    paired = paired_difference(than.label, better.entries, than.entries, shown.at, shown.over)
    return Comparison(better, than, paired)


def judge_all(measurements: Measurements) -> list[Judgement]:
    r"""All claims with their comparisons, in the order of the paper's tables."""
    return [judge(claim, measurements) for claim in claims()]


def _pairs(measured: Sequence[Comparison]) -> str:
    r"""``"1 seed each"``, ``"2 to 10 seeds each"``."""
    texts = []
    for over in ("seed", "fold"):
        counts = sorted({c.paired.pairs for c in measured if c.paired and c.paired.over == over})
        if counts:
            span = f"{counts[0]} to " if len(counts) > 1 else ""
            texts.append(
                f"{span}{pluralize(counts[-1], over)}{' of one seed' * (over == 'fold')} each"
            )
    return joined(texts)
