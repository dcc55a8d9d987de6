r"""The paired difference of two networks, with its confidence interval."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t as student_t

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.scores import fold_scores, score_of

__all__ = ["Paired", "paired_difference", "t_interval"]


@dataclass(frozen=True)
class Paired:
    r"""The difference of two networks over the seeds that both have.

    Args:
        host (str): The label of the other network: the one that is subtracted; for a control, the
            one from which the control is subtracted.
        difference (float): The mean of the differences.
        interval (tuple, optional): Its 95 % confidence interval, by Student's t distribution;
            :obj:`None` for a single pair.
        pairs (int): Number of pairs.
        over (str): What the two runs of a pair have in common: the ``"seed"``; or the ``"fold"``,
            for runs over folds with a single common seed. Folds share training graphs, so their
            interval is too narrow.
    """

    host: str
    difference: float
    interval: tuple[float, float] | None
    pairs: int
    over: str

    @property
    def note(self) -> str:
        r"""The number of pairs as text: ``"3 seeds"``, ``"10 folds"`` or
        ``"1 seed: no interval"``."""
        count = f"{self.pairs} {self.over}{'' if self.pairs == 1 else 's'}"
        return f"{count}: no interval" if self.interval is None else count


def paired_difference(
    host: str, ours: Sequence[LedgerEntry], theirs: Sequence[LedgerEntry], at: str, over: str
) -> Paired | None:
    r"""Returns the difference of two networks, the first minus the second; :obj:`None` if they have
    no seed in common.

    Args:
        host (str): The label of the second network.
        ours (list): Runs of the first network.
        theirs (list): Runs of the second network.
        at (str): The epoch, see :func:`fognn.experiments.comparison.compare`.
        over (str): The average, see :func:`fognn.experiments.comparison.compare`.
    """
    first, second = ({entry.seed: entry for entry in runs} for runs in (ours, theirs))
    common = [(first[seed], second[seed]) for seed in first if seed in second]
    if not common:
        return None
    shared = "seed"
    differences = [score_of(a, at, over).value - score_of(b, at, over).value for a, b in common]
    if len(common) == 1:
        mine, other = (fold_scores(entry, at, over) for entry in common[0])
        if mine and mine.keys() == other.keys():
            shared, differences = "fold", [mine[fold] - other[fold] for fold in mine]
    return Paired(
        host, statistics.fmean(differences), t_interval(differences), len(differences), shared
    )


def t_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    r"""Returns the confidence interval of the mean of independent values, by Student's t
    distribution; :obj:`None` for fewer than two values.

    Args:
        values (list): The values.
        level (float, optional): The confidence level. (default: :obj:`0.95`)
    """
    count = len(values)
    if count < 2:
        return None
    mean = statistics.fmean(values)
    half = student_t.ppf((1 + level) / 2, count - 1) * statistics.stdev(values) / math.sqrt(count)
    return mean - float(half), mean + float(half)
