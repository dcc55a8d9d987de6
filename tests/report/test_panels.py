"""The panels of drawings, their grid, and the page that contains them."""

import base64
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from wcag import contrast

from fognn.data.molecules import ATOMS
from fognn.report.drawings.graph_panels import draw_atoms, draw_blocks, draw_network, draw_tour
from fognn.report.drawings.page import figure_png, figure_svg, page, table_html
from fognn.report.drawings.plots import COLOURS, grid, pyplot, style_axis
from fognn.report.style import LINES, PAPER


@pytest.fixture
def axis():
    return grid(1, "", "")[1][0]


def lines(axis) -> list[int]:
    return [
        len(collection.get_segments()) for collection in axis.collections if is_line(collection)
    ]


def is_line(collection) -> bool:
    return hasattr(collection, "get_segments")


def points(axis) -> dict[str, np.ndarray]:
    return {c.get_label(): c.get_offsets() for c in axis.collections if not is_line(c)}


def both(*edges: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(edges + tuple((v, u) for u, v in edges)).t()


def test_blocks(axis) -> None:
    graph = Data(
        x=torch.tensor([0, 1, 0, 0, 2]),
        y=torch.tensor([0, 0, 1, 1, 1]),
        edge_index=both((0, 1), (1, 2), (2, 3), (3, 4), (0, 4)),
    )
    draw_blocks(axis, graph, ["a", "b"], ring=True)
    assert lines(axis) == [2, 1, 2]  # between, inside a, inside b
    got = points(axis)
    assert {name: len(places) for name, places in got.items()} == {"a": 2, "b": 3, "given": 2}
    assert got["given"][0].tolist() in got["a"].tolist()
    assert got["given"][1].tolist() in got["b"].tolist()
    colours = [c.get_facecolor()[0].tolist() for c in axis.collections if c.get_label() in "ab"]
    assert colours[0] != colours[1]


@pytest.mark.parametrize("labels", [1, 2, 6])
def test_discs_do_not_overlap(axis, labels: int) -> None:
    y = torch.arange(labels).repeat_interleave(torch.arange(labels) * 7 + 5)
    graph = Data(x=torch.zeros(len(y)), y=y, edge_index=torch.empty(2, 0, dtype=torch.int64))
    names = [f"block {label}" for label in range(labels)]
    draw_blocks(axis, graph, names)
    discs = [np.asarray(places) for places in points(axis).values()]
    # The first node of a sunflower is next to its middle.
    radii = [np.linalg.norm(disc - disc[0], axis=1).max() for disc in discs]
    for one in range(labels):
        for other in range(one):
            apart = np.linalg.norm(discs[one][0] - discs[other][0])
            assert apart > 0.9 * (radii[one] + radii[other])
            between = np.linalg.norm(discs[one][:, None] - discs[other][None], axis=2)
            assert between.min() > 0.5  # nodes of two discs never meet


def test_a_label_that_no_node_has(axis) -> None:
    graph = Data(x=torch.zeros(2), y=torch.tensor([0, 2]), edge_index=both((0, 1)))
    draw_blocks(axis, graph, ["a", "b", "c"])
    assert [len(places) for places in points(axis).values()] == [1, 0, 1]


def test_tour(axis) -> None:
    graph = Data(
        x=torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        y=torch.tensor([1, 0, 1]),
    )
    draw_tour(axis, graph)
    assert lines(axis) == [3, 2]
    assert np.allclose(points(axis)["point"], graph.x.numpy())
    assert axis.get_xlim()[0] < 0 < 1 < axis.get_xlim()[1]


def test_network(axis) -> None:
    graph = Data(x=torch.ones(4, 1), edge_index=both((0, 1), (0, 2), (1, 2)))  # node 3 is alone
    draw_network(axis, graph, COLOURS[2])
    assert lines(axis) == [3]
    (scatter,) = [c for c in axis.collections if not is_line(c)]
    sizes = scatter.get_sizes()
    assert sizes[0] == sizes[1] > sizes[3]
    assert np.isfinite(scatter.get_offsets()).all()


def test_network_of_one_node(axis) -> None:
    draw_network(axis, Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0).long()), COLOURS[0])
    assert lines(axis) == [0]


def test_atoms(axis) -> None:
    graph = Data(
        x=torch.tensor([0, 1, 7]),
        edge_index=torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]]),
        edge_attr=torch.tensor([2, 2, 1, 1]),
    )
    draw_atoms(axis, graph, ATOMS)
    assert [text.get_text() for text in axis.texts] == ["C", "O", "O -"]
    assert lines(axis) == [1, 1, 0]


# The grid of panels


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


@pytest.mark.parametrize("many", [1, 4])
def test_long_captions_do_not_overlap(many: int) -> None:
    axes = grid(many, "title", "note")[1]
    captions = ["W" * 300, "c1ccccc1" * 9 + ", y = 1.234", "CCO, y = 0.5", ""]
    for axis, caption in zip(axes, captions, strict=False):
        style_axis(axis, caption)
        assert axis._left_title.get_window_extent().x1 <= axis.get_window_extent().x1
    shown = [axis.get_title("left") for axis in axes]
    assert shown[0].startswith("WW")
    assert "…" in shown[0]
    if many == 4:
        assert shown[1].startswith("c1ccccc1")
        assert shown[1].endswith(", y = 1.234")
        assert shown[2:] == captions[2:]


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


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "fognn\[report\]"'):
        pyplot()


# The page


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_page_is_whole_and_needs_nothing_else() -> None:
    table = table_html(["a", "b"], [["1", "<2>"]])
    figures = [figure_png(b"bytes", 'cap "one"'), figure_svg("<svg></svg>", 'two & "three"')]
    text = page("A < B", "note <&>", table, figures)
    reader = Reader(text)
    assert reader.open == []
    for expected in ("A < B", "note <&>", "<2>", 'two & "three"'):
        assert expected in reader.texts
    (image,) = [attributes for tag, attributes in reader.tags if tag == "img"]
    assert image["alt"] == 'cap "one"'
    head, content = str(image["src"]).split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(content) == b"bytes"
    (drawing,) = [attributes for tag, attributes in reader.tags if tag == "svg"]
    assert drawing == {"role": "img", "aria-label": 'two & "three"'}
    assert "http" not in text


def test_a_long_caption_is_whole_in_its_title() -> None:
    smiles = "C(C)" * 50 + "<&>"
    figures = [figure_svg("<svg></svg>", caption) for caption in (smiles, "C")]
    reader = Reader(page("", "", "", figures))
    titles = [attributes.get("title") for tag, attributes in reader.tags if tag == "figcaption"]
    assert titles == [smiles, None]
    (shown,) = [text for text in reader.texts if "…" in text]
    assert len(shown) == 120
    assert shown.startswith("C(C)")
    assert shown.endswith("C(C)<&>")


@pytest.mark.parametrize("dark", [False, True])
def test_all_can_be_read_on_light_and_on_dark(dark: bool) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    text = page("", "", "", [])
    light_part, dark_part = text.split("@media (prefers-color-scheme: dark)")
    part = dark_part if dark else light_part
    colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-fA-F]{6});", part))
    assert colours["paper"] == PAPER[dark]
    # WCAG 2: 4.5 for text, 3 for lines that carry meaning.
    assert contrast(colours["ink"], colours["paper"]) > 10
    assert contrast(colours["soft"], colours["paper"]) > 4.5
    for series in range(len(LINES)):
        assert contrast(colours[f"line-{series}"], colours["paper"]) >= 3, series
