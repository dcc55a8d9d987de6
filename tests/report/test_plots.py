import sys

import pytest

from fognn.report.plots import COLOURS, INK, LINES, RULE, grid, line_colour, pyplot, style_axis


@pytest.mark.parametrize(
    ("panels", "rows", "columns"), [(1, 1, 1), (3, 1, 3), (4, 1, 4), (9, 3, 4)]
)
def test_grid(panels: int, rows: int, columns: int) -> None:
    figure, axes = grid(panels, "title", "note")
    assert len(axes) == panels
    spec = axes[0].get_subplotspec().get_gridspec()
    assert (spec.nrows, spec.ncols) == (rows, columns)
    assert [text.get_text() for text in figure.texts] == ["title", "note"]
    assert sum(axis.axison for axis in figure.axes) == 0
    style_axis(axes[0], "caption")
    assert axes[0].axison
    assert axes[0].get_title("left") == "caption"
    # Square panels that do not touch the text above them.
    box = axes[0].get_position()
    width, height = figure.get_size_inches()
    assert box.y1 * height < height - 0.68
    if panels > 1:
        assert box.width * width == pytest.approx(box.height * height, rel=0.12)


def test_no_global_state(monkeypatch: pytest.MonkeyPatch) -> None:
    # pyplot would keep each figure for ever, and look for a screen. Another test may have
    # imported it; torchmetrics does.
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    grid(1, "title", "note")
    assert "matplotlib.pyplot" not in sys.modules


def test_colours_differ() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    for shade in zip(*LINES, strict=True):
        assert len(set(shade)) == len(LINES)
    assert {light for light, _ in LINES} <= set(COLOURS)


def test_colours_that_stand_for_others() -> None:
    stand_ins = [INK, RULE, *(line_colour(series) for series in range(len(LINES)))]
    assert len(set(stand_ins)) == len(stand_ins)
    assert not {colour.lower() for colour in COLOURS} & set(stand_ins)
    assert line_colour(len(LINES) + 1) == line_colour(1)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "fognn\[report\]"'):
        pyplot()
