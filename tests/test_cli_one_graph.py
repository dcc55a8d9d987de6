"""One graph with masks, datasets of PyG by name, and wrong data of the user, as a user has them."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyg_roots
import pytest
import yaml
from command_line import Done, Run

SMALL = ["--quiet", "--lr", "0.01", "--device", "cpu", "--set", "model.layers=2"]
SMALL += ["--set", "machine.threads=1"]
ONE = ["--epochs", "1", *SMALL]


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


def rows_of(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_describe_train_and_predict(run: Run) -> None:
    np.savez("graph.npz", **arrays())
    described = run("data", "graph.npz").stdout
    for text in ("labelled nodes", "class 0, share", "split test", "number 1 of 2"):
        assert text in described
    folder = trained(run("train", "graph.npz", "gcn+fog", "--epochs", "15", *SMALL))
    result = result_of(folder)
    assert result["metric"] == "accuracy"
    assert result["test"]["best"]["items"] > 60  # 33 by chance
    done = run("predict", str(folder), "--split", "test")
    assert f"test_accuracy_items: {result['test']['best']['items']:.6g}" in done.stdout
    done = run("predict", str(folder), "graph.npz", "-o", "out.csv")
    assert "out.csv: 90 predictions" in done.stdout
    rows = rows_of("out.csv")
    assert [row["node"] for row in rows] == [str(node) for node in range(90)]
    # The predictions have the accuracy of the test.
    graph = arrays()
    right = np.array([int(row["class"]) for row in rows]) == graph["y"]
    accuracy = 100 * right[graph["test_mask"][:, 0]].mean()
    assert accuracy == pytest.approx(result["test"]["best"]["items"], abs=1e-3)
    # Without labels and masks.
    np.savez("new.npz", x=graph["x"], edge_index=graph["edge_index"])
    run("predict", str(folder), "new.npz", "-o", "new.csv")
    assert rows_of("new.csv") == rows


def test_the_splits(run: Run) -> None:
    np.savez("graph.npz", **arrays(splits=3))
    options = ["train", "graph.npz", "gcn", "--epochs", "3", *SMALL]
    first = result_of(trained(run(*options, "-o", "a")))
    second = result_of(trained(run(*options, "--set", "data.fold=2", "-o", "b")))
    assert first["fingerprint"] != second["fingerprint"]
    every = result_of(trained(run(*options, "--split", "all", "-o", "c")))
    assert [fold["fold"] for fold in every["folds"]] == [1, 2, 3]
    assert every["folds"][0]["test"] == first["test"]
    assert every["folds"][1]["test"] == second["test"]
    scores = [fold["test"]["best"]["items"] for fold in every["folds"]]
    assert every["test"]["best"]["items"] == pytest.approx(sum(scores) / 3)
    # A split of its own instead of the masks.
    fourth = result_of(trained(run(*options, "--split", "random", "-o", "d")))
    assert fourth["fingerprint"] != first["fingerprint"]


def test_sampled_neighbours(run: Run) -> None:
    np.savez("graph.npz", **arrays())
    sampled = ["--set", "data.neighbors=[3,2]", *SMALL]
    options = ["train", "graph.npz", "gcn+fog", *sampled]
    folder = trained(run(*options, "--batch-size", "7", "--epochs", "8"))
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert (config["data"]["neighbors"], config["model"]["norm"]) == ([3, 2], "mean")
    result = result_of(folder)
    assert result["test"]["best"]["items"] > 50
    done = run("predict", str(folder), "graph.npz", "-o", "out.csv")
    assert len(rows_of("out.csv")) == 90, done.stderr
    again = trained(run("train", "--config", str(folder / "config.yaml"), "-o", "b", "-q"))
    assert result_of(again)["test"] == result["test"]


def test_two_classes_by_roc_auc_and_numbers(run: Run) -> None:
    np.savez("two.npz", **arrays(classes=2))
    folder = trained(run("train", "two.npz", "gcn+fog", "--epochs", "10", *SMALL))
    assert result_of(folder)["metric"] == "roc_auc"
    assert 0.5 < result_of(folder)["test"]["best"]["items"] <= 1
    y = arrays()["x"].sum(1) * 100 + 5000
    np.savez("numbers.npz", **arrays(y=y))
    folder = trained(run("train", "numbers.npz", "gcn+fog", "--epochs", "20", *SMALL))
    assert result_of(folder)["metric"] == "mae"
    run("predict", str(folder), "numbers.npz", "-o", "out.csv")
    found = np.array([float(row["prediction"]) for row in rows_of("out.csv")])
    assert abs(found.mean() - y.mean()) < 200  # in the unit of the data


@pytest.mark.parametrize("model", ["gcn+fog", "gatedgcn", "gat+fog", "graphsage"])
def test_no_edges_no_features_no_masks(run: Run, model: str) -> None:
    none = dict.fromkeys(("x", "train_mask", "val_mask", "test_mask"))
    np.savez("a.npz", **arrays(edge_index=np.zeros((2, 0), int)))
    trained(run("train", "a.npz", model, *ONE))
    np.savez("b.npz", **arrays(**none))
    folder = trained(run("train", "b.npz", model, *ONE))
    assert result_of(folder)["test"] is not None
    run("predict", str(folder), "b.npz", "-o", "out.csv")
    assert len(rows_of("out.csv")) == 90


# --- wrong data: one line that names what, and nothing written ---

TRAIN = arrays()["train_mask"]
# Class 1 is one node, which the first split trains on and the second one does not.
ONLY_LAST = np.arange(90) == np.flatnonzero(TRAIN[:, 0] & ~TRAIN[:, 1])[0]


def fails(done: Done, message: str, before: list[str]) -> None:
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        ({"val_mask": TRAIN}, [], "train_mask"),
        ({"test_mask": TRAIN & False}, [], "test_mask"),
        ({"x": np.ones((50, 2))}, [], "edge_index"),
        ({"y": ONLY_LAST * 1}, ["--set", "data.fold=2"], "class 1"),
        ({"y": ONLY_LAST * 1}, ["--split", "all"], "class 1"),
        ({}, ["--set", "data.fold=3"], "data.fold"),
        ({}, ["--set", "data.fold=1", "--split", "random"], "data.fold"),
        ({}, ["--split", "scaffold"], "data.split"),
        ({}, ["--set", "data.neighbors=[3,0]"], "neighbors must be positive ints"),
        ({}, ["--set", "data.neighbors=[3]", "--set", "model.norm=sym"], "model.norm"),
        ({}, ["--set", "training.metric=mae"], "training.metric"),
    ],
)
def test_a_wrong_graph(run: Run, other: dict[str, Any], options: list[str], message: str) -> None:
    np.savez("graph.npz", **arrays(**other))
    fails(run("train", "graph.npz", "gcn+fog", *ONE, *options), message, ["graph.npz"])


SMILES = ["C" * n for n in range(1, 13)] * 2
Y = ["--target-column", "y"]
BY_COLUMN = [*Y, "--set", "data.split_column=split"]


def table(header: str, *columns: list[Any]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in zip(*columns, strict=True))])


HALVES = [n + 0.5 for n in range(24)]
TABLES = {
    "good": table("smiles,y", SMILES, HALVES),
    "text": table("smiles,y", SMILES, [*HALVES[:3], "much", *HALVES[4:]]),
    "missing": table("smiles,y", SMILES, [""] * 24),
    "molecule": table("smiles,y", [*SMILES[:4], "C1CC", *SMILES[5:]], HALVES),
    "no_val": table("smiles,y,split", SMILES, HALVES, ["train", "test"] * 12),
}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("good", [], "--target-column"),
        ("good", ["--target-column", "z"], "'z'"),
        ("good", [*Y, "--set", "data.smiles=s"], "'s'"),
        ("good", BY_COLUMN, "split"),
        ("text", Y, "line 5"),
        ("missing", Y, "'y'"),
        ("molecule", Y, "line 6"),
        ("molecule", Y, "--skip-bad"),
        ("no_val", BY_COLUMN, "val"),
        ("good", [*Y, "--set", "training.metric=roc_auc"], "training.metric"),
    ],
)
def test_a_wrong_table(run: Run, name: str, options: list[str], message: str) -> None:
    pytest.importorskip("rdkit")
    Path("mine.csv").write_text(TABLES[name] + "\n")
    fails(run("train", "mine.csv", "gcn", *ONE, *options), message, ["mine.csv"])


def test_bad_molecules_are_skipped_and_named(run: Run) -> None:
    pytest.importorskip("rdkit")
    Path("mine.csv").write_text(TABLES["molecule"] + "\n")
    options = [option for option in ONE if option != "--quiet"]
    done = run("train", "mine.csv", "gcn", *Y, "--skip-bad", "-o", "run", *options)
    assert done.returncode == 0, done.stderr
    assert "line 6" in done.stderr
    assert "18 train, 2 val, 3 test" in done.stderr


# --- datasets of PyG by name ---


def test_cora(run: Run, real_data: Path) -> None:
    """The public split: GCN is known to reach about 80 % with the best settings."""
    options = ["--epochs", "40", "--set", "training.weight_decay=5e-4", *SMALL]
    path = real_data / "single_graph" / "cora.npz"
    folder = trained(run("train", str(path), "gcn", "--set", "model.dropout=0.5", *options))
    assert result_of(folder)["test"]["best"]["items"] > 70


def test_planetoid_by_name(run: Run, tmp_path: Path) -> None:
    pyg_roots.planetoid(tmp_path / "data")
    options = ["--data", str(tmp_path / "data"), "--epochs", "12", *SMALL]
    folder = trained(run("train", "pyg:Planetoid/Cora", "gcn+fog", *options))
    assert folder.parent.name == "planetoid-cora"
    assert result_of(folder)["data"] == "pyg:Planetoid/Cora"
    assert result_of(folder)["test"]["best"]["items"] > 60  # 25 by chance
    done = run("predict", str(folder), "pyg:Planetoid/Cora", "-o", "o.csv")
    assert "o.csv: 660 predictions" in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pyg:TUDatset/MUTAG", "'TUDataset'"),
        ("pyg:Planetoid", "pyg:Planetoid"),
        ("pyg:KarateClub", "pyg:KarateClub"),
    ],
)
def test_wrong_names(run: Run, name: str, message: str) -> None:
    fails(run("train", name, "gcn+fog", *ONE), message, [])
