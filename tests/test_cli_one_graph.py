"""One graph with masks, and datasets of PyG by name, as a user trains on them."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyg_roots
import pytest
import torch
import yaml
from command_line import Done, Run
from torch_geometric.data import Data

from fognn.data import read_single_graph
from fognn.training.checkpoint import load_run
from fognn.training.prediction import predict_graphs, predict_nodes

SMALL = ["--quiet", "--lr", "0.01", "--threads", "1", "--device", "cpu", "--set", "model.layers=2"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def arrays(nodes: int = 90, classes: int = 3, splits: int = 2, **other: Any) -> dict[str, Any]:
    """Features tell the class with some noise. Directed edges, and ten nodes without any."""
    random = np.random.default_rng(0)
    y = np.arange(nodes) % classes
    x = np.eye(classes)[y] + 0.5 * random.standard_normal((nodes, classes))
    kinds = np.stack([random.permutation(np.arange(nodes) // 30 % 3) for _ in range(splits)], 1)
    names = {"train_mask": 0, "val_mask": 1, "test_mask": 2}
    masks = {name: kinds == kind for name, kind in names.items()}
    edge_index = random.integers(nodes - 10, size=(2, 4 * nodes))
    found = {"x": x, "edge_index": edge_index, "y": y, **masks, **other}
    return {name: value for name, value in found.items() if value is not None}


def trained(done: Done) -> Path:
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


def result_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text())
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_train_evaluate_and_predict(run: Run, here: Path) -> None:
    np.savez("graph.npz", **arrays())
    folder = trained(run("train", "graph.npz", "gcn+fog", "--epochs", "15", *SMALL))
    result = result_of(folder)
    assert result["metric"] == "accuracy"
    assert result["test"]["best"]["items"] > 60  # 33 by chance
    done = run("evaluate", str(folder), "--device", "cpu", "--threads", "1")
    assert f"test_accuracy_items: {result['test']['best']['items']:.6g}" in done.stdout
    done = run("predict", str(folder), "graph.npz", "-o", "out.csv", "--device", "cpu")
    assert "out.csv: 90 predictions" in done.stdout
    rows = rows_of(here / "out.csv")
    assert [row["node"] for row in rows] == [str(node) for node in range(90)]
    # The predictions have the accuracy of the test.
    graph = arrays()
    test = graph["test_mask"][:, 0]
    right = np.array([int(row["class"]) for row in rows]) == graph["y"]
    assert 100 * right[test].mean() == pytest.approx(result["test"]["best"]["items"], abs=1e-3)
    # Without labels and masks.
    np.savez("new.npz", x=graph["x"], edge_index=graph["edge_index"])
    run("predict", str(folder), "new.npz", "-o", "new.csv", "--device", "cpu")
    assert rows_of(here / "new.csv") == rows
    # No folder of this machine in the ledger.
    entry = (here / "results" / "runs.jsonl").read_text()
    assert "fognn train graph.npz gcn+fog" in entry
    assert str(here) not in entry


def test_the_same_graph_in_a_pt_file(run: Run) -> None:
    np.savez("graph.npz", **arrays())
    torch.save(Data(**{k: torch.as_tensor(v) for k, v in arrays().items()}), "graph.pt")
    found = [
        result_of(trained(run("train", name, "gin+fog", "--epochs", "2", "-o", name[-3:], *SMALL)))
        for name in ("graph.npz", "graph.pt")
    ]
    assert found[0]["test"] == found[1]["test"]
    assert found[0]["fingerprint"] == found[1]["fingerprint"]


def test_the_splits(run: Run, here: Path) -> None:
    np.savez("graph.npz", **arrays(splits=3))
    options = ["train", "graph.npz", "gcn", "--epochs", "3", *SMALL]
    first = result_of(trained(run(*options, "-o", "a")))
    second = result_of(trained(run(*options, "--fold", "2", "-o", "b")))
    assert first["fingerprint"] != second["fingerprint"]
    every = result_of(trained(run(*options, "--split", "all", "-o", "c")))
    assert [fold["fold"] for fold in every["folds"]] == [1, 2, 3]
    assert every["folds"][0]["test"] == first["test"]
    assert every["folds"][1]["test"] == second["test"]
    scores = [fold["test"]["best"]["items"] for fold in every["folds"]]
    assert every["test"]["best"]["items"] == pytest.approx(sum(scores) / 3)
    done = run("evaluate", "c", "--device", "cpu", "--threads", "1")
    assert f"test_accuracy_items: {sum(scores) / 3:.6g}" in done.stdout
    # A split of its own instead of the masks.
    fourth = result_of(trained(run(*options, "--split", "random", "-o", "d")))
    assert fourth["fingerprint"] != first["fingerprint"]


def test_sampled_neighbours(run: Run, here: Path) -> None:
    np.savez("graph.npz", **arrays())
    options = ["train", "graph.npz", "gcn+fog", "--neighbors", "3,2", *SMALL]
    folder = trained(run(*options, "--batch-size", "7", "--epochs", "8"))
    config = config_of(folder)
    assert config["data"]["neighbors"] == [3, 2]
    assert config["model"]["norm"] == "mean"
    result = result_of(folder)
    assert result["test"]["best"]["items"] > 50
    done = run("evaluate", str(folder), "--device", "cpu", "--threads", "1")
    assert f"test_accuracy_items: {result['test']['best']['items']:.6g}" in done.stdout
    done = run("predict", str(folder), "graph.npz", "-o", "out.csv", "--device", "cpu")
    assert len(rows_of(here / "out.csv")) == 90
    # The command in the ledger and the configuration give the same run.
    again = trained(run("train", "--config", str(folder / "config.yaml"), "-o", "b", "-q"))
    assert result_of(again)["test"] == result["test"]
    usual = config_of(trained(run(*options, "--epochs", "1")))
    assert usual["training"]["batch_size"] == 1024


def test_all_neighbours_are_the_whole_graph(run: Run) -> None:
    np.savez("graph.npz", **arrays())
    options = ["--neighbors", "-1,-1", "--epochs", "2", *SMALL]
    net, _, task = load_run(trained(run("train", "graph.npz", "gin+fog", *options)))
    assert task is not None
    graph = read_single_graph("graph.npz")
    (whole,) = predict_graphs(net, [graph], task, device="cpu")
    sampled = predict_nodes(net, graph, task, (-1, -1), 7, "cpu")
    torch.testing.assert_close(sampled, whole, rtol=1e-4, atol=1e-4)
    fewer = predict_nodes(net, graph, task, (1, 1), 7, "cpu")
    assert not torch.allclose(fewer, whole, rtol=1e-2, atol=1e-2)


def test_two_classes_by_roc_auc_and_numbers(run: Run, here: Path) -> None:
    np.savez("two.npz", **arrays(classes=2))
    folder = trained(
        run("train", "two.npz", "gcn+fog", "--metric", "roc_auc", "--epochs", "10", *SMALL)
    )
    assert result_of(folder)["metric"] == "roc_auc"
    assert 0.5 < result_of(folder)["test"]["best"]["items"] <= 1
    y = arrays()["x"].sum(1) * 100 + 5000
    np.savez("numbers.npz", **arrays(y=y))
    folder = trained(run("train", "numbers.npz", "gcn+fog", "--epochs", "20", *SMALL))
    assert result_of(folder)["metric"] == "mae"
    run("predict", str(folder), "numbers.npz", "-o", "out.csv", "--device", "cpu")
    found = np.array([float(row["prediction"]) for row in rows_of(here / "out.csv")])
    assert abs(found.mean() - y.mean()) < 200  # in the unit of the data


@pytest.mark.parametrize("model", ["gcn+fog", "gatedgcn", "gat+fog", "graphsage"])
def test_no_edges_and_no_features(run: Run, model: str) -> None:
    none = np.zeros((2, 0), int)
    np.savez("a.npz", **arrays(edge_index=none))
    trained(run("train", "a.npz", model, "--epochs", "1", *SMALL))
    np.savez("b.npz", **arrays(x=None))
    folder = trained(run("train", "b.npz", model, "--epochs", "1", *SMALL))
    run("predict", str(folder), "b.npz", "-o", "out.csv", "--device", "cpu")
    assert len(rows_of(Path("out.csv"))) == 90


def test_a_graph_without_masks(run: Run) -> None:
    without = dict.fromkeys(("train_mask", "val_mask", "test_mask"))
    np.savez("a.npz", **arrays(**without))
    folder = trained(run("train", "a.npz", "gcn", "--epochs", "1", *SMALL))
    assert result_of(folder)["test"] is not None


TRAIN = arrays()["train_mask"]
# Class 1 is one node, which the first split trains on and the second one does not.
ONLY_LAST = np.arange(90) == np.flatnonzero(TRAIN[:, 0] & ~TRAIN[:, 1])[0]
NO_EPOCHS = ["--epochs", "1"]


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        ({"val_mask": TRAIN}, [], "train_mask and val_mask of split 1 must not overlap"),
        ({"test_mask": TRAIN & False}, [], "test_mask of split 1 must select a node, got none"),
        ({"x": np.ones((50, 2))}, [], "edge_index must lie in 0..49, the nodes of the graph"),
        ({"y": ONLY_LAST * 1}, ["--fold", "2"], "split 2: class 1 is in the"),
        ({"y": ONLY_LAST * 1}, ["--split", "all"], "split 2: class 1 is in the"),
        ({}, ["--fold", "3"], "data.fold must be in 1..2"),
        ({}, ["--fold", "1", "--split", "random"], "data.fold must be None with data.split"),
        ({}, ["--split", "scaffold"], "data.split must not be 'scaffold'"),
        (arrays(splits=1), ["--split", "all"], "data.split must not be 'all'"),
        ({}, ["--neighbors", "3,0"], "data.neighbors must be a positive int for each hop"),
        ({}, ["--neighbors", "3", "--set", "model.norm=sym"], "model.norm must be 'mean' or"),
        ({}, ["--ranks", "2"], "machine.ranks must be 1 for one graph"),
        ({}, ["--metric", "mae"], "training.metric must fit training.loss"),
    ],
)
def test_wrong_input(
    run: Run, here: Path, other: dict[str, Any], options: list[str], message: str
) -> None:
    np.savez("graph.npz", **arrays(**other))
    done = run("train", "graph.npz", "gcn+fog", *NO_EPOCHS, *options, *SMALL)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in here.iterdir()] == ["graph.npz"]


def test_only_the_split_that_is_used_needs_all_classes(run: Run) -> None:
    """As in PyG's WebKB/Texas, where one class is a single node."""
    np.savez("graph.npz", **arrays(y=ONLY_LAST * 1))
    trained(run("train", "graph.npz", "gcn", *NO_EPOCHS, *SMALL))


