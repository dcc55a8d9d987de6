import sys

import pytest

from fognn.report.plots import COLOURS, grid, pyplot, style_axis


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


def test_no_global_state() -> None:
    # pyplot would keep each figure for ever, and look for a screen.
    grid(1, "title", "note")
    assert "matplotlib.pyplot" not in sys.modules


def test_colours_differ() -> None:
    assert len(set(COLOURS)) == len(COLOURS)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "fognn\[report\]"'):
        pyplot()
