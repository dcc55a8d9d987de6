import csv
import gzip
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from fognn.data.mini_imagenet import MiniImageNet, _read_table
from fognn.utils.errors import FileError

Image = pytest.importorskip("PIL.Image")

ROWS = [
    ("n0185567200000003.jpg", "n01855672"),
    ("n0185567200000013.jpg", "n01855672"),
    ("n0153282900000005.jpg", "n01532829"),
    ("n0209124400000016.jpg", "n02091244"),
]


def write_table(data: Path, rows, split="val", name="{}.csv.gz") -> Path:
    text = "\n".join(",".join(row) for row in [("filename", "label"), *rows]) + "\n"
    path = data / "miniimagenet_splits" / name.format(split)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A small made-up folder with the layout of the real split."""
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    folder = tmp_path / "data"
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


def test_folder_of_images(data, tmp_path):
    images = MiniImageNet(split="val", data=data)
    assert images.images.shape == (4, 3, 84, 84)
    assert images.classes == ["n01532829", "n01855672", "n02091244"]
    assert images.labels.tolist() == [1, 1, 0, 2]
    for i in range(3):
        image, _ = images[i]
        left, right = 255 * image[:, 42, 20], 255 * image[:, 42, 64]
        expected = torch.tensor([40.0 * i, 255.0 - 40 * i, 80.0])
        torch.testing.assert_close(left, expected, atol=4, rtol=0)
        torch.testing.assert_close(right, torch.zeros(3), atol=4, rtol=0)
    assert torch.equal(images[3][0][0], images[3][0][2])

    # The pictures are made small once, and again when one of them is exchanged.
    kept = tmp_path / "cache" / "miniimagenet" / "processed"
    assert len(list(kept.glob("val_*.pt"))) == 1
    again = MiniImageNet(split="val", images=data / "miniimagenet" / "images", data=data)
    assert torch.equal(again.images, images.images)
    assert len(list(kept.glob("val_*.pt"))) == 1
    Image.new("RGB", (50, 50), (9, 9, 9)).save(data / "miniimagenet" / "images" / ROWS[0][0])
    changed = MiniImageNet(split="val", data=data)
    assert changed.images[0].float().mean() < 20
    assert len(list(kept.glob("val_*.pt"))) == 2


def test_plain_table_and_own_root(data, tmp_path):
    (data / "miniimagenet_splits" / "val.csv.gz").unlink()
    write_table(data, ROWS[:2], name="{}.csv")
    images = MiniImageNet(tmp_path / "mine", "val", data=data)
    assert repr(images) == "MiniImageNet(2 images, 1 classes)"
    assert len(list((tmp_path / "mine" / "processed").glob("*.pt"))) == 1


@pytest.mark.parametrize("protocol", [2, 4])
def test_cached_pickle(data, protocol):
    pictures = np.random.default_rng(0).integers(0, 256, (6, 84, 84, 3), dtype=np.uint8)
    groups = {"n02": [0, 2, 4], "n01": np.array([1, 3, 5])}
    path = data / "miniimagenet" / "mini-imagenet-cache-test.pkl"
    path.write_bytes(pickle.dumps({"image_data": pictures, "class_dict": groups}, protocol))
    images = MiniImageNet(split="test", data=data)
    assert images.classes == ["n01", "n02"]
    assert images.labels.tolist() == [1, 0, 1, 0, 1, 0]
    np.testing.assert_allclose(images[3][0], pictures[3].transpose(2, 0, 1) / 255, rtol=1e-6)


GOOD = np.zeros((2, 84, 84, 3), np.uint8)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "must hold image_data and class_dict"),
        ({"image_data": GOOD}, "must hold image_data and class_dict"),
        ({"image_data": GOOD.astype(float), "class_dict": {"a": [0]}}, "got float64"),
        ({"image_data": GOOD, "class_dict": {"a": [0]}}, "image 1 belongs to no class"),
        ({"image_data": GOOD, "class_dict": {"a": [0, 1, 2]}}, "names image 2, there are 2"),
        ({"image_data": GOOD, "class_dict": {"a": [0, -1]}}, "names image -1, there are 2"),
        ({"image_data": GOOD, "class_dict": {"a": ["x", "y"]}}, "must be numbers of images"),
        ({"image_data": print, "class_dict": {}}, "is not read, it names builtins.print"),
    ],
)
def test_wrong_cached_pickle(data, content, words):
    path = data / "miniimagenet" / "mini-imagenet-cache-test.pkl"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(FileError, match=words):
        MiniImageNet(split="test", data=data)


def test_missing_images(data):
    write_table(data, [*ROWS, ("a.jpg", "a"), ("b.jpg", "a")])
    with pytest.raises(FileError, match=r"a\.jpg is not there, nor are 1 others of 6 images"):
        MiniImageNet(split="val", data=data)


def test_broken_image(data):
    path = data / "miniimagenet" / "images" / ROWS[1][0]
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(FileError, match=rf"{ROWS[1][0]} is not a whole image"):
        MiniImageNet(split="val", data=data)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("../secret.jpg", "a")], "line 2 must be a file name and a label"),
        ([ROWS[0], ("only",)], "line 3 must be a file name and a label"),
        ([], "names no images"),
    ],
)
def test_wrong_table(data, rows, words):
    write_table(data, rows)
    with pytest.raises(FileError, match=words):
        MiniImageNet(split="val", data=data)


def test_broken_table(data):
    path = data / "miniimagenet_splits" / "val.csv.gz"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileError, match="not a whole table"):
        MiniImageNet(split="val", data=data)
    path.write_bytes(gzip.compress(b"image,class\n"))
    with pytest.raises(FileError, match="line 1 must be 'filename,label'"):
        MiniImageNet(split="val", data=data)


def test_nothing_there(data, tmp_path):
    with pytest.raises(FileError, match=r"test\.csv is neither in the data folder nor"):
        MiniImageNet(split="test", data=data)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="licence forbids its download: put miniimagenet/mini-im"):
        MiniImageNet(data=tmp_path / "empty")
    with pytest.raises(FileError, match=r"images must name an existing folder, got '.*nowhere'"):
        MiniImageNet(images=tmp_path / "nowhere", data=data)
    with pytest.raises(ValueError, match="split must be one of train, val, test, got 'dev'"):
        MiniImageNet(split="dev")


@pytest.mark.parametrize(("split", "classes"), [("train", 64), ("val", 16), ("test", 20)])
def test_real_tables(real_data, split, classes):
    rows = _read_table(split, real_data)
    assert len(rows) == classes * 600
    labels = [label for _, label in rows]
    assert len(set(labels)) == classes
    assert {labels.count(label) for label in set(labels)} == {600}
    assert len({name for name, _ in rows}) == len(rows)
    text = gzip.decompress((real_data / "miniimagenet_splits" / f"{split}.csv.gz").read_bytes())
    assert rows[-1] == tuple(list(csv.reader(io.StringIO(text.decode())))[-1])


@pytest.mark.parametrize(
    "text",
    [
        f"filename,label\n{'x' * 200_000},n\n",
        "filename,label\na\0.jpg,n\n",
    ],
)
def test_tables_that_csv_cannot_read(data, text):
    path = data / "miniimagenet_splits" / "val.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(FileError, match=r"val\.csv\.gz"):
        MiniImageNet(split="val", data=data)


def test_a_table_that_unfolds_to_gigabytes(data):
    path = data / "miniimagenet_splits" / "val.csv.gz"
    path.write_bytes(gzip.compress(b"filename,label\n" + bytes(101_000_000), 1))
    with pytest.raises(FileError, match=r"val\.csv\.gz.*more than 100,000,000 bytes"):
        MiniImageNet(split="val", data=data)


@pytest.mark.parametrize("groups", [{}, {0: [0, 1]}, {"a": [0, 10**100]}, {"a": [0, 10**5000]}])
def test_a_pickle_with_wrong_classes(data, groups):
    path = data / "miniimagenet" / "mini-imagenet-cache-val.pkl"
    images = np.zeros((2, 84, 84, 3), np.uint8)
    path.write_bytes(pickle.dumps({"image_data": images, "class_dict": groups}))
    with pytest.raises(FileError, match=r"mini-imagenet-cache-val\.pkl is damaged: class_dict"):
        MiniImageNet(split="val", data=data)
