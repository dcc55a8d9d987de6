import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from fognn.data import omniglot
from fognn.data.omniglot import Omniglot
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """One folder for the small images, so that the module makes them once."""
    return tmp_path_factory.mktemp("omniglot")


def test_real_archives(real_data, kept):
    train = Omniglot(kept, "train", rotations=False, data=real_data)
    test = Omniglot(kept, "test", rotations=False, data=real_data)
    assert (len(train.classes), len(train)) == (1200, 24_000)
    assert (len(test.classes), len(test)) == (423, 8_460)
    assert len(set(train.classes) | set(test.classes)) == 1623
    assert torch.bincount(test.labels).tolist() == [20] * 423
    image, label = test[25]
    assert label == 1
    assert image.shape == (1, 28, 28)
    assert 0 <= image.min() <= image.max() <= 1
    # Ink is bright and covers little of the paper.
    assert 0.02 < train.images[::97].float().div(255).mean() < 0.25


@pytest.mark.slow
def test_real_listed_order(real_data, kept):
    train = Omniglot(kept, "train", rotations=False, seed=None, data=real_data)
    assert train.classes[0] == "Alphabet_of_the_Magi/character01"
    assert train.classes[:964] == sorted(train.classes[:964])
    # The evaluation set begins with this alphabet.
    assert train.classes[964] == "Angelic/character01"
    with zipfile.ZipFile(real_data / "omniglot" / "images_background.zip") as file:
        name = "images_background/Alphabet_of_the_Magi/character01/0709_02.png"
        drawing = Image.open(io.BytesIO(file.read(name)))
        expected = 1 - np.asarray(drawing.convert("L").resize((28, 28), Image.LANCZOS)) / 255
    np.testing.assert_allclose(train[1][0][0].numpy(), expected, atol=1e-6)
    # Where the small image has ink, the drawing has some too.
    ink = np.asarray(drawing.resize((28, 28), Image.BOX, reducing_gap=None).convert("L")) < 255
    assert ((train[1][0][0].numpy() > 0.5) & ~ink).mean() < 0.02


def test_real_seeds_and_validation(real_data, kept):
    def names(split: str, **kwargs) -> list[str]:
        return Omniglot(kept, split, rotations=False, data=real_data, **kwargs).classes

    whole = names("train")
    train, val = names("train", validation=172), names("val", validation=172)
    assert (len(train), len(val)) == (1028, 172)
    assert train + val == whole
    assert names("test", validation=172) == names("test")
    assert set(names("train", seed=1)) != set(whole)


def test_real_rotations(real_data, kept):
    plain = Omniglot(kept, "test", rotations=False, data=real_data)
    turned = Omniglot(kept, "test", data=real_data)
    assert len(turned.classes) == 4 * 423
    assert len(turned) == 4 * len(plain)
    assert torch.bincount(turned.labels).tolist() == [20] * (4 * 423)
    for k in range(4):
        image, label = turned[k * len(plain) + 45]
        np.testing.assert_array_equal(image[0], np.rot90(plain[45][0][0], k))
        assert turned.classes[label] == f"{plain.classes[2]}/rot{90 * k:03}"


def png(size=(105, 105)) -> bytes:
    buffer = io.BytesIO()
    Image.new("1", size, 1).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """A folder with archives of one character each; the official ones have 964 and 659."""
    monkeypatch.setattr(omniglot, "_CHARACTERS", {"images_background": 1, "images_evaluation": 1})
    monkeypatch.setattr(omniglot, "_TRAIN", 1)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    for name in ("images_background", "images_evaluation"):
        write_archive(tmp_path / "data", name)
    return tmp_path / "data"


def write_archive(data: Path, name: str, changes=None) -> Path:
    members = {f"{name}/Tengwar/character01/0001_{i:02}.png": png() for i in range(1, 21)}
    members |= {f"{name}/": b"", "__MACOSX/a/character01/0001_01.png": b"", **(changes or {})}
    path = data / "omniglot" / f"{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, content in members.items():
            file.writestr(member, content)
    return path


def test_small_archives(small, tmp_path):
    images = Omniglot(split="test", rotations=False, data=small)
    assert repr(images) == "Omniglot(20 images, 1 classes)"
    assert images.images.sum() == 0
    (kept,) = (tmp_path / "cache" / "omniglot" / "processed").glob("*.pt")
    # Another archive is another file.
    write_archive(small, "images_background", {"extra.txt": b""})
    Omniglot(split="test", data=small)
    assert len(list(kept.parent.glob("*.pt"))) == 2


FIRST = "images_background/Tengwar/character01/0001_01.png"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({FIRST: b"no image"}, r"damaged, its member '.*0001_01\.png' is not a drawing"),
        ({FIRST: png()[:60]}, r"damaged, its member '.*0001_01\.png' is not a drawing"),
        ({FIRST: png((5, 105))}, "105x105 pixels are expected"),
        ({FIRST: bytes(1 << 21)}, "too large for a drawing"),
        ({FIRST.replace("_01.png", "_21.png"): png()}, "must hold 1 characters with 20 drawings"),
        ({FIRST.replace("01/", "02/"): png()}, "it holds 2 with 21 in all"),
    ],
)
def test_wrong_archives(small, changes, words):
    write_archive(small, "images_background", changes)
    with pytest.raises(FileError, match=words):
        Omniglot(data=small)


def test_truncated_archive(small):
    path = small / "omniglot" / "images_evaluation.zip"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(FileError, match="not a whole zip file"):
        Omniglot(data=small)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"split": "valid"}, "split must be one of train, val, test, got 'valid'"),
        ({"split": "val"}, "validation must be an int of at least 1 .* got 0"),
        ({"validation": 1200}, "at least 0 and less than 1200 .* got 1200"),
        ({"validation": True}, "validation must be an int"),
        ({"seed": -1}, "seed must be None or an int of at least 0, got -1"),
    ],
)
def test_bad_arguments(kwargs, words):
    with pytest.raises(ValueError, match=words):
        Omniglot(**kwargs)
