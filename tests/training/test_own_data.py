import csv
import os
import statistics
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import molecules
from torch_geometric.data import Data

from fognn.data.graph_files import write_graphs
from fognn.data.molecules import ATOM_COLUMNS, BOND_COLUMNS
from fognn.experiments import protocol
from fognn.models import Task
from fognn.training import DataConfig, fit, predict
from fognn.training.own_data import is_own, open_own, own_graphs, own_objective, own_task
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
    assert is_own(DataConfig(name)) == file


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
        found = replace(found, node_tokens=28)
    learns_numbers = values.get("y", (FLOAT,))[0] == FLOAT
    assert (found.mean is not None) == learns_numbers
    assert replace(found, mean=None, std=None) == expected
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
    lines = [f"{number}.0,{text}" for number, text in enumerate(SMILES)]
    path.write_text("\n".join(["value,molecule", *lines]))
    data = DataConfig(str(path), target="value", smiles="molecule")
    task = own_task(data)
    values = [float(graph.y) for graph in own_graphs(data, "train")]
    assert task.mean == pytest.approx((statistics.fmean(values),))
    assert task.std == pytest.approx((statistics.pstdev(values),))
    assert task == Task(
        "graph",
        1,
        node_tokens=ATOM_COLUMNS,
        edge_tokens=BOND_COLUMNS,
        mean=task.mean,
        std=task.std,
        names=("value",),
    )
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
        ({"y": (INT, [1, 4], 9)}, r"graph 0: y of integers must be classes.* shape \[1, 4\]"),
        ({"y": (INT, ["N", 2], 9)}, r"graph 0: y of integers must be classes.*floating point"),
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


def csv_of(path: Path, header: str, *lines: str, **settings: Any) -> DataConfig:
    (path / "a.csv").write_text("\n".join([header, *lines]))
    return DataConfig(str(path / "a.csv"), **settings)


RINGS = ["C1CC1", "C1CCC1", "C1CCCC1", "c1ccccc1"]


def test_kinds_of_targets(tmp_path: Path) -> None:
    lines = [
        f"{text},{n % 2},{n % 3},{'' if n % 3 else n % 2}" for n, text in enumerate(SMILES * 3)
    ]
    data = csv_of(tmp_path, "smiles,active,kind,other", *lines)
    for target, objective, out, names in (
        ("active", {"loss": "bce", "metric": "roc_auc"}, 1, ("active",)),
        ("kind", {"loss": "cross_entropy", "metric": "accuracy"}, 3, ("0", "1", "2")),
        ("active,other", {"loss": "bce", "metric": "roc_auc"}, 2, ("active", "other")),
        ("active,kind", {"loss": "l1", "metric": "mae"}, 2, ("active", "kind")),
    ):
        chosen = replace(data, target=target)
        task = own_task(chosen)
        assert own_objective(chosen) == objective
        assert (task.out_channels, task.names) == (out, names)
    overruled = replace(data, target="active", task="regression")
    assert own_objective(overruled) == {"loss": "l1", "metric": "mae"}
    assert own_task(overruled).mean == pytest.approx((0.5,), abs=0.2)


def test_splits_of_a_column(tmp_path: Path) -> None:
    parts = ["train", "valid", "train", "test"]
    lines = [f"{text},{n}.5,{parts[n % 4]}" for n, text in enumerate(SMILES)]
    data = csv_of(tmp_path, "smiles,y,part", *lines, target="y", split_column="part")
    found = {s: [float(graph.y) for graph in own_graphs(data, s)] for s in SPLITS}
    assert found["val"] == [1.5, 5.5, 9.5]
    assert found["test"] == [3.5, 7.5, 11.5]
    with pytest.raises(ValueError, match=r"a\.csv: split_column must be one of .*got 'fold'"):
        own_graphs(replace(data, split_column="fold"), "train")
    data = csv_of(tmp_path, "smiles,y,part", *(line.replace("valid", "train") for line in lines))
    os.utime(data.name, (1, 1))
    with pytest.raises(ValueError, match="the val split must have at least one graph, got none"):
        own_graphs(replace(data, target="y", split_column="part"), "train")


def test_scaffolds(tmp_path: Path) -> None:
    rings = [ring + "C" * n for ring in RINGS for n in range(5)]
    data = csv_of(tmp_path, "smiles,y", *(f"{r},{n}.5" for n, r in enumerate(rings)), target="y")
    with pytest.raises(ValueError, match="the val split must have at least one graph, got none"):
        own_graphs(replace(data, split="scaffold"), "train")  # four groups of a quarter each
    single = [f"{'C' * n}C1{'C' * n}CC1" for n in range(2, 12)]
    lines = [f"{text},{n}.5" for n, text in enumerate(rings[:10] + single)]
    data = csv_of(tmp_path, "smiles,y", *lines, target="y", split="scaffold")
    os.utime(data.name, (2, 2))
    where = {float(g.y): split for split in SPLITS for g in own_graphs(data, split)}
    assert {where[n + 0.5] for n in range(10)} == {"train"}
    graphs = written(tmp_path, numbered(20), split="scaffold")
    with pytest.raises(ValueError, match=r"data\.split must not be 'scaffold' for .*graphs\.npz"):
        own_graphs(graphs, "train")


