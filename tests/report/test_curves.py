import math
import re
from xml.etree import ElementTree

import pytest

from fognn.report.curves import Curve, curves_svg, swatch_svg


def paths(text: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """The curves of a drawing: the style, and the points, of each path that has a line's colour."""
    tree = ElementTree.fromstring(text.replace("xlink:href", "href"))
    found = []
    for path in tree.iter("path"):
        style = path.attrib.get("style", "")
        if "var(--line" in style and path.attrib.get("clip-path"):
            numbers = re.findall(r"[ML] (\S+) (\S+)", path.attrib["d"])
            found.append((style, [(float(x), float(y)) for x, y in numbers]))
    return found


def words(text: str) -> list[str]:
    tree = ElementTree.fromstring(text.replace("xlink:href", "href"))
    return [element.text or "" for element in tree.iter("text")]


def test_curves_are_where_the_values_are() -> None:
    text = curves_svg([Curve([1, 2, 4], 0), Curve([2, 2, 2], 1, dashed=True)], "MAE", "plot")
    lines = paths(text)
    assert len(lines) == 2
    (solid, points), (dashed, flat) = sorted(lines, key=lambda line: "dasharray" in line[0])
    assert "--line-0" in solid
    assert "dasharray" not in solid
    assert "--line-1" in dashed
    assert "dasharray" in dashed
    # Heights go down as values go up, by as much; epochs are evenly apart.
    (x0, y0), (x1, y1), (x2, y2) = points
    assert y0 - y1 == pytest.approx((y1 - y2) / 2, abs=1e-3)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=1e-3)
    assert [y for _, y in flat] == pytest.approx([y1] * 3, abs=1e-3)
    assert [x for x, _ in flat] == pytest.approx([x0, x1, x2], abs=1e-3)


def test_axes_are_named() -> None:
    said = words(curves_svg([Curve([1, 2, 4], 0)], "balanced accuracy (%)", "plot"))
    assert "epoch" in said
    assert "balanced accuracy (%)" in said
    assert {"1", "2", "3"} <= set(said)
    assert "0" not in said  # there is no epoch 0


def test_a_gap_where_nothing_was_measured() -> None:
    text = curves_svg([Curve([1, math.nan, 3, 4, math.inf], 0)], "MAE", "plot")
    ((_, points),) = paths(text)
    assert len(points) == 3


@pytest.mark.parametrize(
    ("values", "log"), [([1.0, 29.0], False), ([1.0, 31.0], True), ([0.0, 31.0], False)]
)
def test_a_logarithmic_scale_where_it_is_needed(values: list[float], log: bool) -> None:
    assert ("loss, log scale" in words(curves_svg([Curve(values, 0)], "loss", "plot"))) == log


def test_ring() -> None:
    plain = curves_svg([Curve([1, 2, 4], 0)], "MAE", "plot")
    ringed = curves_svg([Curve([1, 2, 4], 0, ring=2)], "MAE", "plot")
    assert ringed.count("<use") == plain.count("<use") + 1


@pytest.mark.parametrize("values", [[], [1.0], [math.nan]])
def test_few_values(values: list[float]) -> None:
    text = curves_svg([Curve(values, 0)], "MAE", "plot")
    assert ElementTree.fromstring(text.replace("xlink:href", "href")).tag == "svg"
    # A single epoch is to be seen, as a shape.
    assert bool(re.search(r"<use [^>]*var\(--line-0\)", text)) == (values == [1.0])


def test_a_long_curve_is_not_hidden_by_its_shapes() -> None:
    def shapes(epochs: int) -> int:
        return curves_svg([Curve([1.0] * epochs, 0)], "MAE", "plot").count("var(--line-0)")

    assert shapes(8) == shapes(800)


def test_colours_that_begin_again_have_other_shapes() -> None:
    one, other = (swatch_svg(series, False, "s") for series in (0, 6))
    assert "var(--line-0)" in one
    assert "var(--line-0)" in other
    assert one != other


def test_swatch_of_no_series() -> None:
    solid, dashed = (swatch_svg(None, dashed, "s") for dashed in (False, True))
    assert "var(--ink)" in solid
    assert "var(--line" not in solid
    assert "dasharray" not in solid
    assert "dasharray" in dashed
