import errno
import hashlib
import io
import os
import socket
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pooch
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.datasets import GNNBenchmarkDataset

from fognn.data import sources
from fognn.data.sources import (
    Source,
    benchmark_file,
    benchmark_source,
    cache_dir,
    data_dir,
    fetch,
    find,
    pyg_download,
)
from fognn.utils.errors import FileError

CONTENT = bytes(range(256)) * 12_000  # 3 MB: more than one chunk
SHA256 = hashlib.sha256(CONTENT).hexdigest()
UMASK = os.umask(0)
os.umask(UMASK)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def source(server: Any, **other: Any) -> Source:
    return Source(**{"path": "d/file.bin", "url": server.url, "sha256": SHA256, **other})


def left(cache: Path) -> list[str]:
    """The files of the cache, without locks, which stay."""
    return sorted(p.name for p in cache.rglob("*") if p.is_file() and p.suffix != ".lock")


# Where to look


def test_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_dir() is None
    monkeypatch.setenv("FOGNN_DATA", "")
    assert data_dir() is None
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path))
    assert data_dir() == tmp_path
    (tmp_path / "own").mkdir()
    assert data_dir(tmp_path / "own") == data_dir(str(tmp_path / "own")) == tmp_path / "own"


def test_data_dir_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match=r"^data must name an existing folder, got '.*nowhere'$"):
        data_dir(tmp_path / "nowhere")
    monkeypatch.setenv("FOGNN_DATA", "nowhere")
    with pytest.raises(FileError, match=r"^FOGNN_DATA must name an existing folder"):
        data_dir()


def test_cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == tmp_path / "cache"
    assert not cache_dir().exists()  # asking makes nothing
    monkeypatch.delenv("FOGNN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "fognn"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_dir() == tmp_path / "home" / ".cache" / "fognn"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("path", path) for path in ("", ".", "/etc/passwd", "../x", "a/../../x", "a\\b")],
        *[("url", url) for url in ("file:///etc/passwd", "ftp://h/x", "x", "")],
        *[("sha256", digest) for digest in ("", "abc", SHA256.upper(), SHA256 + "\n")],
    ],
)
def test_source_names_the_bad_argument(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"Source: {field} must .*got"):
        Source(**{"path": "x", field: value})


@given(st.text(max_size=20))
def test_source_paths_stay_inside(path: str) -> None:
    try:
        good = Source(path)
    except ValueError:
        return
    base = Path("/base/folder")
    assert (base / os.path.normpath(base / good.path)).is_relative_to(base)


def test_folder_comes_first_then_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = Source("d/x.txt")
    assert find(it) is None
    for base in (cache, tmp_path / "env", tmp_path / "own"):
        (base / "d").mkdir(parents=True)
        (base / "d" / "x.txt").write_text("x")
    assert find(it) == fetch(it) == cache / "d" / "x.txt"
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path / "env"))
    assert find(it) == fetch(it) == tmp_path / "env" / "d" / "x.txt"
    assert find(it, tmp_path / "own") == fetch(it, tmp_path / "own") == tmp_path / "own/d/x.txt"


