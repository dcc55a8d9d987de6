import zipfile

import numpy as np
import pytest

from fognn.utils import npz_files
from fognn.utils.errors import FileError
from fognn.utils.files import DAMAGE
from fognn.utils.npz_files import load_npz, npz_names

ARRAYS = {"x": np.arange(12).reshape(3, 4), "name": np.array("text"), "y": np.ones(2)}


@pytest.fixture(params=[np.savez, np.savez_compressed])
def path(request, tmp_path):
    request.param(tmp_path / "arrays.npz", **ARRAYS)
    return tmp_path / "arrays.npz"


def test_arrays_are_those_of_numpy(path):
    found = load_npz(path)
    assert npz_names(path) == list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    assert list(load_npz(path, ["y", "other"])) == ["y"]


def test_no_changed_byte_gives_another_array(path):
    content = path.read_bytes()
    noticed = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        try:
            found = load_npz(path)
        except DAMAGE:
            noticed += 1
            continue
        assert list(found) == list(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)
    assert noticed > 300


def rewritten(path, **members):
    with zipfile.ZipFile(path) as file:
        old = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in {**old, **{f"{k}.npy": v for k, v in members.items()}}.items():
            file.writestr(name, content)


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"not an array",
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (3,"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n") + bytes(8),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (4611686018427387904,)}\n"),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}\n") + bytes(8),
        header("{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}\n") + bytes(16),
    ],
)
def test_members_that_are_no_arrays(path, member):
    rewritten(path, x=member)
    with pytest.raises(DAMAGE):
        load_npz(path)
    assert list(load_npz(path, ["y"])) == ["y"]


def test_more_than_the_memory(path, monkeypatch):
    monkeypatch.setattr(npz_files, "total_memory", lambda: 100)
    with pytest.raises(ValueError, match="memory"):
        load_npz(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_twice(path):
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("y.npy", b"")
    with pytest.raises(ValueError, match="twice"):
        load_npz(path)


def test_not_a_regular_file(tmp_path):
    with pytest.raises(FileError, match="folder"):
        load_npz(tmp_path)
