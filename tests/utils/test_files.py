import errno
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.utils import files
from fognn.utils.errors import FileError
from fognn.utils.files import unzip, write_whole


def contents(folder: Path) -> dict[str, bytes]:
    found = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in found if p.is_file()}


def test_write_whole_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    for text in ("old", "new"):
        with write_whole(path) as temporary:
            assert temporary.parent == path.parent
            temporary.write_text(text)
            assert temporary != path
    assert contents(tmp_path) == {"a/b.txt": b"new"}


def test_write_whole_keeps_the_ending(tmp_path: Path) -> None:
    # numpy adds ".npz" to a name that lacks it, and the file would then be missed.
    with write_whole(tmp_path / "x.npz") as temporary:
        np.savez(temporary, a=np.arange(3))
    assert np.load(tmp_path / "x.npz")["a"].tolist() == [0, 1, 2]


def test_write_whole_gives_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with write_whole(tmp_path / "whole") as temporary:
        temporary.write_text("")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def write_half(path: Path, error: BaseException) -> None:
    with write_whole(path) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), PermissionError("no")])
def test_write_whole_leaves_the_old_file_on_failure(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(type(error)):
        write_half(path, error)
    assert contents(tmp_path) == {"x": b"old"}


def test_write_whole_says_when_nothing_was_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), write_whole(tmp_path / "x"):
        pass
    assert contents(tmp_path) == {}