def test_neighbours_of_many_graphs(run: Run, here: Path) -> None:
    graph = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0.5]))
    torch.save([graph] * 20, "graphs.pt")
    done = run("train", "graphs.pt", "gcn", "--neighbors", "3", *NO_EPOCHS, *SMALL)
    assert done.returncode == 1
    assert "data.neighbors must be None" in done.stderr


def test_cora(run: Run, real_data: Path) -> None:
    """The public split: GCN is known to reach about 80 % with the best settings."""
    options = ["--epochs", "40", "--schedule", "none", "--weight-decay", "5e-4", *SMALL]
    path = real_data / "single_graph" / "cora.npz"
    folder = trained(run("train", str(path), "gcn", "--set", "model.dropout=0.5", *options))
    assert result_of(folder)["test"]["best"]["items"] > 70


def test_planetoid_by_name(run: Run, here: Path, tmp_path: Path) -> None:
    pyg_roots.planetoid(tmp_path / "data")
    options = ["--data", str(tmp_path / "data"), "--epochs", "12", *SMALL]
    folder = trained(run("train", "pyg:Planetoid/Cora", "gcn+fog", *options))
    assert folder.parent.name == "planetoid-cora"
    assert result_of(folder)["data"] == "pyg:Planetoid/Cora"
    assert result_of(folder)["test"]["best"]["items"] > 60  # 25 by chance
    entry = (here / "results" / "runs.jsonl").read_text()
    assert "fognn train pyg:Planetoid/Cora gcn+fog" in entry
    assert str(tmp_path) not in entry
    done = run("evaluate", str(folder), "--device", "cpu", "--threads", "1")
    assert "test_accuracy_items" in done.stdout
    done = run("predict", str(folder), "pyg:Planetoid/Cora", "-o", "o.csv", "--device", "cpu")
    assert "o.csv: 660 predictions" in done.stdout


