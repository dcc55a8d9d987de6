"""CIFAR-FS, miniImageNet and Omniglot."""

import gzip
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from fognn.data import CIFARFS, MiniImageNet, Omniglot
from fognn.data import images as module
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")
SPLITS = [("train", 64), ("val", 16), ("test", 20)]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def stored(tmp_path: Path, name: str) -> list[Path]:
    return list((tmp_path / "cache" / name / "processed").glob("*.pt"))


@pytest.mark.parametrize(("split", "classes"), SPLITS)
def test_real_cifar_fs(real_data, split, classes):
    images = CIFARFS(split, data=real_data)
    assert len(set(images.classes)) == classes
    assert torch.bincount(images.labels).tolist() == [100] * classes
    assert repr(images) == f"CIFARFS({classes * 100} images, {classes} classes)"
    image, label = images[-1]
    assert label == classes - 1
    with np.load(real_data / "cifar_fs" / "cifar_fs_100.npz") as file:
        expected = file[f"x_{split}"][-1, -1].transpose(2, 0, 1) / 255
    np.testing.assert_allclose(image.numpy(), expected, rtol=1e-6)
    assert torch.equal(images.read(torch.tensor([0, len(images) - 1]))[1], image)
    with pytest.raises(IndexError):
        images[len(images)]


def test_wrong_cifar_fs_file(folder):
    with pytest.raises(
        FileError, match=r"cifar_fs_100\.npz was not found .* make it from CIFAR-100"
    ):
        CIFARFS("val", data=folder)
    path = folder / "cifar_fs" / "cifar_fs_100.npz"
    path.parent.mkdir()
    np.savez(path, x_val=np.zeros((15, 2, 32, 32, 3), np.uint8), c_val=np.array(["a"]))
    with pytest.raises(FileError, match="x_val must have shape"):
        CIFARFS("val", data=folder)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(FileError, match=r"cifar_fs_100\.npz is truncated or corrupt"):
        CIFARFS("val", data=folder)


@pytest.mark.parametrize("kind", [CIFARFS, MiniImageNet, Omniglot])
def test_wrong_split(kind):
    with pytest.raises(ValueError, match="split must be one of"):
        kind(split="dev")


# miniImageNet

ROWS = [
    ("n0185567200000003.jpg", "n01855672"),
    ("n0185567200000013.jpg", "n01855672"),
    ("n0153282900000005.jpg", "n01532829"),
    ("n0209124400000016.jpg", "n02091244"),
]


def write_table(data: Path, rows, name="val.csv.gz") -> None:
    text = "\n".join(",".join(row) for row in [("filename", "label"), *rows]) + "\n"
    path = data / "miniimagenet_splits" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())


@pytest.fixture
def pictures(folder) -> Path:
    """A small made-up folder with the layout of the real split."""
    images = folder / "miniimagenet" / "images"
    images.mkdir(parents=True)
    write_table(folder, ROWS)
    for i, (name, _) in enumerate(ROWS):
        # Left half one colour, right half another; ImageNet has grey pictures too.
        picture = np.zeros((90 + 10 * i, 120, 3), dtype=np.uint8)
        picture[:, :60] = [40 * i, 255 - 40 * i, 80]
        mode = Image.fromarray(picture).convert("L" if i == 3 else "RGB")
        mode.save(images / name, "JPEG", quality=98)
    return folder


def test_folder_of_images(pictures, tmp_path):
    images = MiniImageNet(split="val", data=pictures)
    assert images.images.shape == (4, 3, 84, 84)
    assert images.classes == ["n01532829", "n01855672", "n02091244"]
    assert images.labels.tolist() == [1, 1, 0, 2]
    for i in range(3):
        image, _ = images[i]
        left, right = 255 * image[:, 42, 20], 255 * image[:, 42, 64]
        expected = torch.tensor([40.0 * i, 255.0 - 40 * i, 80.0])
        torch.testing.assert_close(left, expected, atol=4, rtol=0)
        torch.testing.assert_close(right, torch.zeros(3), atol=4, rtol=0)

    # The pictures are made small once, and again when one of them is exchanged.
    again = MiniImageNet(split="val", data=pictures)
    assert torch.equal(again.images, images.images)
    assert len(stored(tmp_path, "miniimagenet")) == 1
    path = pictures / "miniimagenet" / "images" / ROWS[0][0]
    Image.new("RGB", (50, 50), (9, 9, 9)).save(path)
    assert MiniImageNet(split="val", data=pictures).images[0].float().mean() < 20
    assert len(stored(tmp_path, "miniimagenet")) == 2


def test_wrong_images_and_tables(pictures):
    write_table(pictures, [*ROWS, ("a.jpg", "a"), ("b.jpg", "a")])
    with pytest.raises(FileError, match=r"a\.jpg is not there, nor are 1 others of 6 images"):
        MiniImageNet(split="val", data=pictures)
    write_table(pictures, ROWS)
    path = pictures / "miniimagenet" / "images" / ROWS[1][0]
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(FileError, match=rf"{ROWS[1][0]} is truncated or corrupt"):
        MiniImageNet(split="val", data=pictures)


