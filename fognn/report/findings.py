r"""What is to be seen when runs are compared, in sentences made of their numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev

from fognn.report.doubts import cost, doubts
from fognn.report.metric import Metric
from fognn.report.run_groups import Group
from fognn.report.words import capital, joined, many

__all__ = ["WAYS", "findings"]

# The ways to count a run's test result; the first of them decides.
WAYS = (("best", "items"), ("best", "batches"), ("last", "items"), ("last", "batches"))
_LAST_EPOCHS = 6


@dataclass(frozen=True)
class _Scores:
    r"""A number for each group, all taken in the same way."""

    where: str
    values: list[float]
    on_test: bool


def findings(groups: Sequence[Group]) -> list[str]:
    r"""Sentences that say which runs ended better, by how much, and how far that can be trusted.

    A network with FOG is compared with the same one without, and the best of all with the
    second best. With one seed each, a gap counts as clear if it is wider than the usual change of
    the validation metric from one epoch to the next at the end of the runs; with more seeds, if it
    is wider than twice its standard error. As long as a network has no test result, all are
    compared on the validation split, at the same age.

    Args:
        groups (sequence of Group): The runs, all of the same data and metric.
    """
    metric = groups[0].runs[0].metric
    scores = _scores(groups, metric)
    if isinstance(scores, str):
        return [scores]
    pairs = _pairs(groups)
    sentences = []
    if len(groups) == 1:
        sentences.append(_alone(groups[0], scores, metric))
    elif len(groups) > 2 or not pairs:
        order = sorted(range(len(groups)), key=lambda i: metric.advantage(0.0, scores.values[i]))
        sentences.append(_compare(groups, order[0], order[1], scores, metric))
    sentences += [_compare(groups, one, other, scores, metric) for one, other in pairs]
    if not scores.on_test:
        waiting = [group.label for group in groups if not group.tests(*WAYS[0])]
        sentences.append(f"There is no test result of {joined(waiting)} yet.")
    sentences += [cost(groups[one], groups[other]) for one, other in pairs]
    return [sentence for sentence in [*sentences, *doubts(groups)] if sentence]


def _scores(groups: Sequence[Group], metric: Metric) -> _Scores | str:
    tests = [group.tests(*WAYS[0]) for group in groups]
    if all(tests):
        return _Scores("on the test split", [fmean(values) for values in tests], True)
    epochs = min(run.epochs for group in groups for run in group.runs)
    best = max if metric.higher_is_better else min
    # If one has no epoch, it is the one to be named, and not those that have.
    curves = [[_finite(run.curve("val")[: epochs or None]) for run in g.runs] for g in groups]
    without = [g.label for g, own in zip(groups, curves, strict=True) if not all(own)]
    if without:
        return f"Nothing can be compared yet: there is no validation result of {joined(without)}."
    values = [fmean(best(curve) for curve in own) for own in curves]
    return _Scores(f"on the validation split within {many(epochs, 'epoch')}", values, False)


def _finite(curve: list[float]) -> list[float]:
    return [value for value in curve if math.isfinite(value)]


def _pairs(groups: Sequence[Group]) -> list[tuple[int, int]]:
    r"""Each network with FOG, and the same one without."""
    return [
        (one, other)
        for one, group in enumerate(groups)
        for other, host in enumerate(groups)
        if _is_fog_of(group, host)
    ]


def _is_fog_of(group: Group, host: Group) -> bool:
    return group.model == f"{host.model}+fog"


def _alone(group: Group, scores: _Scores, metric: Metric) -> str:
    tests = group.tests(*WAYS[0]) if scores.on_test else []
    spread = f", standard deviation {metric.gap(stdev(tests))}" if len(tests) > 1 else ""
    runs = len(tests) if scores.on_test else len(group.runs)
    value = f"{metric.label} of {group.label} is {metric.text(scores.values[0])}"
    return f"The mean {value} {scores.where}{spread}, over {many(runs, 'run')}."


def _compare(groups: Sequence[Group], one: int, other: int, scores: _Scores, metric: Metric) -> str:
    a, b = groups[one], groups[other]
    better = metric.advantage(scores.values[one], scores.values[other])
    numbers = (
        f"{metric.text(scores.values[one])} against {metric.text(scores.values[other])} "
        f"{metric.label}{'' if metric.higher_is_better else ' (less is better)'}"
    )
    if scores.on_test:
        numbers += ", over all items, at the best validation epoch"
        counts = [len(group.tests(*WAYS[0])) for group in (a, b)]
        if max(counts) > 1:
            numbers += f", means of {counts[0]} and {many(counts[1], 'run')}"
    fog = _is_fog_of(a, b)
    noise, what = _noise(a, b, metric, scores.on_test)
    unclear = abs(better) <= noise
    if unclear or abs(better) < 0.5 * 10**-metric.digits:
        start = "FOG made no clear difference here" if fog else "There is no clear difference"
        side = "ahead of" if better >= 0 else "behind"
        gap = f"{a.label} is {metric.gap(better)} {side} {b.label}"
        why = f"; that is not more than {what} ({metric.gap(noise)})" if unclear else ""
        return f"{start}: {scores.where} {gap}, {numbers}{why}."
    how = f"{metric.gap(better)} {'better' if better > 0 else 'worse'}"
    verb = "ended" if scores.on_test else "is"
    text = f"{scores.where} {a.label} {verb} {how} than {b.label}: {numbers}."
    text = f"FOG did not help here: {text}" if fog and better < 0 else capital(text)
    return f"{text} {_agreement(a, b, better, metric)}" if scores.on_test else text


def _noise(a: Group, b: Group, metric: Metric, on_test: bool) -> tuple[float, str]:
    r"""How wide a gap has to be, and what that width is."""
    tests = [group.tests(*WAYS[0]) for group in (a, b)]
    if on_test and min(map(len, tests)) > 1:
        error = math.sqrt(sum(stdev(values) ** 2 / len(values) for values in tests))
        return 2 * error, "twice its standard error"
    jumps = [fmean(_jump(run.curve("val")) for run in group.runs) for group in (a, b)]
    return max(jumps), f"the validation {metric.label} changes from one epoch to the next"


def _jump(curve: list[float]) -> float:
    r"""The usual change from one epoch to the next, at the end of a run."""
    end = curve[-_LAST_EPOCHS:]
    changes = [abs(y - x) for x, y in pairwise(end) if math.isfinite(y - x)]
    return median(changes) if changes else 0.0


def _agreement(a: Group, b: Group, better: float, metric: Metric) -> str:
    against = []
    for when, over in WAYS[1:]:
        one, other = a.tests(when, over), b.tests(when, over)
        if one and other and metric.advantage(fmean(one), fmean(other)) * better <= 0:
            against.append(f"at the {when} epoch over {over}")
    if against:
        return f"But it is not so {joined(against)}."
    return "The other ways to count, in the table, give the same order."
