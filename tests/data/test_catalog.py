import re
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.datasets import ZINC as PygZINC  # noqa: N811
from torch_geometric.datasets import GNNBenchmarkDataset

from fognn.data.catalog import CATALOG, DatasetInfo, dataset_info, where
from fognn.data.statistics import count, joined, statistics
from fognn.utils.errors import FileError

# Where the numbers of a draw of ours need not be those of the published draw.
RANDOM = {"PATTERN", "CLUSTER", "TSP"}


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_entry_is_whole(entry: DatasetInfo) -> None:
    assert entry.task
    assert entry.size
    assert entry.licence
    assert entry.origin
    assert entry.files or entry.generated
    assert entry.publication
    assert set(entry.published) <= {*entry.splits, "all"}


@pytest.mark.parametrize("name", ["zinc", "ZINC", "Zinc", "imdb_multi", "IMDB-MULTI", "cifarfs"])
def test_entry_of(name: str) -> None:
    assert dataset_info(name).name in ("ZINC", "IMDB-MULTI", "CIFAR-FS")


@pytest.mark.parametrize("name", ["", "zink", "mnist", "zinc12k"])
def test_unknown_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"name must be one of PATTERN, .*, got '{name}'"):
        dataset_info(name)


@pytest.mark.parametrize(
    ("name", "page", "row"),
    [
        ("PATTERN", GNNBenchmarkDataset, "PATTERN"),
        ("CLUSTER", GNNBenchmarkDataset, "CLUSTER"),
        ("TSP", GNNBenchmarkDataset, "TSP"),
        ("ZINC", PygZINC, "ZINC Subset"),
    ],
)
def test_facts_are_those_of_pygs_documentation(name: str, page: type, row: str) -> None:
    printed = re.search(rf"\* - {row}\n((?: +- \S+\n?)+)", page.__doc__ or "")
    assert printed is not None
    graphs, nodes, edges, *_ = re.findall(r"- ~?([\d,.]+)", printed[1].replace(",", ""))
    facts = dataset_info(name).published["all"]
    assert facts["graphs"] == graphs
    assert round(float(facts["nodes, mean"]), 1) == float(nodes)
    assert round(float(facts["edges, mean"]), 1) == float(edges)


def compare(entry: DatasetInfo, data: Path) -> None:
    counts = {split or "all": count(entry.open(split, data)) for split in entry.splits or (None,)}
    columns = {split: statistics(found) for split, found in counts.items()}
    columns["all"] = statistics(joined(list(counts.values())))
    for split, printed in entry.published.items():
        for name, text in printed.items():
            got, digits = columns[split][name], len(text.partition(".")[2])
            if entry.name == "CIFAR-FS" and name == "images a class, most":
                assert got == 100  # the file holds the first 100, as its note says
            elif entry.name in RANDOM and digits:
                assert got == pytest.approx(float(text), rel=0.07)
            else:
                assert round(got, digits) == float(text), (split, name)


@pytest.mark.parametrize("name", ["ZINC", "IMDB-MULTI", "CIFAR-FS"])
def test_published_facts(
    name: str, real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path))
    compare(dataset_info(name), real_data)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sorted(RANDOM), "Omniglot"])
def test_published_facts_of_large_datasets(
    name: str, real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path))
    compare(dataset_info(name), real_data)


# Where a dataset is


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entry(*files: tuple[str, ...], **other: Any) -> DatasetInfo:
    texts = dict.fromkeys(("kind", "task", "size", "licence", "origin", "publication"), "")
    make = lambda **arguments: arguments  # noqa: E731
    return DatasetInfo("X", make, published={}, files=files, **texts, **other)


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


def test_generated(cache: Path) -> None:
    assert where(dataset_info("CLUSTER")) == "generated"
    assert not cache.exists()  # asking makes nothing
