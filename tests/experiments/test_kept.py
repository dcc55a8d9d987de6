import json
import shutil
from pathlib import Path

import pytest
import torch
from kept_runs import kept_run, use_tiny_data
from tiny_own_rows import small_plan, use_small_rows

import fognn
from fognn.experiments.ledger import Check, add_to_ledger, ledger_of, verify
from fognn.experiments.tables import plan
from fognn.models.weights import read_weights
from fognn.training import evaluate, fit

FILE = Path("weights/zinc/gat.safetensors")
LEDGER = Path("results/zinc.jsonl")


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a run of ZINC with weights, one without, and one over folds."""
    place = tmp_path_factory.mktemp("ready")
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_data(patch)
        patch.chdir(place)
        for run in [*plan("zinc", ["gat", "gin"], [1]), *plan("limits", ["gin-imdb-multi"])]:
            folder = kept_run(run.folder(Path("runs")), run)
            if run.slug == "gin":
                (folder / "last.ckpt").unlink()
            add_to_ledger(run, folder, Path("results"))
    return place


@pytest.fixture
def place(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    for name in ("results", "weights"):
        shutil.copytree(ready / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)


def change(path: Path, *keys: str | int, by: float) -> None:
    """Adds to a figure of the first line."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = lines[0]["result"]
    for key in keys[:-1]:
        found = found[key]
    found[keys[-1]] += by
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_all_as_in_the_ledger(place: None) -> None:
    (check,) = verify(["zinc"])
    assert (check.name, check.seed, check.digits, check.ok) == ("zinc/gat", 1, 3, True)
    assert check.here == pytest.approx(check.ledger, abs=1e-6)
    assert check.ledger[0] != check.ledger[1], "over batches and over items"
    assert [one.name for one in verify()] == ["zinc/gat", "limits/gin-imdb-multi"]
    assert list(verify(["tsp"])) == []


@pytest.mark.parametrize(("ledger", "ok"), [(0.2864, True), (0.28565, True), (0.2874, False)])
def test_half_a_unit_of_the_last_digit(ledger: float, ok: bool) -> None:
    assert Check("zinc/gat", 0, 3, (0.286, ledger), (0.286, 0.286)).ok == ok
    assert not Check("few-shot/gnn", 0, 2, (50.0,), (50.006,)).ok


@pytest.mark.parametrize("over", ["batches", "items"])
def test_another_figure(place: None, over: str) -> None:
    change(LEDGER, "test", "last", over, by=0.001)
    assert [(check.ok, check.problem) for check in verify(["zinc"])] == [(False, "")]


def test_a_fold_has_its_own_figure(place: None) -> None:
    for fold, ok in ((1, True), (0, False)):
        change(Path("results/limits.jsonl"), "folds", fold, "val", "last", "items", by=1)
        assert [check.ok for check in verify(["limits"])] == [ok]


def test_damaged_missing_and_unknown_files(place: None) -> None:
    shutil.copy(FILE, FILE.with_name("gin.safetensors"))
    data = bytearray(FILE.read_bytes())
    data[20] ^= 1
    FILE.write_bytes(data)
    first, second = verify(["zinc"])
    assert "its checksum is not that of the ledger" in first.problem
    assert (second.name, second.ok) == ("zinc/gin", False)
    assert "no line of the ledger names this file" in second.problem
    FILE.unlink()
    assert "gat.safetensors is missing" in next(verify(["zinc"])).problem


def test_data_that_are_not_here(place: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise FileNotFoundError("ZINC is not here")

    monkeypatch.setattr("fognn.experiments.ledger.evaluate", missing)
    (check,) = verify(["zinc"])
    assert check.problem == "not evaluated: ZINC is not here"


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"verify: unknown table 'znic'"):
        list(verify(["znic"]))
    with pytest.raises(ValueError, match=r"verify: results must be a folder .*got 'nowhere'"):
        list(verify(["zinc"], "nowhere"))


def test_few_shot_weights_are_those_of_the_best_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_small_rows(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOGNN_DATA", "data")
    monkeypatch.setenv("FOGNN_WEIGHTS", "weights")
    (run,) = small_plan(tmp_path / "data", ["gnn-1shot"])
    folder = run.folder(Path("runs"))
    fit(run.config, folder, quiet=True)
    add_to_ledger(run, folder, Path("results"))
    (entry,) = ledger_of("cifar-fs", "results").entries()
    weights = read_weights(Path(f"weights/{entry.row}.safetensors"))
    assert weights.epoch == entry.result["best_epoch"]
    best = torch.load(folder / "best.ckpt")["model"]
    assert all(torch.equal(value, best[name]) for name, value in weights.tensors.items())
    assert all(check.ok for check in verify(["cifar-fs"]))
    scores = evaluate("cifar-fs/gnn-1shot")
    assert scores["accuracy_items"] == pytest.approx(entry.result["test"]["best"]["items"])
    with pytest.raises(ValueError, match=r"checkpoint must be .*'best'"):
        fognn.load("cifar-fs/gnn-1shot", "last")
