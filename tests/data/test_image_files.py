import os
import struct
import unicodedata
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fognn.data import read_image
from fognn.data.image_files import class_folders, image_files, printable, query_files
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")

# The modes that each format stores.
FORMATS = {
    "PNG": ("1", "L", "LA", "RGB", "RGBA", "P", "I;16"),
    "TIFF": ("1", "L", "LA", "RGB", "RGBA", "P", "CMYK", "I;16", "I", "F", "YCbCr", "LAB"),
    "JPEG": ("L", "RGB", "CMYK"),
    "GIF": ("1", "L", "P", "RGB", "RGBA"),
    "BMP": ("1", "L", "RGB", "RGBA", "P"),
    "WEBP": ("RGB", "RGBA", "L"),
    "PPM": ("1", "L", "RGB"),
}


def picture(mode: str, size: tuple[int, int], seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    width, height = size
    if mode == "I;16":
        return Image.fromarray(random.integers(0, 65536, (height, width), np.uint16))
    if mode in ("I", "F"):
        values = random.integers(0, 256, (height, width)) * (257 if mode == "I" else 1)
        return Image.fromarray(values.astype(np.int32 if mode == "I" else np.float32))
    if mode == "LAB":
        return Image.new("LAB", size, (120, 130, 140))
    pixels = random.integers(0, 256, (height, width, 4), np.uint8)
    if mode in ("LA", "RGBA"):
        return Image.fromarray(pixels).convert(mode)
    return Image.fromarray(pixels[..., :3]).convert(mode)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


@given(
    pair=st.sampled_from([(kind, mode) for kind, modes in FORMATS.items() for mode in modes]),
    size=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    side=st.integers(1, 40),
    channels=st.sampled_from([1, 3]),
)
@settings(deadline=None, max_examples=150)
def test_any_size_mode_and_format(
    folder: Path, pair: tuple[str, str], size: tuple[int, int], side: int, channels: int
) -> None:
    kind, mode = pair
    picture(mode, size).save(folder / "image", kind)
    found = read_image(folder / "image", side, channels)
    assert found.dtype == torch.uint8
    assert found.shape == (channels, side, side)
    assert found.is_contiguous()


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "WEBP"])
def test_an_image_of_the_size_is_not_changed(tmp_path: Path, kind: str) -> None:
    image = picture("RGB", (20, 20))
    image.save(tmp_path / "a", kind, **({"lossless": True} if kind == "WEBP" else {}))
    expected = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    assert torch.equal(read_image(tmp_path / "a", 20), expected)
    grey = torch.from_numpy(np.array(image.convert("L")))[None]
    grey_found = read_image(tmp_path / "a", 20, 1)
    assert torch.equal(grey_found, 255 - grey)


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P", "palette of RGBA", "RGB", "L"])
def test_transparent_pixels_are_white(tmp_path: Path, mode: str) -> None:
    """The left half is transparent, whatever its hidden colour is."""
    if mode in ("RGB", "L"):  # one colour is transparent
        image = Image.new(mode, (20, 20), (0, 0, 0) if mode == "RGB" else 0)
        image.paste((90, 90, 90) if mode == "RGB" else 90, (10, 0, 20, 20))
        image.save(tmp_path / "a.png", transparency=(0, 0, 0) if mode == "RGB" else 0)
    else:
        image = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
        image.paste((90, 90, 90, 255), (10, 0, 20, 20))
        if mode == "P":
            image = image.convert("RGB").quantize(2)
            image.info["transparency"] = image.getpixel((0, 0))
        elif mode.startswith("palette"):
            image = image.quantize(2)
        else:
            image = image.convert(mode)
        image.save(tmp_path / "a.png")
    found = read_image(tmp_path / "a.png", 20)
    assert (found[:, :, :10] == 255).all()
    assert (found[:, :, 10:] == 90).all()
    ink = read_image(tmp_path / "a.png", 20, 1)
    assert (ink[:, :, :10] == 0).all()
    assert (ink[:, :, 10:] == 165).all()


