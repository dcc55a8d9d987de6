import os
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules
from torch_geometric.data import Data

from fognn.datasets.graph_files import write_graphs
from fognn.models import TASKS, Task
from fognn.training import DataConfig
from fognn.training.own_data import is_file, own_graphs, own_objective, own_task
from fognn.utils.errors import FileError

SPLITS = ("train", "val", "test")
SMILES = ["C" * length for length in range(1, 13)]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *[("ZINC", False), ("imdb-multi", False), ("ZINC-without-node-features", False)],
        *[("a.csv", True), ("a.PT", True), ("a.npz", True), ("./graphs", True), ("graphs/", True)],
        *[("a/b", True), ("/data/graphs", True), ("~/graphs", True), ("a.txt", False)],
    ],
)
def test_what_is_a_file(name: str, file: bool) -> None:
    assert is_file(DataConfig(name)) == file


def written(path: Path, graphs: list[Data], **changes: Any) -> DataConfig:
    write_graphs(path / "graphs.npz", graphs)
    return DataConfig(str(path / "graphs.npz"), **changes)


def numbered(count: int) -> list[Data]:
    """Graphs whose y is their number."""
    graphs = molecules(count)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([float(number)])
    return graphs


def numbers(data: DataConfig) -> dict[str, list[int]]:
    return {split: [int(graph.y) for graph in own_graphs(data, split)] for split in SPLITS}


@pytest.mark.parametrize("count", [10, 11, 19, 57])
@pytest.mark.parametrize("seed", [0, 7])
def test_every_graph_is_in_one_split(tmp_path: Path, count: int, seed: int) -> None:
    parts = numbers(written(tmp_path, numbered(count), seed=seed))
    assert sorted(chain(*parts.values())) == list(range(count))
    assert len(parts["train"]) == count * 8 // 10
    assert 1 <= len(parts["val"]) <= -(-count // 10)
    assert 1 <= len(parts["test"]) <= -(-count // 10)
    for part in parts.values():
        assert part == sorted(part), "in the order of the file"


def test_the_seed_of_the_data_decides_the_splits(tmp_path: Path) -> None:
    first = numbers(written(tmp_path, numbered(40)))
    assert numbers(written(tmp_path, numbered(40), seed=1)) != first
    # The same number of other graphs, in another kind of file, is split alike.
    lines = [f"C,{number}" for number in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,value", *lines]))
    assert numbers(DataConfig(str(tmp_path / "a.csv"), target="value")) == first
    assert first["test"] != [36, 37, 38, 39], "graphs that lie together may be alike"


def test_a_fraction_of_the_graphs(tmp_path: Path) -> None:
    parts = numbers(written(tmp_path, numbered(40), fraction=0.5))
    assert [len(part) for part in parts.values()] == [16, 2, 2]
    assert len(set(chain(*parts.values()))) == 20
    least = numbers(written(tmp_path, numbered(40), fraction=0.01))
    assert [len(part) for part in least.values()] == [8, 1, 1], "ten graphs are the least"


def changed(**values: Any) -> list[Data]:
    """Twelve graphs with some attributes made anew: a shape with N or E, a number, or nothing."""
    graphs = molecules(12)
    for graph in graphs:
        sizes = {"N": graph.num_nodes, "E": graph.num_edges}
        for name, value in values.items():
            if value is None:
                del graph[name]
            else:
                kind, shape, high = value
                full = [sizes.get(size, size) for size in shape]
                ints = torch.arange(torch.Size(full).numel()).reshape(full) % high
                graph[name] = ints.to(kind)
    return graphs


INT, FLOAT = torch.int64, torch.float32


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Task("graph", 1, node_tokens=28, edge_tokens=4)),
        ({"y": (FLOAT, [1, 3], 9)}, Task("graph", 3, node_tokens=28, edge_tokens=4)),
        ({"y": (FLOAT, ["N"], 9)}, Task("node", 1, node_tokens=28, edge_tokens=4)),
        ({"y": (INT, ["N"], 5)}, Task("node", 5, node_tokens=28, edge_tokens=4)),
        ({"y": (INT, ["E"], 3)}, Task("edge", 3, node_tokens=28, edge_tokens=4)),
        ({"y": (INT, [1], 1)}, Task("graph", 2, node_tokens=28, edge_tokens=4)),
        ({"edge_attr": None}, Task("graph", 1, node_tokens=28)),
        ({"edge_attr": (FLOAT, ["E"], 9)}, Task("graph", 1, node_tokens=28, edge_channels=1)),
        ({"edge_attr": (FLOAT, ["E", 2], 9)}, Task("graph", 1, node_tokens=28, edge_channels=2)),
        ({"edge_attr": (INT, ["E", 1], 2)}, Task("graph", 1, node_tokens=28, edge_tokens=2)),
        ({"x": (FLOAT, ["N", 3], 9)}, Task("graph", 1, node_channels=3, edge_tokens=4)),
        ({"x": (FLOAT, ["N"], 9)}, Task("graph", 1, node_channels=1, edge_tokens=4)),
        ({"x": (INT, ["N", 1], 4)}, Task("graph", 1, node_tokens=4, edge_tokens=4)),
    ],
)
def test_the_task_is_what_the_graphs_hold(
    tmp_path: Path, values: dict[str, Any], expected: Task
) -> None:
    data = written(tmp_path, changed(**values))
    found = own_task(data)
    if "x" not in values:
        # Random atoms: how many there are was found by looking at all of them.
        atoms = 1 + max(int(graph.x.max()) for graph in molecules(12))
        assert found.node_tokens == atoms
        found = Task(**(vars(found) | {"node_tokens": 28}))
    assert found == expected
    learns_numbers = values.get("y", (FLOAT,))[0] == FLOAT
    assert own_objective(data) == (
        {"loss": "l1", "metric": "mae"}
        if learns_numbers
        else {"loss": "cross_entropy", "metric": "accuracy"}
    )


