r"""A few graphs, or a few classes of images, in one picture or on one page."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from fognn.data.molecules import ATOMS
from fognn.report.drawings.graph_panels import draw_atoms, draw_blocks, draw_network, draw_tour
from fognn.report.drawings.molecules import has_rdkit, molecule_png, molecule_svg
from fognn.report.drawings.page import figure_png, figure_svg, page
from fognn.report.drawings.plots import COLOURS, grid, style_axis
from fognn.utils.files import write_whole

__all__ = ["KINDS", "Drawing", "check_output", "save_drawing"]

KINDS = {
    "pattern": "nodes coloured by label: which belong to the pattern?",
    "cluster": "nodes coloured by label, the block; a ring marks the node whose block is given",
    "molecule": "",
    "tour": "each point and its nearest others in grey; the edges that the tour uses in colour",
    "network": "actors, joined if they play in the same film; the larger, the more neighbours",
    "images": "a row for each class",
}
_LABELS = {"pattern": ["other", "pattern"], "cluster": [f"block {b}" for b in range(6)]}


@dataclass(frozen=True)
class Drawing:
    r"""The items of a drawing.

    Args:
        kind (str): One of :obj:`KINDS`.
        title (str): The title.
        captions (sequence of str): A caption for each item.
        items (sequence): Graphs, or for :obj:`"images"` the images of a class,
            :obj:`float` of shape :obj:`[N, C, H, W]`.
    """

    kind: str
    title: str
    captions: Sequence[str]
    items: Sequence[Any]

    @property
    def note(self) -> str:
        r"""The line below the title."""
        if self.kind != "molecule":
            return KINDS[self.kind]
        if has_rdkit():
            return "drawn by RDKit"
        return (
            "atoms and bonds as a plain network, for RDKit is not installed: "
            'pip install "fognn[chem]"'
        )


def check_output(path: Path) -> Path:
    r"""Raises if a file is neither a picture nor a page by its suffix."""
    if path.suffix.lower() not in (".png", ".html"):
        raise ValueError(f"output must end in .png or .html, got {str(path)!r}")
    return path


def save_drawing(drawing: Drawing, path: str | Path, table: str = "") -> Path:
    r"""Draws to a file, which is written whole or not at all.

    Args:
        drawing (Drawing): The items.
        path (str or Path): A file that ends in :obj:`.png`, or in
            :obj:`.html` for a page that needs no other file.
        table (str, optional): A table in HTML for the page. (default: none)
    """
    path = check_output(Path(path))
    if drawing.kind not in KINDS:
        raise ValueError(f"Drawing: kind must be one of {', '.join(KINDS)}, got {drawing.kind!r}")
    if not drawing.items or len(drawing.items) != len(drawing.captions):
        raise ValueError(
            f"Drawing: items must be at least one and as many as captions, got "
            f"{len(drawing.items)} and {len(drawing.captions)}"
        )
    content = (
        _picture(drawing)
        if path.suffix.lower() == ".png"
        else page(drawing.title, drawing.note, table, _figures(drawing)).encode()
    )
    with write_whole(path) as temporary:
        temporary.write_bytes(content)
    return path


def _figures(drawing: Drawing) -> list[str]:
    if drawing.kind == "molecule" and has_rdkit():
        pairs = zip(drawing.items, drawing.captions, strict=True)
        return [figure_svg(molecule_svg(graph), caption) for graph, caption in pairs]
    return [figure_png(_picture(drawing), drawing.title)]


def _picture(drawing: Drawing) -> bytes:
    if drawing.kind == "images":
        figure = _image_rows(drawing)
    else:
        figure, axes = grid(len(drawing.items), drawing.title, drawing.note)
        for axis, graph, caption in zip(axes, drawing.items, drawing.captions, strict=True):
            style_axis(axis, caption)
            _panel(axis, drawing.kind, graph)
        _legend(figure, axes[0])
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _panel(axis: Any, kind: str, graph: Data) -> None:
    if kind in _LABELS:
        draw_blocks(axis, graph, _LABELS[kind], ring=kind == "cluster")
    elif kind == "tour":
        draw_tour(axis, graph)
    elif kind == "network":
        draw_network(axis, graph, COLOURS[int(graph.y)])
    elif has_rdkit():
        _molecule(axis, graph)
    else:
        draw_atoms(axis, graph, ATOMS)


def _molecule(axis: Any, graph: Data) -> None:
    from matplotlib.image import imread

    axis.imshow(imread(io.BytesIO(molecule_png(graph))), interpolation="antialiased")


def _legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    width, height = figure.get_size_inches()
    figure.legend(
        handles, labels, loc="center left", bbox_to_anchor=(0.15 / width, 1 - 0.88 / height),
        borderpad=0, borderaxespad=0,
        ncols=len(labels), frameon=False, fontsize=9.5, handletextpad=0.3, columnspacing=1.2,
        markerscale=1.6,
    )  # fmt: skip


def _image_rows(drawing: Drawing) -> Any:
    columns = max(len(images) for images in drawing.items)
    panels = len(drawing.items) * columns
    figure, axes = grid(panels, drawing.title, drawing.note, columns, size=1.3)
    for row, (images, caption) in enumerate(zip(drawing.items, drawing.captions, strict=True)):
        for column, image in enumerate(images):
            axis = axes[row * columns + column]
            style_axis(axis, caption if column == 0 else "")
            _image(axis, image)
    return figure


def _image(axis: Any, image: Tensor) -> None:
    pixels = image.permute(1, 2, 0).squeeze(-1).clamp(0, 1).numpy()
    # Ink is 1 where there is one channel, and ink is dark.
    axis.imshow(pixels, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
