"""Whatever a message about the files of a dataset tells the user to do works: each test follows
one to the letter. "Get it again" is to put the right file back.

Not followed in any test: ``pip install``, more memory or disk space, and to make CIFAR-FS from
CIFAR-100, which is not here. Downloads are in ``test_remedies_of_downloads.py``."""

import io
import pickle
import re
import shlex
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric
from chaos.formats import FORMATS, Format, clean, environment, prepare, sample
from chaos.samples import imdb_text, mini_images, zinc_csv, zinc_npz
from typer.testing import CliRunner

from fognn.cli.app import app
from fognn.datasets import TSP, ZINC, FileError, IMDBMulti, omniglot
from fognn.datasets.mini_imagenet import MiniImageNet

Damage = Callable[[bytes], bytes]


@pytest.fixture(scope="module", autouse=True)
def samples() -> Iterator[None]:
    yield
    clean()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("_CHARACTERS", "_TRAIN"):  # the sample of Omniglot changes them
        monkeypatch.setattr(omniglot, name, getattr(omniglot, name))
    return tmp_path


def message(read: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(FileError) as caught:
        read(*arguments, **named)
    return str(caught.value)


# Damaged files


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def nonsense(content: bytes) -> bytes:
    return b"nonsense\n"


def first_line(content: bytes) -> bytes:
    return content.splitlines(keepends=True)[0]


def hostile(content: bytes) -> bytes:
    return pickle.dumps(shutil.rmtree)


def encrypted(content: bytes) -> bytes:
    changed = bytearray(content)
    changed[6] |= 1
    changed[changed.index(b"PK\x01\x02") + 8] |= 1
    return bytes(changed)


def members(change: Callable[[list[tuple[str, bytes]]], None]) -> Damage:
    def changed(content: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            parts = [(name, file.read(name)) for name in file.namelist()]
        change(parts)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as file:
            for name, part in parts:
                file.writestr(name, part)
        return out.getvalue()

    return changed


no_drawing = members(lambda parts: parts.__setitem__(0, (parts[0][0], b"nonsense")))
one_less = members(lambda parts: parts.__delitem__(0))

GET_IT_AGAIN: list[tuple[str, Damage, str]] = [
    ("zinc12k.npz", half, "not a whole .npz file of this dataset .*: get it again"),
    ("zinc12k.csv", first_line, "must have a molecule, it has none: get it again"),
    ("tsp.npz", half, "get it again"),
    ("cifar_fs_100.npz", half, "get it again"),
    ("official CLUSTER", half, "whole raw file .*: remove it and get it again"),
    ("official TSP", nonsense, "whole raw file .*: remove it and get it again"),
    ("IMDBMULTI.txt", half, r"line \d+: .*; remove the file and get it again"),
    ("10fold_idx", nonsense, "line 1: .*; remove the file and get it again"),
    ("10fold_idx", half, "get both files again"),
    ("TU A", nonsense, "is not a whole TU folder .*: remove it and get it again"),
    ("omniglot.zip", half, "not a whole zip file .*: remove it and get it again"),
    ("omniglot.zip", encrypted, "its member .* is encrypted; get it again"),
    ("omniglot.zip", no_drawing, "its member .* is not a drawing .*: get it again"),
    ("omniglot.zip", one_less, "is not images_background.zip of Omniglot: .*; get it from http"),
    ("mini-imagenet.pkl", half, "not a whole pickle of arrays .*: get the file again"),
    ("mini-imagenet.pkl", hostile, "names .*rmtree, .*: get the file from a place that you trust"),
    ("mini-imagenet.jpg", half, "is not a whole image .*: get it again"),
    ("mini-imagenet.csv", nonsense, "line 1 must be 'filename,label': get it again"),
    ("mini-imagenet.csv", first_line, "names no images: get it again"),
    ("mini-imagenet.csv.gz", half, "is not a whole table .*: get it again"),
    ("pyg TUDataset A", nonsense, "put its raw files there and remove its folder processed"),
]


@pytest.mark.parametrize(("name", "damage", "words"), GET_IT_AGAIN)
def test_get_it_again(folder: Path, name: str, damage: Damage, words: str) -> None:
    one = FORMATS[name]
    path = sample(one, folder)
    path.write_bytes(damage(path.read_bytes()))
    text = message(one.read, folder)
    assert re.search(words, text)
    if re.search("remove (it|the file) and get it again", text):
        named = Path(re.split(r" is not |, line ", text)[0])
        shutil.rmtree(named) if named.is_dir() else named.unlink()
    sample(one, folder)
    one.read(folder)


def test_remove_the_processed_folder(folder: Path) -> None:
    one = FORMATS["pyg TUDataset processed"]
    path = sample(one, folder)
    path.write_bytes(half(path.read_bytes()))
    found = re.search(r"remove the folder (\S+), which PyG makes", message(one.read, folder))
    assert found is not None
    shutil.rmtree(found[1])
    one.read(folder)
    # A file that can be read, with other tensors: PyG raises when it uses them.
    torch.save(({"x": torch.ones(1)}, {"x": torch.arange(2)}, {}, torch_geometric.data.Data), path)
    assert "put its raw files there and remove its folder processed" in message(one.read, folder)
    shutil.rmtree(path.parent)
    one.read(folder)


# Missing files


def put(one: Format, read: Callable[[], Any]) -> int:
    """Puts files of a sample where the messages say; returns how many it put."""
    for number in range(10):
        try:
            read()
            return number
        except FileError as error:
            target = Path(str(error).partition("put it at ")[2])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(next(iter(prepare(one.name).rglob(target.name))), target)
    return -1


@pytest.mark.parametrize(
    ("name", "count"), [("cifar_fs_100.npz", 1), ("TU A", 3), ("zinc12k.npz", 1), ("tsp.npz", 1)]
)
def test_put_it_there(folder: Path, name: str, count: int) -> None:
    def read() -> Any:
        return ZINC(source="npz") if name == "zinc12k.npz" else FORMATS[name].read(folder)

    assert put(FORMATS[name], read) == count


def test_set_fognn_data_to_a_folder_that_has_zinc(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zinc_npz(folder / "one")
    zinc_csv(folder / "other")
    text = message(ZINC)
    assert "zinc/zinc12k.npz and zinc/zinc12k_train.csv are neither in" in text
    assert "set FOGNN_DATA to a folder that has one of them" in text
    for name, count in (("one", 10), ("other", 6)):
        monkeypatch.setenv("FOGNN_DATA", str(folder / name / "data"))
        assert len(ZINC()) == count
    assert "take another source= of ZINC" in message(ZINC, source="npz")
    assert len(ZINC(source="smiles")) == 6


def test_make_tsp_with_the_command(folder: Path) -> None:
    text = message(TSP, split="val")
    found = re.search(r"with the command: fognn (.+ -o (\S+)), and put it at (\S+)$", text)
    assert found is not None
    quick = "--graphs 2 --seconds 0.01 --fewest 30 --most 30 --workers 1"  # in place of the 1,000
    ended = CliRunner().invoke(app, shlex.split(f"{found[1]} {quick}"))
    assert ended.exit_code == 0, ended.output
    Path(found[3]).parent.mkdir(parents=True)
    shutil.move(found[2], found[3])
    assert len(TSP(split="val")) == 2


@pytest.mark.parametrize("place", ["data", "cache", "images="])
def test_put_the_images_there(folder: Path, place: str) -> None:
    text = message(MiniImageNet, split="train")
    assert re.search(
        r"put miniimagenet/mini-imagenet-cache-train\.pkl .* or the folder "
        rf"miniimagenet/images into {re.escape(str(folder))}",
        text,
    )
    assert "or name the folder of images with images=" in text
    mini_images(folder / "mine")
    images = folder / "mine" / "data" / "miniimagenet" / "images"
    named: dict[str, Any] = {"images": images}
    if place != "images=":
        shutil.copytree(images, folder / place / "miniimagenet" / "images")
        named = {}
    assert put(FORMATS["mini-imagenet.csv"], lambda: MiniImageNet(split="train", **named)) == 1


def test_complete_the_folder_of_images(folder: Path) -> None:
    one = FORMATS["mini-imagenet.jpg"]
    sample(one, folder).unlink()
    assert re.search(
        r"n00000\.jpg is not there, .*: complete the folder", message(one.read, folder)
    )
    sample(one, folder)
    one.read(folder)


def test_stratified_folds_instead(folder: Path) -> None:
    imdb_text(folder)
    path = folder / "data" / "imdb_multi" / "IMDBMULTI.txt"
    path.write_text("6\n" + 2 * path.read_text().removeprefix("3\n"))  # each graph twice
    found = IMDBMulti(pre_filter=lambda graph: True)
    with pytest.raises(ValueError, match="use stratified_folds instead"):
        found.folds()
    assert [len(test) for _, test in found.stratified_folds(2)] == [3, 3]
