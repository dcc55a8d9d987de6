from pathlib import Path
from typing import Any

import pytest

from fognn.datasets.catalog import dataset_info
from fognn.datasets.info import DatasetInfo, where
from fognn.datasets.sources import Source
from fognn.utils.errors import FileError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry(*files: tuple[str, ...], **other: Any) -> DatasetInfo:
    sources = tuple(tuple(Source(path) for path in paths) for paths in files)
    texts = dict.fromkeys(("kind", "task", "size", "licence", "origin"), "")
    return DatasetInfo("X", lambda **arguments: arguments, files=sources, **texts, **other)


def put(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def test_where(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = entry(("a/1", "a/2"), ("b",))
    data = tmp_path / "data"
    put(data / "a" / "1")
    assert where(it, data) == "no"  # half of a set is nothing
    put(cache / "a" / "2")
    assert where(it, data) == "cache"
    put(data / "a" / "2")
    assert where(it, data) == "data folder"
    assert where(it) == "no"
    monkeypatch.setenv("FOGNN_DATA", str(data))
    assert where(it) == "data folder"
    monkeypatch.delenv("FOGNN_DATA")
    put(cache / "b")
    assert where(it) == "cache"
    with pytest.raises(FileError, match="data must name an existing folder"):
        where(it, tmp_path / "nowhere")


def test_a_folder_counts_too(tmp_path: Path) -> None:
    it = entry(("pictures",))
    assert where(it, tmp_path) == "no"
    (tmp_path / "pictures").mkdir()
    assert where(it, tmp_path) == "data folder"


def test_damaged_file_in_the_cache_is_not_here(cache: Path) -> None:
    put(cache / "omniglot" / "images_background.zip", cache / "omniglot" / "images_evaluation.zip")
    assert where(dataset_info("omniglot")) == "no"


def test_generated(cache: Path) -> None:
    cluster = dataset_info("CLUSTER")
    assert where(cluster) == "generated"
    assert not cache.exists()  # asking makes nothing
    cluster.make(split="val", num_graphs=3)
    assert where(cluster, splits=["val"]) == "generated"  # three graphs are not the split
    cluster.open("val")
    assert where(cluster, splits=["val"]) == "cache"
    assert where(cluster) == "generated"


def test_open() -> None:
    assert entry().open("val", "folder") == {"split": "val", "data": "folder"}
    assert entry().open(None, "folder") == {"data": "folder"}
