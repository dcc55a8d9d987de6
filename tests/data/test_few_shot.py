import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData

from fognn.data.few_shot import CIFARFS, ImageSet, image_module, kept_images
from fognn.utils.errors import FileError


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    (tmp_path / "data" / "cifar_fs").mkdir(parents=True)
    return tmp_path / "data"


def cifar_file(folder: Path, **changes) -> Path:
    rng = np.random.default_rng(0)
    arrays = {}
    for split, classes in (("train", 64), ("val", 16), ("test", 20)):
        shape = (classes, 2, 32, 32, 3)
        arrays[f"x_{split}"] = rng.integers(0, 256, shape, dtype=np.uint8)
        arrays[f"c_{split}"] = np.array([f"{split} {i}" for i in range(classes)])
    path = folder / "cifar_fs" / "cifar_fs_100.npz"
    np.savez(path, **{**arrays, **changes})
    return path


@pytest.mark.parametrize(("split", "classes"), [("train", 64), ("val", 16), ("test", 20)])
def test_real_cifar_fs(real_data, split, classes):
    images = CIFARFS(split, data=real_data)
    assert len(images) == classes * 100
    assert len(set(images.classes)) == classes
    assert torch.bincount(images.labels).tolist() == [100] * classes
    assert repr(images) == f"CIFARFS({classes * 100} images, {classes} classes)"
    image, label = images[-1]
    assert label == classes - 1
    assert image.shape == (3, 32, 32)
    with np.load(real_data / "cifar_fs" / "cifar_fs_100.npz") as file:
        expected = file[f"x_{split}"][-1, -1].transpose(2, 0, 1) / 255
    np.testing.assert_allclose(image.numpy(), expected, rtol=1e-6)


def test_real_cifar_fs_splits_share_no_class(real_data):
    names = [set(CIFARFS(split, data=real_data).classes) for split in ("train", "val", "test")]
    assert len(set.union(*names)) == 100


def test_images_are_read_one_by_one_and_together(folder):
    path = cifar_file(folder)
    images = CIFARFS("val", data=folder, transform=lambda image: 1 - image)
    with np.load(path) as file:
        expected = 1 - torch.from_numpy(file["x_val"][3, 1]).permute(2, 0, 1) / 255
    torch.testing.assert_close(images[7][0], expected)
    torch.testing.assert_close(images.read(torch.tensor([0, 7]))[1], expected)
    assert images[7][1] == 3
    with pytest.raises(IndexError, match="no image 32, there are 32"):
        images[32]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x_val": np.zeros((15, 2, 32, 32, 3), np.uint8)}, r"x_val must be uint8 of shape \[16"),
        ({"x_val": np.zeros((16, 2, 32, 32, 3))}, "got float64"),
        ({"c_val": np.array(["a"])}, "c_val must hold 16 names"),
        ({"x_val": np.array([print], dtype=object)}, r"not a whole \.npz file"),
    ],
)
def test_wrong_cifar_fs_file(folder, changes, words):
    cifar_file(folder, **changes)
    with pytest.raises(FileError, match=words):
        CIFARFS("val", data=folder)


def test_truncated_and_missing_cifar_fs_file(folder):
    with pytest.raises(FileError, match=r"cifar_fs_100\.npz is not in .* make it from CIFAR-100"):
        CIFARFS("val", data=folder)
    path = cifar_file(folder)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(FileError, match=r"cifar_fs_100\.npz is not a whole \.npz file"):
        CIFARFS("val", data=folder)
    with pytest.raises(ValueError, match="CIFARFS: split must be one of train, val, test, got 'x'"):
        CIFARFS("x", data=folder)


def test_bad_image_set():
    images = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"images must be uint8 .* got torch.float32 \[2, 3, 4, 4"):
        ImageSet(images.float(), torch.zeros(2), ["a"])
    with pytest.raises(ValueError, match=r"labels must be of shape \[2\], got \[3\]"):
        ImageSet(images, torch.zeros(3), ["a"])


def test_kept_images_are_made_once_and_damaged_ones_anew(tmp_path):
    path, made = tmp_path / "processed" / "images.pt", []

    def make():
        made.append(1)
        return {"images": torch.arange(500), "names": ["a", "b"]}

    for _ in range(3):
        content = kept_images(path, make)
        assert content["images"].tolist() == list(range(500))
        assert content["names"] == ["a", "b"]
    assert len(made) == 1
    for damage in (path.read_bytes()[:700], b"", b"no torch file at all"):
        path.write_bytes(damage)
        assert kept_images(path, make)["images"].sum() == 500 * 499 // 2
    assert len(made) == 4

    def fail():
        raise FileError("an image is damaged")

    with pytest.raises(FileError, match="an image is damaged"):
        kept_images(tmp_path / "processed" / "other.pt", fail)
    assert not (tmp_path / "processed" / "other.pt").exists()


class Call:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def test_kept_images_run_nothing(tmp_path):
    path, made = tmp_path / "images.pt", tmp_path / "made"
    torch.save({"images": Call(os.mkdir, str(made))}, path)
    assert kept_images(path, lambda: {"images": torch.ones(3)})["images"].tolist() == [1, 1, 1]
    # PyG has this class on torch's list of safe names; it opens a second file and runs it.
    (tmp_path / "part_1").mkdir()
    torch.save(Call(os.mkdir, str(made)), tmp_path / "part_1" / "metis.pt")
    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    torch.save(Call(ClusterData, graph, 1, False, str(tmp_path)), path)
    assert kept_images(path, lambda: {"images": torch.ones(3)})["images"].tolist() == [1, 1, 1]
    assert not made.exists()


def test_kept_images_are_mapped_into_memory(tmp_path):
    path = tmp_path / "images.pt"
    kept_images(path, lambda: {"images": torch.ones(3)})
    content = kept_images(path, lambda: pytest.fail("made twice"))
    assert content["images"].tolist() == [1, 1, 1]
    maps = Path("/proc/self/maps")
    if maps.exists():  # Linux says which files are mapped
        assert str(path) in maps.read_text()


def test_kept_images_in_a_place_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="could not be written"):
        kept_images(tmp_path / "file" / "images.pt", dict)


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r'Omniglot reads .* pip install "fognn\[vision\]"'):
        image_module("Omniglot")
