r"""Curves over the epochs of runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fognn.report.inline_svg import inline_svg
from fognn.report.plots import INK, RULE, line_colour, pyplot

__all__ = ["Curve", "curves_svg", "swatch_svg"]

# Shapes tell series apart that have the same colour, or for a reader who sees none.
_SHAPES = ("o", "s", "^", "D", "v")
_MOST_SHAPES = 8  # on a curve
_LOG_RATIO = 30
_DASHES = (0, (4, 1.6))


@dataclass(frozen=True)
class Curve:
    r"""A curve: a value for each epoch, the first of which is 1.

    Args:
        values (sequence of float): The values; where one is not finite, there is a gap.
        series (int): Which colour and shape.
        dashed (bool, optional): Whether the line is dashed and without shapes.
        ring (int, optional): An epoch to mark with a ring.
    """

    values: Sequence[float]
    series: int
    dashed: bool = False
    ring: int | None = None


def curves_svg(curves: Sequence[Curve], label: str, name: str) -> str:
    r"""Curves in one plot, as a drawing for a page.

    The scale is logarithmic where the values are so far apart that nothing could be seen
    otherwise: a first epoch can have a loss of thousands.

    Args:
        curves (sequence of Curve): The curves.
        label (str): What the values are, with their unit.
        name (str): A word that no other drawing on the page has.
    """
    from matplotlib.ticker import MaxNLocator

    figure = pyplot()(figsize=(4.0, 2.9), layout="constrained")
    axis = figure.subplots()
    for curve in curves:
        _line(axis, curve)
    finite = [value for curve in curves for value in curve.values if math.isfinite(value)]
    if finite and min(finite) > 0 and max(finite) > _LOG_RATIO * min(finite):
        axis.set_yscale("log")
        label = f"{label}, log scale"
    longest = max([1, *(len(curve.values) for curve in curves)])
    margin = 0.03 * longest + 0.3
    axis.set_xlim(1 - min(margin, 0.9), longest + margin)  # there is no epoch 0
    axis.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    axis.set_xlabel("epoch", color=INK, fontsize=10)
    axis.set_ylabel(label, color=INK, fontsize=10)
    axis.tick_params(which="both", color=RULE, labelcolor=INK, labelsize=9.5)
    axis.grid(color=RULE, linewidth=0.8)
    axis.set_axisbelow(True)
    for side, spine in axis.spines.items():
        spine.set(color=RULE, visible=side in ("left", "bottom"))
    return inline_svg(figure, name)


def swatch_svg(series: int | None, dashed: bool, name: str) -> str:
    r"""A short piece of a curve, for a legend.

    Args:
        series (int, optional): Which colour and shape; :obj:`None` for a line of no series.
        dashed (bool): Whether the line is dashed.
        name (str): A word that no other drawing on the page has.
    """
    figure = pyplot()(figsize=(0.42, 0.17))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set(xlim=(0, 2), ylim=(-1, 1))
    if series is None:
        axis.plot(
            [0.1, 1.9], [0, 0], color=INK, linewidth=1.6, linestyle=_DASHES if dashed else "-"
        )
    else:
        look = _look(Curve([], series, dashed))
        axis.plot([0.1, 1, 1.9], [0, 0, 0], **look | {"markevery": [1]})
    return inline_svg(figure, name)


def _look(curve: Curve) -> dict[str, Any]:
    colour = line_colour(curve.series)
    if curve.dashed:
        return {"color": colour, "linestyle": _DASHES, "linewidth": 1.2}
    return {
        "color": colour, "linewidth": 1.8, "marker": _SHAPES[curve.series % len(_SHAPES)],
        "markersize": 4.5, "markeredgewidth": 0,
        "markevery": -(-len(curve.values) // _MOST_SHAPES) or 1,
    }  # fmt: skip


def _line(axis: Any, curve: Curve) -> None:
    epochs = range(1, len(curve.values) + 1)
    axis.plot(epochs, curve.values, zorder=2 if curve.dashed else 3, **_look(curve))
    if curve.ring is not None:
        axis.plot(
            [curve.ring], [curve.values[curve.ring - 1]], marker="o", markersize=9, zorder=4,
            markerfacecolor="none", markeredgecolor=line_colour(curve.series), markeredgewidth=1.6,
        )  # fmt: skip
