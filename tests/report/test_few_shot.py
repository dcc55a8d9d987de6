import io
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

from fognn.report.few_shot import prediction_page, prediction_table, write_prediction
from fognn.training import FewShotPrediction
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")


def answers(channels: int = 3, classes: tuple[str, ...] = ("cat", "dog"), images: int = 2):
    generator = torch.Generator().manual_seed(0)
    shape = (channels, 28, 28)
    labels = torch.arange(len(classes)).repeat_interleave(images)
    return FewShotPrediction(
        list(classes),
        [Path("q/one.png"), Path("q/two & <i>.png")],
        torch.tensor([[0.25, 0.75], [0.9, 0.1]]),
        torch.randint(0, 256, (2, *shape), dtype=torch.uint8, generator=generator),
        [Path(f"s/{classes[label]}/{n}.png") for n, label in enumerate(labels.tolist())],
        torch.randint(0, 256, (len(labels), *shape), dtype=torch.uint8, generator=generator),
        labels,
        ["trained for 5 classes, got 2: the others are left out"],
    )


class Tags(HTMLParser):
    """Collects tags, and checks that all are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes) -> None:
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_table() -> None:
    assert prediction_table(answers()).split("\n") == [
        "query          class    cat    dog",
        "-------------  -----  -----  -----",
        "one.png        dog    0.250  0.750",
        "two & <i>.png  cat    0.900  0.100",
    ]


def test_long_and_odd_names_in_a_table() -> None:
    found = answers(classes=("a" * 300, "b"))
    odd = FewShotPrediction(**vars(found) | {"queries": [Path("x\n\x1b[1m.png"), Path("y" * 200)]})
    lines = prediction_table(odd).split("\n")
    assert len(lines) == 4
    assert max(map(len, lines)) < 150
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("channels", [1, 3])
def test_page(channels: int) -> None:
    found = answers(channels)
    text = prediction_page(found)
    tags = Tags(text)
    assert tags.open == []
    assert "Trained for 5 classes, got 2: the others are left out." in text
    queries = [values for tag, values in tags.seen if tag == "img"]
    assert [values["alt"] for values in queries] == ["one.png", "two & <i>.png"]
    for values, expected in zip(queries, found.query_images, strict=True):
        check_image(values["src"] or "", expected)
    # The images of the support set are in the page once, and shown beside each query.
    rules = dict(re.findall(r"\.s(\d+) \{ background-image: url\(([^)]*)\)", text))
    assert sorted(rules) == ["0", "1", "2", "3"]
    for number, expected in enumerate(found.support_images):
        check_image(rules[str(number)], expected)
        shown = [v for tag, v in tags.seen if v.get("class") == f"image s{number}"]
        assert len(shown) == 2
        assert shown[0]["aria-label"] == f"{'cat' if number < 2 else 'dog'}: {number}.png"
    assert re.findall(r"<td>([\d.]+%)</td>", text) == ["25.0%", "75.0%", "90.0%", "10.0%"]
    best = re.findall(r"<tr class=best><td>(\w+)</td>", text)
    assert best == ["dog", "cat"]
    assert not re.search(r"https?:|<script|<link", text), "the page needs no other file"


def check_image(address: str, expected: torch.Tensor) -> None:
    data = re.fullmatch(r"data:image/(?:png|jpeg);base64,(.*)", address)
    assert data is not None
    pixels = np.asarray(Image.open(io.BytesIO(b64decode(data[1]))))
    assert pixels.shape[:2] == (28, 28)
    if len(expected) == 1:  # ink is dark
        assert np.array_equal(255 - pixels, expected[0].numpy())


def test_names_are_escaped() -> None:
    name = '<script>alert("1")</script>&'
    text = prediction_page(answers(classes=(name, "b")))
    Tags(text)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "two &amp; &lt;i&gt;.png" in text


def test_many_images_of_a_class_are_counted() -> None:
    text = prediction_page(answers(images=13))
    assert text.count(" and 3 more") == 4
    assert len(re.findall(r"\.s\d+ \{", text)) == 20


def test_files(tmp_path: Path) -> None:
    found = answers()
    write_prediction(found)
    write_prediction(found, tmp_path / "new" / "a.csv", tmp_path / "a.html")
    assert (tmp_path / "new" / "a.csv").read_text() == found.to_csv()
    assert (tmp_path / "a.html").read_text() == prediction_page(found)
    write_prediction(found, csv=str(tmp_path / "b.csv"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "b.csv", "new"]


def test_wrong_files_and_nothing_is_written(tmp_path: Path) -> None:
    Image.new("L", (3, 3)).save(tmp_path / "one.png")
    before = (tmp_path / "one.png").read_bytes()
    found = FewShotPrediction(**vars(answers()) | {"queries": [tmp_path / "one.png"] * 2})
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"csv must be another file than the images, .*one\.png"):
        write_prediction(found, tmp_path / "one.png")
    with pytest.raises(ValueError, match=r"html must be another file than csv, got '.*a\.csv'"):
        write_prediction(found, tmp_path / "a.csv", tmp_path / "folder" / ".." / "a.csv")
    with pytest.raises(ValueError, match=r"html must be a file to write, got the folder"):
        write_prediction(found, tmp_path / "a.csv", tmp_path / "folder")
    with pytest.raises((FileError, OSError), match="file"):
        write_prediction(found, tmp_path / "a.csv", tmp_path / "file" / "a.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder", "one.png"]
    assert (tmp_path / "one.png").read_bytes() == before
