from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fognn.data import read_image
from fognn.data.images import class_folders, query_files
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")

# The modes that each format stores.
FORMATS = {
    "PNG": ("1", "L", "LA", "RGB", "RGBA", "P", "I;16"),
    "TIFF": ("1", "L", "LA", "RGB", "RGBA", "P", "CMYK", "I;16", "I", "YCbCr", "LAB"),
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
    if mode == "I":
        return Image.fromarray(random.integers(0, 65536, (height, width)).astype(np.int32))
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


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits(tmp_path: Path, kind: str) -> None:
    values = np.array([[0, 1000], [40_000, 65535]], np.uint16)
    Image.fromarray(values).save(tmp_path / "a", kind)
    assert read_image(tmp_path / "a", 2)[0].tolist() == [[0, 3], [156, 255]]
    Image.fromarray(values.astype(np.int32)).save(tmp_path / "a", "TIFF")
    assert read_image(tmp_path / "a", 2)[0].tolist() == [[0, 3], [156, 255]]


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


@pytest.mark.parametrize("content", [b"", b"two cats and a dog\n" * 20])
def test_what_is_no_image(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cat.png").write_bytes(content)
    with pytest.raises(FileError, match=r"cat\.png must be an image"):
        read_image(tmp_path / "cat.png")


def test_half_of_an_image_and_other_arguments(tmp_path: Path) -> None:
    picture("RGB", (60, 60)).save(tmp_path / "a", "PNG")
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content[: len(content) // 2])
    for path in (tmp_path / "a", tmp_path / "none.png", tmp_path):
        with pytest.raises(FileError, match=f"{path} must be an image"):
            read_image(path)
    with pytest.raises(ValueError, match="channels must be 1 or 3, got 4"):
        read_image(tmp_path / "none.png", 28, 4)


# Folders


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_classes_in_order_without_the_files_of_systems(tmp_path: Path) -> None:
    files = ["dog/b.png", "dog/a.png", "cat/1.png", "cat/.DS_Store"]
    hidden = [".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX/x", ".git/config"]
    touch(tmp_path, *files, *hidden, "cat/more/3.png")
    assert list(class_folders(tmp_path).items()) == [
        ("cat", [tmp_path / "cat" / "1.png"]),
        ("dog", [tmp_path / "dog" / "a.png", tmp_path / "dog" / "b.png"]),
    ]


@pytest.mark.parametrize(
    "files",
    [[], [".DS_Store"], ["cat/1.png", "loose.png"], ["cat/1.png", "dog/more/1.png"]],
)
def test_wrong_folders_of_classes(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "s").mkdir()
    with pytest.raises(FileError, match="support"):
        class_folders(touch(tmp_path / "s", *files))
    with pytest.raises(FileError, match="support must name a folder"):
        class_folders(tmp_path / "nothing")


def test_queries(tmp_path: Path) -> None:
    touch(tmp_path, "q/b.png", "q/a.png", "q/.hidden", "q/deeper/1.png", "empty/deeper/1.png")
    assert query_files(tmp_path / "q") == [tmp_path / "q" / "a.png", tmp_path / "q" / "b.png"]
    assert query_files(tmp_path / "q" / "b.png") == [tmp_path / "q" / "b.png"]
    for wrong in ("empty", "nothing"):
        with pytest.raises(FileError, match="query must name"):
            query_files(tmp_path / wrong)
