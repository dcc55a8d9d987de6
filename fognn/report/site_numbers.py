r"""Numbers as the site prints them, each with the value that a table is sorted by."""

from dataclasses import dataclass

from fognn.report.metric import Metric
from fognn.report.run_groups import NONE

__all__ = ["Cell", "cell", "interval", "plus_minus", "signed", "value"]


@dataclass(frozen=True)
class Cell:
    r"""A cell of a table: its text, what it is sorted by (nothing sorts at one end), and a small
    note below it."""

    text: str
    order: str
    note: str = ""


def cell(number: float | None, text: str, note: str = "") -> Cell:
    r"""A cell whose number may not be there."""
    return Cell(NONE, "") if number is None else Cell(text, repr(number), note)


def value(number: float, metric: Metric) -> str:
    r"""A metric's value with as many digits as the paper prints, or more."""
    return f"{number:.{3 if metric.percent else 4}f}"


def signed(number: float, metric: Metric) -> str:
    r"""The same with a sign, as a difference has."""
    text = value(abs(number), metric)
    if float(text) == 0:
        return text
    return f"{'−' if number < 0 else '+'}{text}"


def plus_minus(mean: float | None, sd: float | None, metric: Metric) -> Cell:
    r"""A mean with its standard deviation, if it has one."""
    if mean is None:
        return cell(None, "")
    text = value(mean, metric)
    return cell(mean, text if sd is None else f"{text} ± {value(sd, metric)}")


def interval(ends: tuple[float, float] | None, metric: Metric) -> str:
    r"""``[−0.1, +0.2]``, or nothing."""
    return "" if ends is None else f"[{', '.join(signed(end, metric) for end in ends)}]"
