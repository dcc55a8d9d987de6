"""Whatever a message about a download tells the user to do works. A local server or file stands for
each address on the network."""

import hashlib
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chaos.samples import environment, imdb_text, imdb_tu, zinc_npz
from torch_geometric.datasets import GNNBenchmarkDataset, TUDataset

from fognn.datasets import ZINC, FileError, IMDBMulti
from fognn.datasets.sources import Source, benchmark_file, fetch


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "data").mkdir()
    return tmp_path


def message(read: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(FileError) as caught:
        read(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize("remedy", ["again", "by hand"])
@pytest.mark.parametrize("failure", ["an answer", "another file", "the network"])
def test_a_download(server: Any, failure: str, remedy: str) -> None:
    right, source = server.content, Source("d/file.bin", server.url, server.sha256)
    if failure == "an answer":
        server.status = 503
    elif failure == "another file":
        server.content = b"other"
    else:
        server.stops_after = 10
    words = "check the network" if failure == "the network" else "try again later"
    text = message(fetch, source)
    found = re.search(rf"{words}, or get (\S+) by hand and put it at (\S+)$", text)
    assert found is not None
    if remedy == "again":
        server.status, server.stops_after, server.content = None, None, right
    else:
        Path(found[2]).write_bytes(right)
    assert fetch(source).read_bytes() == right


def test_remove_a_damaged_file_of_the_cache(folder: Path) -> None:
    source = Source("d/file.bin", sha256=hashlib.sha256(b"right").hexdigest(), hint="ask for it")
    path = folder / "cache" / "d" / "file.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"wrong")
    assert message(fetch, source).endswith("; remove it, then: ask for it")
    path.unlink()
    found = re.search(r"ask for it, and put it at (\S+)$", message(fetch, source))
    assert found is not None
    Path(found[1]).write_bytes(b"right")
    assert fetch(source) == path


@pytest.mark.parametrize("remedy", ["check the network", "unpack"])
def test_a_benchmark_file(folder: Path, monkeypatch: pytest.MonkeyPatch, remedy: str) -> None:
    archive = folder / "TSP_v2.zip"
    monkeypatch.setitem(GNNBenchmarkDataset.urls, "TSP", archive.as_uri())
    text = message(benchmark_file, "TSP")
    found = re.search(r"check the network, or unpack (\S+) so that its file is (\S+)$", text)
    assert found is not None
    assert found[1] == archive.as_uri()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("TSP_v2.pt", "graphs")
    if remedy == "unpack":
        with zipfile.ZipFile(archive) as file:
            file.extractall(Path(found[2]).parent)
        archive.unlink()
    assert benchmark_file("TSP").read_text() == "graphs"


@pytest.mark.parametrize("remedy", ["try again", "source='text'", "source='tu'"])
def test_imdb_of_pyg(folder: Path, monkeypatch: pytest.MonkeyPatch, remedy: str) -> None:
    imdb_tu(folder / "site")
    raw = folder / "site" / "data" / "IMDB-MULTI"
    with zipfile.ZipFile(folder / "site" / "IMDB-MULTI.zip", "w") as file:
        for path in raw.iterdir():
            file.write(path, f"IMDB-MULTI/{path.name}")
    monkeypatch.setattr(TUDataset, "url", (folder / "site").as_uri())
    broken = folder / "cache" / "imdb_multi" / "pyg" / "IMDB-MULTI" / "raw"
    broken.mkdir(parents=True)
    for path in raw.iterdir():
        (broken / path.name).write_text("nonsense\n")
    found = re.search(
        r"remove (\S+) and try again, or use source='text', or source='tu' with its files in (\S+)",
        message(IMDBMulti, source="pyg"),
    )
    assert found is not None
    if remedy == "try again":
        shutil.rmtree(found[1])
        assert len(IMDBMulti(source="pyg")) == 3
    elif remedy == "source='tu'":
        shutil.copytree(raw, found[2])
        assert len(IMDBMulti(source="tu")) == 3
    else:
        imdb_text(folder / "text")  # in place of the download
        assert len(IMDBMulti(source="text", data=folder / "text" / "data")) == 3


def test_zinc_of_pyg(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = folder / "cache" / "zinc" / "pyg" / "raw"
    raw.mkdir(parents=True)
    for split in ("train", "val", "test"):
        for end in ("pickle", "index"):
            (raw / f"{split}.{end}").write_text("nonsense\n")
    text = message(ZINC, source="pyg")
    assert f"remove {raw.parent} and try again" in text
    assert 'set FOGNN_DATA to a folder with zinc/zinc12k.npz and use ZINC(source="auto")' in text
    zinc_npz(folder / "mine")
    monkeypatch.setenv("FOGNN_DATA", str(folder / "mine" / "data"))
    assert len(ZINC(source="auto")) == 10