def test_half_transparent_pixels_are_mixed_with_white(tmp_path: Path) -> None:
    Image.new("RGBA", (9, 5), (0, 100, 200, 51)).save(tmp_path / "a.png")
    found = read_image(tmp_path / "a.png", 4)
    assert found[:, 0, 0].tolist() == pytest.approx([204, 224, 244], abs=1)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits(tmp_path: Path, kind: str) -> None:
    values = np.array([[0, 1000], [40_000, 65535]], np.uint16)
    Image.fromarray(values).save(tmp_path / "a", kind)
    assert read_image(tmp_path / "a", 2)[0].tolist() == [[0, 3], [156, 255]]
    Image.fromarray(values.astype(np.int32)).save(tmp_path / "a", "TIFF")
    assert read_image(tmp_path / "a", 2)[0].tolist() == [[0, 3], [156, 255]]


@pytest.mark.parametrize("scale", [1, 255])
def test_floating_point(tmp_path: Path, scale: int) -> None:
    values = np.array([[0, 0.5], [float("nan"), 1]], np.float32) * scale
    Image.fromarray(values).save(tmp_path / "a.tiff")
    assert read_image(tmp_path / "a.tiff", 2)[0].tolist() == [[0, 127], [0, 255]]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_of_exif(
    tmp_path: Path, kind: str, channels: int, orientation: int
) -> None:
    """Pillow's own function says what is upright."""
    from PIL import ImageOps

    pixels = np.zeros((12, 24, 3), np.uint8)
    pixels[:6, :12], pixels[6:, :12], pixels[:6, 12:] = (250, 0, 0), (0, 250, 0), (0, 0, 250)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {"exif": exif}
    if kind in ("JPEG", "WEBP"):
        options |= {"quality": 100} | ({"lossless": True} if kind == "WEBP" else {"subsampling": 0})
    Image.fromarray(pixels).save(tmp_path / "a", kind, **options)
    with Image.open(tmp_path / "a") as image:
        upright = ImageOps.exif_transpose(image)
        upright.save(tmp_path / "b.png", exif=b"")
    found = read_image(tmp_path / "a", 12, channels).int()
    assert (found - read_image(tmp_path / "b.png", 12, channels).int()).abs().max() <= 2


def test_colour_is_cut_at_the_centre_and_drawings_are_filled_up(tmp_path: Path) -> None:
    pixels = np.full((10, 30, 3), 255, np.uint8)
    pixels[:, 10:20] = 0
    for name, array in (("wide.png", pixels), ("high.png", pixels.transpose(1, 0, 2).copy())):
        Image.fromarray(array).save(tmp_path / name)
        assert (read_image(tmp_path / name, 10) == 0).all()
    ink = read_image(tmp_path / "wide.png", 30, 1)
    assert (ink[:, 10:20, 10:20] == 255).all()
    assert int((ink > 0).sum()) == 100
    high = read_image(tmp_path / "high.png", 30, 1)
    assert torch.equal(high, ink.transpose(1, 2))


def test_drawings_are_read_as_omniglots(tmp_path: Path) -> None:
    image = picture("1", (105, 105))
    image.save(tmp_path / "a.png")
    small = image.convert("L").resize((28, 28), Image.Resampling.LANCZOS)
    expected = torch.from_numpy(255 - np.asarray(small))[None]
    assert torch.equal(read_image(tmp_path / "a.png", 28, 1), expected)


