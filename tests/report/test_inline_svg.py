import re
from xml.etree import ElementTree

import pytest

from fognn.report.inline_svg import inline_svg
from fognn.report.plots import INK, LINES, RULE, line_colour, pyplot


def drawing(name: str = "plot") -> str:
    figure = pyplot()(figsize=(3, 2))
    axis = figure.subplots()
    for series in range(len(LINES)):
        axis.plot([0, 1], [series, 1], color=line_colour(series), marker="o", markeredgewidth=0)
    axis.set_xlabel("epoch <&>", color=INK)
    axis.tick_params(color=RULE, labelcolor=INK)
    for spine in axis.spines.values():
        spine.set_color(RULE)
    return inline_svg(figure, name)


def test_colours_are_the_page_s() -> None:
    text = drawing()
    found = set(re.findall(r"var\(--([a-z0-9-]+)\)", text))
    assert found == {"ink", "rule", *(f"line-{i}" for i in range(len(LINES)))}
    # None of matplotlib's own is left, which would not change with the page.
    assert re.findall(r"#[0-9a-fA-F]{6}\b", text) == []


def test_it_is_xml_and_text_stays_text() -> None:
    text = drawing()
    assert text.startswith("<svg")
    tree = ElementTree.fromstring(text.replace("xlink:href", "href"))
    assert tree.attrib["viewBox"]
    assert "epoch <&>" in [element.text for element in tree.iter("text")]
    assert "<style" not in text  # it would hold for the whole page
    assert "http" not in text


def test_identifiers_are_its_own() -> None:
    one, other = drawing("one"), drawing("other")
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    # What it points to is there.
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', one))
    assert used
    assert used <= ids[0]


def test_the_same_figure_gives_the_same_text() -> None:
    assert drawing() == drawing()


@pytest.mark.parametrize("name", ["", "A", "a b", 'a"', "1"])
def test_bad_name(name: str) -> None:
    with pytest.raises(ValueError, match="name must be a word of a-z, 0-9 and -, got"):
        inline_svg(pyplot()(), name)
