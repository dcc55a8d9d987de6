"""Data of users that are wrong: one line that says what, exit code 1, and nothing written."""

from pathlib import Path

import numpy as np
import pytest

from fognn.cli import main

SMILES = ["C" * n for n in range(1, 13)] * 2
SPLITS = ("train", "val", "test")


def table(header: str, *lines: str) -> str:
    return "\n".join([header, *lines]) + "\n"


TABLES = {
    "good.csv": table("smiles,y", *(f"{s},{n}.5" for n, s in enumerate(SMILES))),
    "text.csv": table(
        "smiles,y", *(f"{s},{'much' if n == 3 else n + 0.5}" for n, s in enumerate(SMILES))
    ),
    "missing.csv": table("smiles,y", *(f"{s}," for s in SMILES)),
    "molecule.csv": table(
        "smiles,y", *(f"{'C1CC' if n == 4 else s},{n}.5" for n, s in enumerate(SMILES))
    ),
    "no_val.csv": table(
        "smiles,y,split", *(f"{s},{n}.5,{SPLITS[n % 2 * 2]}" for n, s in enumerate(SMILES))
    ),
    "test_class.csv": table(
        "smiles,y,split",
        *(f"{s},{'c' if n == 23 else 'ab'[n % 2]},{SPLITS[n % 3]}" for n, s in enumerate(SMILES)),
    ),
}
NODES = np.arange(20)
GRAPH = {
    "x": np.ones((20, 4), np.float32),
    "edge_index": np.stack([NODES, np.roll(NODES, 1)]),
    "y": NODES % 2,
    "train_mask": NODES % 4 < 2,
    "val_mask": NODES % 4 == 2,
    "test_mask": NODES % 4 == 3,
}
GRAPHS = {
    "graph.npz": {},
    "overlap.npz": {"val_mask": NODES % 4 == 1},
    "no_mask.npz": {"test_mask": np.zeros(20, bool)},
    "outside.npz": {"edge_index": np.array([[0, 20], [1, 2]])},
}
Y = ["--target-column", "y"]
CLASSES = ["--task", "classification"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "none.csv", "gcn", *Y], "none.csv"),
        (["train", "none.npz", "gcn"], "none.npz is not there"),
        (["train", "good.csv", "gcn"], "data.target must name the column of"),
        (["train", "good.csv", "gcn", "--target-column", "z"], "['smiles', 'y'], got 'z'"),
        (["train", "good.csv", "gcn", *Y, "--smiles-column", "s"], "smiles_column must be one of"),
        (["train", "good.csv", "gcn", *Y, "--split-column", "s"], "split_column must be one of"),
        (["train", "text.csv", "gcn", *Y], "line 5: column 'y' must be a finite number"),
        (["train", "missing.csv", "gcn", *Y], "column 'y' must have a value, all are missing"),
        (["train", "molecule.csv", "gcn", *Y], "line 6: smiles must be a valid SMILES string"),
        (["train", "no_val.csv", "gcn", *Y, "--split-column", "split"], "the val split must have"),
        (
            ["train", "test_class.csv", "gcn", *Y, "--split-column", "split", *CLASSES],
            "class 'c' is in the test split",
        ),
        (["train", "overlap.npz", "gcn"], "train_mask and val_mask of split 1 must not overlap"),
        (["train", "no_mask.npz", "gcn"], "test_mask of split 1 must select a node, got none"),
        (["train", "outside.npz", "gcn"], "edge_index must lie in 0..19"),
        (["train", "pyg:TUDatset/PROTEINS", "gcn"], "did you mean 'TUDataset'"),
        (["train", "good.csv", "gcn", *Y, "--loss", "bce", "--metric", "roc_auc"], "l1 or mse"),
        (["compare", "good.csv", "--target-column", "z", "--hosts", "gcn"], "got 'z'"),
        (["compare", "good.csv", *Y, "--hosts", "gnc"], "got 'gnc'; did you mean"),
        (["compare", "good.csv", *Y, "--hosts", "gcn", "--budget", "10"], "budget must be"),
        (["compare", "graph.npz", "--hosts", "gatedgcn-e"], "without edge features take"),
        (["compare", "good.csv", *Y, "--hosts", "gcn", "--time", "soon"], "got 'soon'"),
        (["compare", "good.csv", *Y, "--hosts", "gcn", "--rates", "fast"], "fast"),
        (["compare", "good.csv", *Y, "--hosts", "gcn", "--import", "none.py"], "none.py"),
    ],
)
def test_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FOGNN_DATA", raising=False)
    for name, text in TABLES.items():
        Path(name).write_text(text)
    for name, changes in GRAPHS.items():
        np.savez(name, **GRAPH | changes)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("sys.argv", ["fognn", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert end.value.code == 1
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    # Warnings of libraries that are imported for the first time are not ours.
    own = [line for line in err.splitlines() if "torch.jit" not in line]
    assert len(own) == 1
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"


def test_bad_molecules_are_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    Path("molecule.csv").write_text(TABLES["molecule.csv"])
    arguments = ["train", "molecule.csv", "gcn", *Y, "--skip-bad", "--epochs", "1", "-o", "run"]
    monkeypatch.setattr("sys.argv", ["fognn", *arguments, "--set", "model.channels=8"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    out, err = capsys.readouterr()
    assert "1 of 24 lines were skipped, the first is line 6" in err
    assert "target y: numbers (regression)" in err
    assert "split: 18 train, 2 val, 3 test" in err
    assert "test mae" in out
