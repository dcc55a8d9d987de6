"""The answers of a few-shot network, and the lines of ``fognn verify``."""

import io
import re
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
import torch

from fognn.experiments.kept import Verification
from fognn.report.few_shot import prediction_table, write_prediction
from fognn.report.verified import show_verification
from fognn.training import FewShotPrediction

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


def test_table() -> None:
    assert prediction_table(answers()).split("\n") == [
        "query          class    cat    dog",
        "-------------  -----  -----  -----",
        "one.png        dog    0.250  0.750",
        "two & <i>.png  cat    0.900  0.100",
    ]


@pytest.mark.parametrize("channels", [1, 3])
def test_page_and_csv(tmp_path: Path, channels: int) -> None:
    found = answers(channels, images=12)
    write_prediction(found, tmp_path / "a.csv", tmp_path / "a.html")
    assert (tmp_path / "a.csv").read_text() == found.to_csv()
    text = (tmp_path / "a.html").read_text()
    assert "two &amp; &lt;i&gt;.png: cat" in text
    assert "trained for 5 classes" in text
    assert "and 2 more" in text  # of a class with twelve images
    assert "75.0 %" in text
    assert "http" not in text
    images = [b64decode(data) for data in re.findall(r'src="data:image/png;base64,([^"]+)"', text)]
    assert len(images) == 2 * 10 + 2
    for data, expected in zip(images[-2:], found.query_images, strict=True):
        with Image.open(io.BytesIO(data)) as image:
            pixels = torch.from_numpy(np.array(image))
        pixels = 255 - pixels[None] if channels == 1 else pixels.permute(2, 0, 1)  # ink is dark
        assert torch.equal(pixels, expected)


def test_an_image_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="html"):
        write_prediction(answers(), "a.csv", "q/one.png")
    assert list(tmp_path.iterdir()) == []


def test_verification_lists_files_that_no_line_names(capsys: pytest.CaptureFixture[str]) -> None:
    found = Verification((), Path("weights"), (Path("weights/zinc/x.txt"),), ("zinc/gin",))
    assert show_verification(found) is False
    output = capsys.readouterr().out
    assert "no line of the ledger names this file" in output
    assert "0 of 1 networks agree" in output
    assert "measured, without weights: zinc/gin" in output
    assert show_verification(Verification((), Path("weights"), (), ()))