def test_a_users_file_is_used_as_it_is_with_a_warning(tmp_path: Path, server: Any) -> None:
    path = tmp_path / "d" / "file.bin"
    path.parent.mkdir()
    path.write_text("mine")
    mine = hashlib.sha256(b"mine").hexdigest()
    with pytest.warns(UserWarning, match=f"not the official file: its SHA-256 is {mine}.*{SHA256}"):
        assert fetch(source(server), tmp_path) == path
    assert path.read_text() == "mine"
    path.write_bytes(CONTENT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch(source(server), tmp_path) == path
    assert server.requests == 0


def test_missing_with_nothing_to_download(tmp_path: Path, cache: Path, server: Any) -> None:
    with pytest.raises(FileError, match=r"d/x is not in the cache \(no FOGNN_DATA is set\)") as e:
        fetch(Source("d/x", hint="ask the authors"))
    assert f"ask the authors, and put it at {cache / 'd' / 'x'}" in str(e.value)
    with pytest.raises(FileError, match=f"not in {tmp_path} and in the cache"):
        fetch(Source("d/x"), tmp_path)
    # An address without a checksum is named, never downloaded.
    with pytest.raises(FileError, match=f"get it from {server.url}"):
        fetch(source(server, sha256=None))
    assert server.requests == 0


# The download


def test_download_once(cache: Path, server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    path = fetch(source(server))
    assert path == cache / "d" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o666 & ~UMASK  # others may share the cache
    assert fetch(source(server)) == find(source(server)) == path
    assert server.requests == 1
    assert left(cache) == ["file.bin"]
    assert capfd.readouterr() == ("", "")  # no progress bar: stderr is no terminal


def test_progress_bar_in_a_terminal(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    fetch(source(server))
    assert "3.07M/3.07M" in terminal.getvalue()


def test_without_a_length(server: Any) -> None:
    server.sends_length = False
    assert fetch(source(server)).read_bytes() == CONTENT


@pytest.mark.parametrize("sends_length", [True, False])
def test_connection_that_stops(cache: Path, server: Any, sends_length: bool) -> None:
    server.stops_after, server.sends_length = 1_500_000, sends_length
    with pytest.raises(FileError, match=r"try again|check the network") as raised:
        fetch(source(server))
    assert "\n" not in str(raised.value)
    assert left(cache) == []  # half a file is never left
    server.stops_after = None
    assert fetch(source(server)).read_bytes() == CONTENT


def test_wrong_checksum(cache: Path, server: Any) -> None:
    server.content = b"something else"
    got = hashlib.sha256(server.content).hexdigest()
    with pytest.raises(FileError, match=f"its SHA-256 is {got}, it must be {SHA256}; try again"):
        fetch(source(server))
    assert find(source(server)) is None
    assert left(cache) == []
    server.content = CONTENT
    assert fetch(source(server)).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [403, 404, 416, 500])
def test_server_answers_with_an_error(cache: Path, server: Any, status: int) -> None:
    server.status = status
    with pytest.raises(FileError, match=rf"answered {status} .*by hand and put it at .*file\.bin$"):
        fetch(source(server))
    assert left(cache) == []


def test_no_network(cache: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x"
    with pytest.raises(FileError, match=r"downloaded \([^(]*refused\): check the network, or get"):
        fetch(Source("x", url, SHA256))
    with pytest.raises(FileError, match="could not be downloaded"):
        fetch(Source("x", "http://no.such.host.invalid/x", SHA256))
    assert find(Source("x", url, SHA256)) is None


def test_silent_server(cache: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_TIMEOUT", 0.2)
    server.slow = 0.6
    with pytest.raises(FileError, match=r"could not be downloaded \(.*timed out"):
        fetch(source(server))
    assert left(cache) == []


class FullDisk(io.FileIO):
    def write(self, data: Any) -> int:
        super().write(data[:1000])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk(cache: Path, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pooch.downloaders, "open", lambda path, _: FullDisk(path, "w"), raising=False)
        with pytest.raises(FileError, match=r"file\.bin could not be written, the disk is full"):
            fetch(source(server))
    assert left(cache) == []  # the disk must not stay full
    assert fetch(source(server)).read_bytes() == CONTENT


def test_import_downloads_nothing_and_does_not_load_pooch() -> None:
    program = "import sys, fognn.data; sys.exit('pooch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_cache_that_cannot_be_made(tmp_path: Path, server: Any, cache: Path) -> None:
    cache.write_text("a file stands where the folder should be")
    with pytest.raises(FileError, match=r"could not be written \(.*FOGNN_CACHE"):
        fetch(source(server))


# A cache that is not what it was


@pytest.mark.parametrize("damage", [CONTENT[:1000], b"", b"x" + CONTENT[1:]])
def test_damaged_cache_is_seen_and_fetched_again(cache: Path, server: Any, damage: bytes) -> None:
    path = fetch(source(server))
    path.write_bytes(damage)
    assert find(source(server)) is None
    assert fetch(source(server)).read_bytes() == CONTENT
    assert server.requests == 2


def test_file_put_into_the_cache_by_hand(cache: Path, server: Any) -> None:
    path = cache / "d" / "file.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert fetch(source(server)) == path
    assert server.requests == 0
    path.write_bytes(b"half")
    with pytest.raises(FileError, match=f"is damaged: its SHA-256 is .*it must be {SHA256}"):
        fetch(source(server, url=None))
    assert path.read_bytes() == b"half"


def test_an_older_version_does_not_count(server: Any) -> None:
    path = fetch(source(server))
    server.content = b"version two"
    newer = source(server, sha256=hashlib.sha256(b"version two").hexdigest())
    assert find(newer) is None
    assert fetch(newer) == path
    assert path.read_bytes() == b"version two"


# Two at once


def start(server: Any, program: str) -> subprocess.Popen[str]:
    """A process that has imported everything and waits for a line to begin."""
    begin = f"from fognn.data.sources import *\nit = {source(server)!r}\nprint()\ninput()\n"
    return subprocess.Popen(
        [sys.executable, "-c", begin + program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_download_once(server: Any) -> None:
    server.slow = 0.5
    running = [start(server, "print(fetch(it))") for _ in range(2)]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].strip() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert set(answers) == {str(cache_dir() / "d" / "file.bin")}
    assert server.requests == 1
    assert Path(answers[0]).read_bytes() == CONTENT


def test_killed_process_blocks_nobody(server: Any, cache: Path) -> None:
    server.slow = 30
    process = start(server, "fetch(it)")
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    deadline = time.monotonic() + 30
    while not server.requests:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    server.slow = 0.0
    assert fetch(source(server)).read_bytes() == CONTENT


# Downloads by PyG


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("error", [OSError("gone\nfor good"), KeyboardInterrupt()])
def test_failed_download_of_pyg(tmp_path: Path, complete: bool, error: BaseException) -> None:
    folder = tmp_path / "pyg"
    folder.mkdir()
    (folder / "half.zip").write_text("PK")
    if complete:
        (folder / "last").write_text("")
    advice = f"remove {folder} and try again" if complete else "check the network"
    expected = (
        (FileError, rf"^PyG could not get X \(OSError: gone\): {advice}, or ask$")
        if isinstance(error, Exception)
        else (KeyboardInterrupt, "^$")
    )
    for _ in range(2):  # the lock is free again
        with (
            pytest.raises(expected[0], match=expected[1]),
            pyg_download("X", folder, folder / "last", "ask"),
        ):
            raise error
    assert folder.exists() == complete


def test_pyg_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "pyg"
    with (
        pytest.raises(FileError, match="could not be written"),
        pyg_download("X", folder, folder / "last", "ask"),
    ):
        pytest.fail("runs without a folder")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive in place of PyG's TSP_v2.zip."""
    path = tmp_path / "site" / "TSP_v2.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("TSP_v2.pt", "graphs")
    monkeypatch.setitem(GNNBenchmarkDataset.urls, "TSP", path.as_uri())
    return path


def test_benchmark_file_is_downloaded_by_pyg(cache: Path, site: Path) -> None:
    path = benchmark_file("TSP")
    assert path == find(benchmark_source("TSP"))
    assert path == cache / "benchmarking_gnns" / "TSP" / "raw" / "TSP_v2.pt"
    assert path.read_text() == "graphs"
    site.unlink()
    assert benchmark_file("TSP") == path


def test_benchmark_file_of_the_data_folder(cache: Path, tmp_path: Path, site: Path) -> None:
    path = tmp_path / benchmark_source("TSP").path
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert benchmark_file("TSP", tmp_path) == path
    assert not cache.exists()


@pytest.mark.parametrize("archive", [b"PK half", b"", None])
def test_benchmark_file_that_cannot_be_downloaded(
    cache: Path, site: Path, archive: bytes | None
) -> None:
    site.unlink() if archive is None else site.write_bytes(archive)
    with pytest.raises(FileError, match=r"PyG could not get TSP .*unpack .*TSP_v2\.zip so that"):
        benchmark_file("TSP")
    assert left(cache) == []


def test_archive_without_the_file(cache: Path, site: Path) -> None:
    with zipfile.ZipFile(site, "w") as file:
        file.writestr("other.pt", "graphs")
    with pytest.raises(FileError, match=r"the archive has no TSP_v2\.pt"):
        benchmark_file("TSP")
    assert left(cache) == []
