r"""The answer of a comparison in words."""

import math
from typing import Any

import pandas as pd

from fognn.experiments.differences import Difference, difference_of
from fognn.experiments.wording import FEW, METRICS, joined, pluralize

__all__ = ["note_of", "sentence_of", "winner_of"]


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
    lines = list(frame.itertuples()) if len(frame) else []
    found = [(line, gap) for line in lines if (gap := difference_of(line)) is not None]
    if not found:
        return "No host has runs with and without FOG, so there is nothing to compare."
    parts = [_finding(line, gap) for line, gap in found if line.verdict != "inconclusive"]
    unclear = [(line, gap) for line, gap in found if line.verdict == "inconclusive"]
    if unclear:
        each = [f"{line.host}{note_of(line)} ({_amount(line, gap, True)})" for line, gap in unclear]
        over = joined(list(dict.fromkeys(_over(gap) for _, gap in unclear)))
        parts.append(f"with and without FOG, {joined(each)} over {over}: inconclusive")
    folds = any(gap.over == "fold" for _, gap in found)
    if any(line.verdict.startswith("maybe") for line, _ in found):
        why = "folds share training data" if folds else "another seed may show the opposite"
        parts.append(f"{FEW}: {why}")
    text = "; ".join(parts)
    text = f"{text[:1].upper()}{text[1:]}."
    if all(gap.low is None for _, gap in found):
        return text
    split = "folds, which share training data" if folds else "training seeds of one split"
    return f"{text} The intervals are over {split}."


def _finding(line: Any, gap: Difference) -> str:
    verb = "was" if line.verdict.startswith("maybe") else "is"
    adjective = line.verdict.removeprefix("maybe ")
    how = f"{verb} {adjective} than {line.host} by {_amount(line, gap)} over {_over(gap)}"
    return f"{line.network}{note_of(line)} {how}"


def _amount(line: Any, gap: Difference, signed: bool = False) -> str:
    r"""The difference with half its interval, to two digits of the latter, and its unit."""
    half = None if gap.low is None or gap.high is None else (gap.high - gap.low) / 2
    # Equal differences of all seeds have an interval of rounding errors.
    scale = half if half and half > 1e-4 * abs(gap.value) else abs(gap.value)
    digits = min(8, max(0, 1 - math.floor(math.log10(scale)))) if scale else 1
    text = f"{abs(gap.value):.{digits}f}"
    if signed and float(text):
        text = f"{'−' if gap.value < 0 else '+'}{text}"
    text += "" if half is None else f" ± {half:.{digits}f}"
    metric = METRICS[line.metric]
    return f"{text} points of {metric.label}" if metric.percent else f"{text} {metric.label}"


def _over(gap: Difference) -> str:
    return pluralize(gap.pairs, gap.over)


def note_of(line: Any) -> str:
    r"""Returns what tells a network from the same one in another comparison, in brackets."""
    return f" ({line.note})" if line.note else ""