@pytest.mark.parametrize("size", [(1, 60_000), (60_000, 1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_long_and_thin(tmp_path: Path, size: tuple[int, int], channels: int) -> None:
    """Filling up to a square first would take gigabytes."""
    Image.new("L", size, 7).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", 28, channels).shape == (channels, 28, 28)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_frame_of_an_animation(tmp_path: Path, kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "lime")]
    frames[0].save(tmp_path / "a", kind, save_all=True, append_images=frames[1:])
    found = read_image(tmp_path / "a", 8)
    assert found[:, 4, 4].tolist() == pytest.approx([255, 0, 0], abs=4)


def png(width: int, height: int) -> bytes:
    """A PNG that says that it is so large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        sum_ = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + sum_

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be an image that Pillow can read"),
        (b"two cats and a dog\n" * 20, "must be an image that Pillow can read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "must be an image that Pillow"),
        (png(30_000, 30_000), "too many pixels, .* at most 89,478,485"),
        (png(10_000, 10_000), "too many pixels, .* at most 89,478,485"),
        (png(100, 100), "is not a whole image"),
    ],
)
def test_what_is_no_image(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "cat.png").write_bytes(content)
    with (
        warnings.catch_warnings(action="error"),
        pytest.raises(FileError, match=rf"cat\.png .*{message}") as caught,
    ):
        read_image(tmp_path / "cat.png")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"])
def test_half_of_an_image(tmp_path: Path, kind: str) -> None:
    picture("RGB", (60, 60)).save(tmp_path / "a", kind)
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content[: len(content) // 2])
    with pytest.raises(FileError, match=r"a (is not a whole image|must be an image)"):
        read_image(tmp_path / "a")


def test_other_arguments(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.png cannot be read"):
        read_image(tmp_path / "none.png")
    with pytest.raises(FileError, match="must be a regular file, it is a folder"):
        read_image(tmp_path)
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(FileError, match=r"pipe\.png must be a regular file, it is a pipe"):
        read_image(tmp_path / "pipe.png")
    with pytest.raises(ValueError, match="channels must be 1 or 3, got 4"):
        read_image(tmp_path / "none.png", 28, 4)


# Folders


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_natural_order(tmp_path: Path) -> None:
    names = ["a10.png", "a9.png", "A1.png", "b.png", "10.png", "2.png", "02.png", "É.png"]
    found = [path.name for path in image_files(touch(tmp_path, *names))]
    assert found == ["02.png", "2.png", "10.png", "A1.png", "a9.png", "a10.png", "b.png", "É.png"]


def test_classes_in_order_without_the_files_of_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["class 10/b.png", "class 10/a.png", "class 2/1.png", "class 2/.DS_Store"]
    hidden = [".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX/x", ".git/config"]
    touch(tmp_path, *files, *hidden, "class 2/more/3.png")
    expected = {
        "class 2": [tmp_path / "class 2" / "1.png"],
        "class 10": [tmp_path / "class 10" / "a.png", tmp_path / "class 10" / "b.png"],
    }
    assert list(class_folders(tmp_path).items()) == list(expected.items())
    listed = Path.iterdir  # a file system may list its files in any order
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(sorted(listed(path), reverse=True)))
    assert list(class_folders(tmp_path).items()) == list(expected.items())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "one subfolder for each class, .*support has none"),
        ([".DS_Store"], "support has none"),
        (["cat/1.png", "loose.png"], r"loose\.png is not in the subfolder of a class"),
        (["cat/1.png", "notes.txt"], r"notes\.txt is not in the subfolder of a class"),
        (["cat/1.png", "dog/.DS_Store"], "dog must hold the images of its class, it has none$"),
        (["cat/1.png", "dog/more/1.png"], "dog must .*it has none .its subfolders are not read"),
    ],
)
def test_wrong_folders_of_classes(tmp_path: Path, files: list[str], message: str) -> None:
    (tmp_path / "support").mkdir()
    with pytest.raises(FileError, match=message):
        class_folders(touch(tmp_path / "support", *files))


def test_names_that_read_the_same(tmp_path: Path) -> None:
    names = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")]
    touch(tmp_path, *(f"{name}/1.png" for name in names))
    if len(list(tmp_path.iterdir())) == 2:  # not on all file systems
        with pytest.raises(FileError, match="both read the same"):
            class_folders(tmp_path)


def test_names_that_cannot_be_printed(tmp_path: Path) -> None:
    touch(tmp_path, "red\x1b[31m\n/1.png", "Cat/1.png", "cat/1.png")
    assert list(class_folders(tmp_path)) == ["Cat", "cat", "red\ufffd[31m\ufffd"]
    assert printable("a\udcffé 猫") == "a\ufffdé 猫"


def test_queries(tmp_path: Path) -> None:
    touch(tmp_path, "q/10.png", "q/9.png", "q/.hidden", "q/deeper/1.png", "empty/deeper/1.png")
    assert query_files(tmp_path / "q") == [tmp_path / "q" / "9.png", tmp_path / "q" / "10.png"]
    assert query_files(tmp_path / "q" / "9.png") == [tmp_path / "q" / "9.png"]
    with pytest.raises(FileError, match=r"query must hold images, .*empty has none .its subfolde"):
        query_files(tmp_path / "empty")
    with pytest.raises(FileError, match=r"query must name an existing .*nothing"):
        query_files(tmp_path / "nothing")
    with pytest.raises(FileError, match=r"support must name an existing folder.*nothing"):
        class_folders(tmp_path / "nothing")