def test_write_whole_on_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"disk is full.*FOGNN_CACHE"):
        write_half(tmp_path / "x", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert contents(tmp_path) == {}


def test_write_whole_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FileError, match=r"file/x could not be written .*writable.*another"):
        write_half(tmp_path / "file" / "x", ValueError("not reached"))
    assert contents(tmp_path) == {"file": b"not a folder"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("write", ["torch.save(x, t)", "np.save(t, x)", "t.write_bytes(x)"])
def test_write_whole_when_the_system_refuses_to_write(tmp_path: Path, write: str) -> None:
    # The system's own limit on the size of files, in a process of its own: a true failed write.
    program = f"""
import resource, signal, sys, numpy as np, torch
from pathlib import Path
from fognn.utils.errors import FileError
from fognn.utils.files import write_whole
x = {"bytes(10**6)" if "bytes" in write else "torch.zeros(10**6)"}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, 10**5))
try:
    with write_whole(Path({str(tmp_path / "x.npy")!r})) as t:
        {write}
except FileError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "the disk is full" in run.stdout, run.stderr
    assert contents(tmp_path) == {}


def test_write_whole_passes_other_errors_of_torch(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="shape"), write_whole(tmp_path / "x") as temporary:
        torch.save(torch.zeros(2).view(3), temporary)


def archive(path: Path, members: dict[str | zipfile.ZipInfo, str]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            with file.open(info, "w") as member:  # unlike writestr, it takes any name
                member.write(text.encode())
    return path


def test_unzip(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"d/": "", "d/x.txt": "1", "a..b/..c.txt": "2"})
    unzip(path, tmp_path / "out")
    assert contents(tmp_path / "out") == {"d/x.txt": b"1", "a..b/..c.txt": b"2"}
    assert sorted(os.listdir(tmp_path)) == ["a.zip", "out"]


def test_unzip_into_a_folder_with_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    unzip(archive(tmp_path / "a.zip", {"d/x": "old", "d/y": "1"}), out)
    unzip(archive(tmp_path / "b.zip", {"d/x": "new", "e/z": "2"}), out)
    assert contents(out) == {"d/x": b"new", "d/y": b"1", "e/z": b"2"}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "a/../../x",
        "/tmp/x",
        "C:x",
        "c:/x",
        "C:\\x",
        "..\\x",
        "a\\..\\..\\x",
        "\\\\h\\x",
    ],
)
def test_unzip_refuses_to_leave_the_folder(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "a.zip", {"fine": "1", name: "2"})
    with pytest.raises(FileError, match="outside the folder") as caught:
        unzip(path, tmp_path / "in" / "out")
    assert repr(name) in str(caught.value)
    assert list(contents(tmp_path)) == ["a.zip"]


@given(parts=st.lists(st.sampled_from(["..", ".", "", "a", "C:", "\\", "b.."]), min_size=1))
def test_unzip_never_writes_outside(tmp_path_factory: pytest.TempPathFactory, parts: list[str]):
    base = tmp_path_factory.mktemp("zip")
    path = archive(base / "a.zip", {"/".join(parts): "x"})
    out = base / "deep" / "deeper" / "out"
    try:
        unzip(path, out)
    except FileError:
        assert not out.exists()
    assert all(name.startswith(("a.zip", "deep/deeper/out/")) for name in contents(base))


def test_unzip_refuses_links(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = archive(tmp_path / "a.zip", {link: str(tmp_path), "link/x": "1"})
    with pytest.raises(FileError, match="'link' is a link"):
        unzip(path, tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


def test_unzip_does_not_follow_a_link_that_stands_there(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "d").symlink_to(elsewhere)
    with pytest.raises(FileError, match=r"link out of .*remove the link"):
        unzip(archive(tmp_path / "a.zip", {"d/x": "1"}), out)
    assert contents(elsewhere) == {}


def test_unzip_refuses_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_BOMB_FLOOR", 10**5)
    path = archive(tmp_path / "a.zip", {"zeros": "0" * 10**6})
    assert path.stat().st_size * 100 < 10**6  # deflate does better than 100 to 1 here
    with pytest.raises(FileError, match="declare 1,000,000 bytes"):
        unzip(path, tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


def test_unzip_trusts_no_declared_size(tmp_path: Path) -> None:
    # A bomb could declare fewer bytes than it holds; zipfile stops at the declared number.
    path = archive(tmp_path / "a.zip", {"x": "0" * 10**6})
    raw = path.read_bytes()
    lie = raw.replace((10**6).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lie != raw
    path.write_bytes(lie)
    with pytest.raises(FileError, match=r"a\.zip is damaged"):
        unzip(path, tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


@pytest.mark.parametrize("cut", [0, 10, 60, -5])
def test_unzip_truncated(tmp_path: Path, cut: int) -> None:
    path = archive(tmp_path / "a.zip", {"x": "hello" * 20, "y": "2"})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileError, match=r"a\.zip is damaged"):
        unzip(path, tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


def test_unzip_damaged_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:  # stored, so that a byte can be changed
        file.writestr("x", "first")
        file.writestr("y", "second")
    path.write_bytes(path.read_bytes().replace(b"second", b"sEcond"))
    with pytest.raises(FileError, match="CRC"):
        unzip(path, tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


def test_unzip_a_file_that_is_also_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="could not be written"):
        unzip(archive(tmp_path / "a.zip", {"x": "1", "x/y": "2"}), tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


def test_unzip_missing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no\.zip does not exist"):
        unzip(tmp_path / "no.zip", tmp_path / "out")


def test_unzip_encrypted(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"x": "1"})
    raw = bytearray(path.read_bytes())
    central = raw.index(b"PK\x01\x02")
    raw[6] |= 1
    raw[central + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match="'x' is encrypted"):
        unzip(path, tmp_path / "out")


def test_unzip_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: zipfile.ZipFile, path: Path) -> None:
        (Path(path) / "half").write_text("x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = archive(tmp_path / "a.zip", {"x": "1"})
    monkeypatch.setattr(zipfile.ZipFile, "extractall", full)
    with pytest.raises(FileError, match="disk is full"):
        unzip(path, tmp_path / "out")
    assert list(contents(tmp_path)) == ["a.zip"]


def test_sha256_of(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")  # the first example of FIPS 180-2
    assert files.sha256_of(tmp_path / "abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