def test_a_class_that_only_the_test_split_has(tmp_path: Path) -> None:
    parts = ["train", "val", "test"]
    lines = [f"{text},{parts[n % 3]},{n % 3}" for n, text in enumerate(SMILES * 2)]
    data = csv_of(tmp_path, "smiles,part,y", *lines, target="y", split_column="part")
    with pytest.raises(ValueError, match="class '1' is in the val split, so it must be in the tra"):
        own_graphs(data, "train")
    lines = [f"{text},{parts[n % 3]},{int(n % 3 > 0)}" for n, text in enumerate(SMILES * 2)]
    data = csv_of(tmp_path, "smiles,part,y", *lines, target="y", split_column="part")
    os.utime(data.name, (1, 1))
    with pytest.raises(ValueError, match="column 'y' must have both 0 and 1 in the train split"):
        own_graphs(data, "train")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "cross_entropy", "metric": "accuracy"}, r"training\.loss must be l1 or mse"),
        ({"loss": "bce", "metric": "roc_auc"}, r"training\.loss must be l1 or mse .*got 'bce'"),
        ({"metric": "accuracy"}, r"training\.metric must fit training\.loss"),
    ],
)
def test_an_objective_that_does_not_fit(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    data = written(tmp_path, numbered(20))
    with pytest.raises(ValueError, match=message):
        fit(protocol(data.name, "gcn", 0, settings), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_ranking_metric_needs_two_classes_in_each_split(tmp_path: Path) -> None:
    lines = [f"{text},{int(n < 12)},{['train', 'val', 'test', 'train'][n % 4]}"
             for n, text in enumerate(SMILES * 2)]  # fmt: skip
    lines = [line.replace(",0,test", ",1,test") for line in lines]
    data = csv_of(tmp_path, "smiles,y,part", *lines, target="y", split_column="part")
    values = {"data.target": "y", "data.split_column": "part", "training.epochs": 1}
    with pytest.raises(ValueError, match=r"metric must not be 'roc_auc', .* of the test split"):
        fit(protocol(data.name, "gcn", 0, values), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
    small = {"model.channels": 8, "training.metric": "accuracy"}
    result = fit(protocol(data.name, "gcn", 0, values | small), tmp_path / "run", quiet=True)
    assert result.metric == "accuracy"


def test_graphs_without_node_features(tmp_path: Path) -> None:
    graphs = molecules(20)
    for graph in graphs:
        graph.num_nodes = graph.num_nodes + 1  # a node without edges
        del graph.x
    data = written(tmp_path, graphs)
    task = own_task(data)
    assert (task.node_channels, task.node_input) == (1, "degree")
    first = open_own(data).graphs[0]
    degree = torch.bincount(graphs[0].edge_index[1], minlength=graphs[0].num_nodes)
    torch.testing.assert_close(first.x.squeeze(1), degree.float().log1p())
    assert "nodes have no features: log(1 + in-degree) is taken" in open_own(data).notes
    rings = [
        Data(
            edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3, y=torch.tensor([0.5 * n])
        )
        for n in range(12)
    ]
    write_graphs(tmp_path / "rings.npz", rings)
    assert own_task(DataConfig(str(tmp_path / "rings.npz"))).node_input == "constant"


def test_graphs_without_edges_and_columns_of_tokens(tmp_path: Path) -> None:
    graphs = [
        Data(
            x=torch.tensor([[n % 3, 7], [0, n % 2]]),
            edge_index=torch.empty(2, 0, dtype=torch.long),
            y=torch.tensor([n % 2]),
        )
        for n in range(20)
    ]
    data = written(tmp_path, graphs)
    assert own_task(data) == Task("graph", 2, node_tokens=(3, 8))
    small = {"model.channels": 8, "training.epochs": 1, "machine.threads": 1}
    result = fit(protocol(data.name, "gcn+fog", 0, small), tmp_path / "run", quiet=True)
    assert 0 <= result.metrics["test/accuracy"] <= 100


def test_predictions_are_in_the_unit_of_the_targets(tmp_path: Path) -> None:
    lines = [f"{text},{1000 + 100 * len(text)}.5" for text in SMILES * 4]
    data = csv_of(tmp_path, "molecule,y", *lines)
    values: dict[str, Any] = {"data.target": "y", "data.smiles": "molecule"}
    values |= {"training.epochs": 30, "training.lr": 0.01, "model.channels": 16}
    config = protocol(data.name, "gin", 0, values | {"training.batch_size": 8})
    result = fit(config, tmp_path / "run", quiet=True)
    # Numbers of about 1,600: without standardisation, 30 epochs would not reach them.
    assert result.metrics["test/mae"] < 300
    loss = result.metrics["test/loss"]
    assert loss == pytest.approx(result.metrics["test/mae"] / own_task(config.data).std[0])
    predict(tmp_path / "run", data.name, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = [abs(float(r["prediction"]) - (1000.5 + 100 * len(r["smiles"]))) for r in rows]
    assert statistics.fmean(errors) < 300