def test_no_mini_imagenet(folder):
    with pytest.raises(FileError, match=r"test\.csv was not found"):
        MiniImageNet(split="test", data=folder)
    write_table(folder, ROWS[:2], "val.csv")
    with pytest.raises(FileError, match="licence forbids"):
        MiniImageNet(split="val", data=folder)


# Omniglot


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """One folder for the small images, so that the module makes them once."""
    return tmp_path_factory.mktemp("omniglot")


@pytest.fixture
def kept(cache, monkeypatch) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(cache))


def test_real_archives(real_data, kept):
    train = Omniglot("train", rotations=False, data=real_data)
    test = Omniglot("test", rotations=False, data=real_data)
    assert (len(train.classes), len(train)) == (1200, 24_000)
    assert (len(test.classes), len(test)) == (423, 8_460)
    assert len(set(train.classes) | set(test.classes)) == 1623
    assert torch.bincount(test.labels).tolist() == [20] * 423
    image, label = test[25]
    assert label == 1
    assert image.shape == (1, 28, 28)
    # Ink is bright and covers little of the paper.
    assert 0.02 < train.images[::97].float().div(255).mean() < 0.25
    # The drawing itself, read and made small here.
    number = train.classes.index("Alphabet_of_the_Magi/character01")
    with zipfile.ZipFile(real_data / "omniglot" / "images_background.zip") as file:
        name = "images_background/Alphabet_of_the_Magi/character01/0709_02.png"
        drawing = Image.open(io.BytesIO(file.read(name)))
    expected = 1 - np.asarray(drawing.convert("L").resize((28, 28), Image.LANCZOS)) / 255
    np.testing.assert_allclose(train[20 * number + 1][0][0].numpy(), expected, atol=1e-6)


def test_real_seeds_and_validation(real_data, kept):
    def names(split: str, **kwargs) -> list[str]:
        return Omniglot(split, rotations=False, data=real_data, **kwargs).classes

    whole = names("train")
    train, val = names("train", validation=172), names("val", validation=172)
    assert (len(train), len(val)) == (1028, 172)
    assert train + val == whole
    assert names("test", validation=172) == names("test")
    assert set(names("train", seed=1)) != set(whole)
    with pytest.raises(ValueError, match="validation must be"):
        names("val")


def test_real_rotations(real_data, kept):
    plain = Omniglot("test", rotations=False, data=real_data)
    turned = Omniglot("test", data=real_data)
    assert torch.bincount(turned.labels).tolist() == [20] * (4 * 423)
    for k in range(4):
        image, label = turned[k * len(plain) + 45]
        np.testing.assert_array_equal(image[0], np.rot90(plain[45][0][0], k))
        assert turned.classes[label] == f"{plain.classes[2]}/rot{90 * k:03}"


def write_archive(data: Path, name: str, **changes: bytes) -> Path:
    buffer = io.BytesIO()
    Image.new("1", (105, 105), 1).save(buffer, "PNG")
    members = {f"01/0001_{i:02}.png": buffer.getvalue() for i in range(1, 21)} | changes
    path = data / "omniglot" / f"{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("__MACOSX/a/character01/0001_01.png", b"")
        for member, content in members.items():
            file.writestr(f"{name}/Tengwar/character{member}", content)
    return path


@pytest.fixture
def small(folder, monkeypatch) -> Path:
    """A folder with archives of one character each; the official ones have 964 and 659."""
    monkeypatch.setattr(module, "_CHARACTERS", {"images_background": 1, "images_evaluation": 1})
    monkeypatch.setattr(module, "_TRAIN", 1)
    for name in ("images_background", "images_evaluation"):
        write_archive(folder, name)
    return folder


def test_small_archives(small, tmp_path):
    for _ in range(2):
        images = Omniglot(split="test", rotations=False, data=small)
        assert repr(images) == "Omniglot(20 images, 1 classes)"
        assert images.images.sum() == 0
    (path,) = stored(tmp_path, "omniglot")
    # A damaged file is made again, and another archive is another file.
    path.write_bytes(path.read_bytes()[:500])
    assert len(Omniglot(split="test", rotations=False, data=small)) == 20
    write_archive(small, "images_background", extra=b"")
    Omniglot(split="test", data=small)
    assert len(stored(tmp_path, "omniglot")) == 2


@pytest.mark.parametrize("changes", [{"01/0001_01.png": b"no image"}, {"01/0001_21.png": b""}])
def test_wrong_archives(small, changes):
    write_archive(small, "images_background", **changes)
    with pytest.raises(FileError, match=r"images_background\.zip is"):
        Omniglot(data=small)


def test_truncated_archive(small):
    path = small / "omniglot" / "images_evaluation.zip"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(FileError, match=r"images_evaluation\.zip is truncated or corrupt"):
        Omniglot(data=small)


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="Pillow"):
        module.image_module()