def test_graphs_by_name(run: Run, tmp_path: Path) -> None:
    pyg_roots.tu_dataset(tmp_path / "cache", labels=False)
    folder = trained(run("train", "pyg:TUDataset/TINY", "gin+fog", "--epochs", "3", *SMALL))
    assert result_of(folder)["metric"] == "accuracy"
    run("predict", str(folder), "pyg:TUDataset/TINY", "-o", "o.csv", "--device", "cpu")
    assert len(rows_of(Path("o.csv"))) == 40


def test_splits_by_name(run: Run, tmp_path: Path) -> None:
    """Ten yes/no columns; the splits are those of the class."""
    pyg_roots.peptides(tmp_path / "cache", sizes=(40, 12, 14))
    options = ["--epochs", "1", *SMALL]
    folder = trained(run("train", "pyg:LRGBDataset/Peptides-func", "gatedgcn-e+fog", *options))
    assert config_of(folder)["training"]["loss"] == "bce"
    run("predict", str(folder), "pyg:LRGBDataset/Peptides-func", "-o", "o.csv", "--device", "cpu")
    assert len(rows_of(Path("o.csv"))) == 66


def test_molecules_by_name(run: Run, here: Path, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    pyg_roots.esol(tmp_path / "cache", pyg_roots.MOLECULES * 3)
    options = ["--split", "scaffold", "--epochs", "1", *SMALL]
    folder = trained(run("train", "pyg:MoleculeNet/ESOL", "gatedgcn-e", *options))
    assert result_of(folder)["metric"] == "mae"
    # A csv file of molecules has the same features.
    (here / "new.csv").write_text("smiles\nCCO\n[Au]\n")
    run("predict", str(folder), "new.csv", "-o", "o.csv", "--device", "cpu")
    assert len(rows_of(here / "o.csv")) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pyg:TUDatset/MUTAG", "got 'TUDatset'; did you mean 'TUDataset'"),
        ("pyg:Planetoid", "data must have the form pyg:Planetoid/NAME"),
        ("pyg:KarateClub", "with a root folder, got 'pyg:KarateClub'"),
    ],
)
def test_wrong_names(run: Run, here: Path, name: str, message: str) -> None:
    done = run("train", name, "gcn+fog", *NO_EPOCHS, *SMALL)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(here.iterdir()) == []
