r"""What the measurements say about the claims of the paper, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

from fognn.paper.pairing import Paired, paired_difference
from fognn.paper.table_line import TableLine
from fognn.report.metric import Metric
from fognn.report.site_claims import Claim
from fognn.report.site_measurements import AT, OVER, Measurements, host_of, metric_of
from fognn.report.words import joined, many

__all__ = ["VERDICTS", "Comparison", "Judgement", "judge"]

# In the order in which they decide: one comparison that fails is enough, all must hold.
VERDICTS = {
    "fails": "does not hold here",
    "against": "seen once the other way, not sure",
    "unclear": "not clear",
    "once": "seen once, not sure",
    "holds": "holds here",
    "missing": "not measured yet",
}


@dataclass(frozen=True)
class Comparison:
    r"""One network against another, of which the paper says that it is worse.

    Args:
        better (TableLine): The one that the paper says is better.
        than (TableLine): The other.
        paired (Paired, optional): The measured difference, over what both have in common.
    """

    better: TableLine
    than: TableLine
    paired: Paired | None

    @property
    def metric(self) -> Metric:
        return metric_of(self.better)

    @property
    def advantage(self) -> float | None:
        r"""By how much the first is better; below 0 if it is worse."""
        return None if self.paired is None else self._sign * self.paired.difference

    @property
    def interval(self) -> tuple[float, float] | None:
        r"""The 95 % interval of :attr:`advantage`."""
        if self.paired is None or self.paired.interval is None:
            return None
        low, high = sorted(self._sign * end for end in self.paired.interval)
        return low, high

    @property
    def printed(self) -> float:
        r"""By how much the first is better in the paper."""
        return self.metric.advantage(self.better.paper.mean, self.than.paper.mean)

    @property
    def verdict(self) -> str:
        r"""One of :obj:`VERDICTS`.

        Folds of one run share most of their graphs, so their interval is too narrow to be sure
        by: at most, something was seen once.
        """
        if self.paired is None or self.advantage is None:
            return "missing"
        if self.interval is None:
            return "once" if self.advantage > 0 else "against"
        low, high = self.interval
        sure = self.paired.over == "seed"
        if low > 0:
            return "holds" if sure else "once"
        if high < 0:
            return "fails" if sure else "against"
        return "unclear"

    @property
    def _sign(self) -> int:
        return 1 if self.metric.higher_is_better else -1


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
        return next(verdict for verdict in VERDICTS if verdict in each)

    @property
    def text(self) -> str:
        r"""The verdict in words."""
        text = VERDICTS[self.verdict]
        return f"{text}, so far" if self.verdict == "holds" and self._missing else text

    @property
    def sure(self) -> str:
        r"""What the verdict rests on, in sentences."""
        measured = [c for c in self.comparisons if c.paired is not None]
        if not measured:
            return ""
        total = many(len(self.comparisons), "comparison")
        sentences = [f"{len(measured)} of {total} measured, {_notes(measured)}."]
        contrary = [c for c in measured if c.advantage is not None and c.advantage <= 0]
        if contrary:
            named = "; ".join(f"{c.better.label} against {c.than.label}" for c in contrary)
            sentences.append(f"The other way round: {named}.")
        return " ".join(sentences)

    @property
    def _missing(self) -> bool:
        return any(comparison.paired is None for comparison in self.comparisons)


def judge(claim: Claim, measurements: Measurements) -> Judgement:
    r"""Compares all networks of a claim.

    Args:
        claim (Claim): The claim.
        measurements (Measurements): What was measured.
    """
    comparisons = []
    for one, other in claim.pairs:
        better, than = measurements.find(one), measurements.find(other)
        if better.paper.model == f"{than.paper.model}+FOG":
            # Like with like: the paper's GCN has another norm than its GCN+FOG.
            than = host_of(better, measurements.tables[better.table]) or than
        paired = paired_difference(than.label, better.entries, than.entries, AT, OVER)
        comparisons.append(Comparison(better, than, paired))
    return Judgement(claim, tuple(comparisons))


def _notes(measured: Sequence[Comparison]) -> str:
    r"""``"1 seed each"``, ``"2 to 10 seeds each"``."""
    texts = []
    for over in ("seed", "fold"):
        counts = sorted({c.paired.pairs for c in measured if c.paired and c.paired.over == over})
        if counts:
            span = f"{counts[0]} to " if len(counts) > 1 else ""
            texts.append(f"{span}{many(counts[-1], over)}{' of one seed' * (over == 'fold')} each")
    return joined(texts)
