import base64
import re
from html.parser import HTMLParser

import pytest
from wcag import contrast

from fognn.report.page import (
    PAPER,
    figure_png,
    figure_svg,
    page,
    panels,
    paragraph,
    points,
    section,
    table_html,
)
from fognn.report.plots import LINES


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
    parts = [section("C > D", [table, paragraph("e & f"), points(["g < h"])]), panels(figures)]
    text = page("A < B", "note <&>", parts)
    reader = Reader(text)
    assert reader.open == []
    for expected in ("A < B", "note <&>", "<2>", "C > D", "e & f", "g < h", 'two & "three"'):
        assert expected in reader.texts
    (image,) = [attributes for tag, attributes in reader.tags if tag == "img"]
    assert image["alt"] == 'cap "one"'
    head, content = str(image["src"]).split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(content) == b"bytes"
    (drawing,) = [attributes for tag, attributes in reader.tags if tag == "svg"]
    assert drawing == {"role": "img", "aria-label": 'two & "three"'}
    assert "http" not in text


def test_names_above_columns() -> None:
    reader = Reader(table_html(["a", "b", "c"], [["1", "2", "3"]], [("", 1), ("both", 2)]))
    assert reader.open == []
    spans = [attributes["colspan"] for tag, attributes in reader.tags if "colspan" in attributes]
    assert spans == ["1", "2"]
    assert [tag for tag, _ in reader.tags].count("tr") == 3
    assert [tag for tag, _ in Reader(table_html(["a"], [["1"]])).tags].count("tr") == 2


@pytest.mark.parametrize("dark", [False, True])
def test_all_can_be_read_on_light_and_on_dark(dark: bool) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    text = page("", "", [])
    light_part, dark_part = text.split("@media (prefers-color-scheme: dark)")
    part = dark_part if dark else light_part
    colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-fA-F]{6});", part))
    assert colours["paper"] == PAPER[dark]
    # WCAG 2: 4.5 for text, 3 for lines that carry meaning.
    assert contrast(colours["ink"], colours["paper"]) > 10
    assert contrast(colours["soft"], colours["paper"]) > 4.5
    for series in range(len(LINES)):
        assert contrast(colours[f"line-{series}"], colours["paper"]) >= 3, series
