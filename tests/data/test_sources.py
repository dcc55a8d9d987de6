import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fognn.data.sources import _registry, cache_dir, data_dir, fetch, find, retrieve
from fognn.utils.errors import FileError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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


def test_folder_comes_first_then_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "d/x.txt"
    assert find(name) is None
    for base in (cache, tmp_path / "env", tmp_path / "own"):
        (base / "d").mkdir(parents=True)
        (base / "d" / "x.txt").write_text("x")
    assert find(name) == fetch(name) == cache / "d" / "x.txt"
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path / "env"))
    assert find(name) == fetch(name) == tmp_path / "env" / "d" / "x.txt"
    assert find(name, tmp_path / "own") == fetch(name, tmp_path / "own") == tmp_path / "own/d/x.txt"


def test_a_file_that_cannot_be_downloaded(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(FileError, match=r"d/x\.txt was not found .*: ask, and put it at") as error:
        fetch("d/x.txt", tmp_path, hint="ask")
    assert str(cache / "d" / "x.txt") in str(error.value)


def test_the_registry() -> None:
    names = {"imdb_multi/IMDBMULTI.txt", "omniglot/images_background.zip"}
    assert names < set(_registry())
    assert len(_registry()) == 23
    for digest, url in _registry().values():
        assert len(digest) == 64
        assert url.startswith("https://")


def test_the_real_files_have_the_checksums(real_data: Path) -> None:
    # The shared archives of Omniglot are packed otherwise.
    for name, (digest, _) in _registry().items():
        if name.startswith("imdb"):
            assert hashlib.sha256((real_data / name).read_bytes()).hexdigest() == digest, name


# Downloads


def test_download(server: Any, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = cache / "d" / "file.bin"
    assert retrieve(server.url, target, server.sha256) == target
    assert target.read_bytes() == server.content
    assert capsys.readouterr().err == f"downloading {server.url} to {target}\n"
    assert retrieve(server.url, target) == target
    assert server.requests == 1


def test_fetch_takes_the_address_of_the_registry(
    server: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"d/file.bin": (server.sha256, server.url)}
    monkeypatch.setattr("fognn.data.sources._registry", lambda: found)
    assert fetch("d/file.bin").read_bytes() == server.content
    (cache / "d" / "file.bin").unlink()
    server.status = 404
    with pytest.raises(FileError, match=r"404.*check the network, or put it at .*file\.bin"):
        fetch("d/file.bin")


@pytest.mark.parametrize("wrong", ["status", "truncated", "checksum", "nobody"])
def test_a_failed_download_leaves_nothing(server: Any, cache: Path, wrong: str) -> None:
    url, digest = server.url, server.sha256
    if wrong == "status":
        server.status = 503
    elif wrong == "truncated":
        server.stops_after = 100_000
    elif wrong == "checksum":
        digest = "0" * 64
    else:
        url = "http://127.0.0.1:1/file.bin"
    with pytest.raises(FileError, match=r"file\.bin could not be downloaded"):
        retrieve(url, cache / "d" / "file.bin", digest)
    assert left(cache) == []


def test_several_at_once_download_once(server: Any, cache: Path) -> None:
    server.slow = 0.3
    with ThreadPoolExecutor(3) as pool:
        paths = list(pool.map(lambda _: retrieve(server.url, cache / "file.bin"), range(3)))
    assert set(paths) == {cache / "file.bin"}
    assert server.requests == 1
