"""Kept weights as a user of the command line has them: collect, verify, and networks by name."""

import json
import re
from pathlib import Path

import pytest
from kept_runs import kept_run, use_tiny_data
from tiny_images import write_cifar
from tiny_own_rows import use_small_rows

from fognn.experiments.tables import plan


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    monkeypatch.delenv("FOGNN_WEIGHTS", raising=False)
    # Not the weights of this clone.
    monkeypatch.setattr("fognn.models.weights.__file__", str(tmp_path / "a" / "b" / "c.py"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def kept(run) -> None:
    for planned in plan("zinc", ["gat"], [0, 1]):
        kept_run(Path(f"runs/{planned.name}"), planned)
    assert run("collect", "runs/gat-seed1", "runs/gat-seed0")[0] == 0


@pytest.mark.usefixtures("kept")
def test_verify(run) -> None:
    code, out, err = run("verify", "zinc")
    assert (code, err) == (0, "")
    header, line, summary = out.splitlines()
    assert re.fullmatch(r"network +seed +ledger +here *", header)
    figure = r"(\d\.\d{3}  \d\.\d{3})"
    assert re.fullmatch(rf"zinc/gat +0 +{figure} +\1 +ok", line)
    assert summary.startswith("1 of 1 networks agree with the ledger")
    assert run("verify", "--all")[0] == 0
    assert run("verify", "zinc", "pattern", "--results", "results", "--weights", "weights")[0] == 0

    code, out, _ = run("verify", "zinc", "--weights", "nowhere")
    assert code == 1
    assert "is missing" in out
    line = json.loads(Path("results/zinc.jsonl").read_text().splitlines()[1])
    del line["weights"]
    Path("results/zinc.jsonl").write_text(json.dumps(line) + "\n")
    code, out, _ = run("verify", "zinc")
    assert code == 1
    assert out.splitlines()[-3:] == [
        "0 of 1 networks agree with the ledger to the last printed digit, over batches and over "
        "items",
        "not: zinc/gat.safetensors",
        "measured, without weights: zinc/gat",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["zinc"], 1, "results must be a folder with ledgers, got 'results'"),
        (["znic"], 1, "unknown table 'znic'"),
        ([], 2, "names of tables, or --all"),
        (["zinc", "--all"], 2, "names of tables, or --all"),
    ],
)
def test_verify_what_is_not_there(run, arguments: list[str], code: int, message: str) -> None:
    found, out, err = run("verify", *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert list(Path().iterdir()) == []


@pytest.mark.usefixtures("kept")
def test_a_network_by_its_name(run) -> None:
    Path("m.csv").write_text("smiles\nCCO\nc1ccccc1O\n")
    pytest.importorskip("rdkit")
    by_folder = ["predict", "runs/gat-seed0", "m.csv", "-o", "a.csv", "--checkpoint", "last"]
    assert run(*by_folder)[0] == 0
    assert run("predict", "zinc/gat", "m.csv", "-o", "b.csv")[0] == 0
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert run("predict", "weights/zinc/gat.safetensors", "m.csv", "-o", "c.csv")[0] == 0
    assert Path("a.csv").read_text() == Path("c.csv").read_text()
    assert len(Path("a.csv").read_text().splitlines()) == 3
    evaluated = run("evaluate", "zinc/gat")
    assert evaluated[0] == 0
    assert evaluated == run("evaluate", "runs/gat-seed0", "--checkpoint", "last")
    assert run("export", "zinc/gat", "-o", "hub")[0] == 0
    assert run("predict", "zinc/gat", "m.csv", "-o", "x.csv", "--checkpoint", "best")[0] == 1


@pytest.mark.usefixtures("kept")
def test_a_folder_of_that_name_comes_first(run) -> None:
    (other,) = plan("zinc", ["gat"], [1])
    by_name = run("evaluate", "zinc/gat")
    Path("zinc").mkdir()
    Path("runs", other.name).rename("zinc/gat")
    by_folder = run("evaluate", "zinc/gat", "--checkpoint", "last")
    assert by_name[0] == by_folder[0] == 0
    assert by_name[1] != by_folder[1]


@pytest.mark.usefixtures("kept")
def test_a_name_without_weights(run) -> None:
    for name in ("zinc/gin", "runs/nothing"):
        code, out, err = run("evaluate", name)
        assert (code, out) == (1, "")
        assert re.fullmatch(
            rf"fognn: run must be .*got '{name}'; kept here: zinc/gat; the wheel has no weights: "
            r"clone .* FOGNN_WEIGHTS .*\n",
            err,
        )


def test_a_table_of_our_own(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_rows(monkeypatch)
    write_cifar(tmp_path / "data", images=8)
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path / "data"))
    shots = ("--set", "data.n_way=5", "--set", "data.k_shot=1")
    options = ("--quiet", "--no-ledger", "--set", "machine.threads=1")
    code, _, err = run("train", "cifar-fs-5way-1shot", "fewshot-gnn+fog", *options)
    assert code == 0, err
    assert run("train", "cifar-fs", "fewshot-gnn", *shots, *options)[0] == 0
    folders = [f"runs/cifar-fs/{name}-1shot-seed0" for name in ("gnn+fog", "gnn")]
    code, out, err = run("collect", *folders)
    assert (code, out.splitlines()) == (0, [folder.removeprefix("runs/") for folder in folders])
    code, out, _ = run("table", "cifar-fs")
    assert code == 0
    assert out.startswith("CIFAR-FS-5way-1shot: accuracy (%), higher is better; not in the paper.")
    code, out, _ = run("verify", "cifar-fs")
    assert code == 0
    assert out.count(" ok\n") == 2
    assert run("evaluate", "cifar-fs/gnn-1shot")[0] == 0
    assert run("report", "-o", "site")[0] == 0
    assert Path("site/runs/cifar-fs/gnn-1shot-seed0.html").is_file()
    code, out, _ = run("reproduce", "cifar-fs", "--models", "gnn-1shot", "--dry-run")
    assert (code, out.splitlines()[0]) == (0, "cifar-fs/gnn-1shot-seed0: finished")
