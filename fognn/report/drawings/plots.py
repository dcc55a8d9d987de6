r"""matplotlib, imported only when something is drawn, and the look of all drawings."""

from typing import Any

from fognn.report.text import shortened

__all__ = ["COLOURS", "grid", "pyplot", "style_axis"]

# Okabe and Ito's colours, which readers with any colour vision can tell apart; then more greys.
COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    *("#F0E442", "#000000", "#8C8C8C"),
)


_LONGEST = 120  # characters of a caption that could fit into a panel


def pyplot() -> Any:
    r"""matplotlib's figure class, without a window and without global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'drawings need matplotlib, which is not installed: pip install "fognn[report]"'
        ) from error
    return Figure


def grid(
    panels: int, title: str, note: str, columns: int = 4, size: float = 3.4
) -> tuple[Any, list[Any]]:
    r"""A figure with a title, a smaller line below it, and room for as many panels.

    Args:
        panels (int): The number of panels.
        title (str): The title.
        note (str): A line below the title.
        columns (int, optional): The most panels side by side. (default: :obj:`4`)
        size (float, optional): The side of a panel in inches. (default: :obj:`3.4`)
    """
    columns = min(columns, panels)
    rows = -(-panels // columns)
    # A single panel still needs the width of a line of text.
    width, top = max(columns * size, 7.0), 0.95
    height = rows * (size + 0.25) + top
    figure = pyplot()(figsize=(width, height), dpi=120, facecolor="white")
    left = 0.15 / width
    figure.text(left, 1 - 0.38 / height, title, fontsize=16, fontweight="bold", va="baseline")
    figure.text(left, 1 - 0.68 / height, note, fontsize=10.5, color="#444444", va="baseline")
    axes = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    figure.subplots_adjust(
        left=left, right=1 - left, top=1 - (top + 0.2) / height, bottom=0.12 / height,
        wspace=0.06, hspace=0.14,
    )  # fmt: skip
    for axis in axes:
        axis.set_axis_off()
    return figure, axes[:panels]


def style_axis(axis: Any, caption: str) -> None:
    r"""A square panel without ticks, with a thin frame and its caption above, which is shortened
    to the width of the panel."""
    axis.set_axis_on()
    axis.set(xticks=[], yticks=[])
    title = axis.set_title(caption, fontsize=10, loc="left", pad=5)
    width = axis.get_window_extent().width
    for most in range(min(len(caption), _LONGEST), 1, -1):
        title.set_text(shortened(caption, most))
        if title.get_window_extent().width <= width:
            break
    for spine in axis.spines.values():
        spine.set(color="#CCCCCC", linewidth=0.8)