def test_classes_and_tokens_of_the_last_graph_count(tmp_path: Path) -> None:
    graphs = molecules(12, classes=2)
    graphs[-1].y[0], graphs[-1].x[0], graphs[-1].edge_attr[0] = 6, 40, 9
    assert own_task(written(tmp_path, graphs)) == Task("graph", 7, node_tokens=41, edge_tokens=10)


def test_molecules(tmp_path: Path) -> None:
    path = tmp_path / "a.CSV"
    lines = [f"{number},{text}" for number, text in enumerate(SMILES)]
    path.write_text("\n".join(["value,molecule", *lines]))
    data = DataConfig(str(path), target="value", smiles="molecule")
    assert own_task(data) == TASKS["zinc"]
    assert own_objective(data) == {"loss": "l1", "metric": "mae"}
    for split in SPLITS:
        for graph in own_graphs(data, split):
            assert graph.num_nodes == int(graph.y) + 1, "the target of its own line"


def test_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["smiles,value", "C(,1", *(f"{text},2" for text in SMILES)]))
    with pytest.raises(ValueError, match=r"a\.csv, line 2: smiles must be a valid SMILES"):
        own_task(DataConfig(str(path), target="value"))
    with pytest.warns(UserWarning, match="1 of 13 lines were skipped"):
        graphs = own_graphs(DataConfig(str(path), target="value", skip_bad=True), "train")
    assert len(graphs) == 9


def test_a_target_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["smiles,value", *(f"{text},2" for text in SMILES)]))
    with pytest.raises(ValueError, match=r"data\.target must name the column of .*a\.csv"):
        own_objective(DataConfig(str(path)))
    with pytest.raises(
        ValueError, match=r"target_column must be one of \['smiles', 'value'\], got 'logp'"
    ):
        own_objective(DataConfig(str(path), target="logp"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"y": None}, "y of each graph must be .* got None"),
        ({"y": (INT, [1, 1], 1)}, r"graph 0: y of integers must be classes.* shape \[1, 1\]"),
        ({"y": (INT, ["N", 2], 2)}, r"graph 0: y of integers must be classes.*floating point"),
    ],
)
def test_labels_that_cannot_be_learnt(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        own_task(written(tmp_path, changed(**values)))


def test_classes_below_zero(tmp_path: Path) -> None:
    graphs = molecules(12, classes=2)
    graphs[5].y[0] = -1
    with pytest.raises(ValueError, match=r"graph 5: y of integers must be classes.* got -1"):
        own_objective(written(tmp_path, graphs))


def test_too_few_graphs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must have at least 10 graphs.*got 9"):
        own_graphs(written(tmp_path, molecules(9)), "train")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.npz is not there"):
        own_task(DataConfig(str(tmp_path / "none.npz")))
    with pytest.raises(ValueError, match="path must be a folder, or end in"):
        own_task(DataConfig(str(tmp_path / "none")))
    with pytest.raises(ValueError, match="path must name a file"):
        own_task(DataConfig(str(tmp_path / "none.csv"), target="a"))


def test_a_folder_of_files(tmp_path: Path) -> None:
    graphs = numbered(20)
    (tmp_path / "all").mkdir()
    write_graphs(tmp_path / "all" / "a.npz", graphs[:7])
    write_graphs(tmp_path / "all" / "b.npz", graphs[7:])
    assert numbers(DataConfig(str(tmp_path / "all"))) == numbers(written(tmp_path, graphs))


def test_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, numbered(12))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(own_graphs(DataConfig("~/graphs.npz"), "train")) == 9


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    data = written(tmp_path, numbered(20))
    assert len(own_graphs(data, "train")) == 16
    written(tmp_path, numbered(30))
    os.utime(data.name, (1, 1))  # a clock may be too coarse to tell two writes apart
    assert len(own_graphs(data, "train")) == 24
