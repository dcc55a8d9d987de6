import base64
from html.parser import HTMLParser

from fognn.report.page import figure_png, figure_svg, page, table_html


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
    figures = [figure_png(b"bytes", 'cap "one"'), figure_svg("<svg></svg>", "two & three")]
    text = page("A < B", "note", table, figures)
    reader = Reader(text)
    assert reader.open == []
    assert "A < B" in reader.texts
    assert "<2>" in reader.texts
    assert "two & three" in reader.texts
    (image,) = [attributes for tag, attributes in reader.tags if tag == "img"]
    assert image["alt"] == 'cap "one"'
    head, content = str(image["src"]).split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(content) == b"bytes"
    assert "http" not in text
