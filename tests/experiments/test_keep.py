import hashlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from kept_runs import EPOCHS, kept_run, use_tiny_data

import fognn
from fognn.experiments.keep import enter, weights_beside
from fognn.experiments.ledger import Ledger, LedgerEntry
from fognn.experiments.tables import Planned, plan
from fognn.experiments.verification import verify
from fognn.models.weights import read_weights
from fognn.training import Config


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    monkeypatch.chdir(tmp_path)


def planned(seed: int = 0, model: str = "gat", table: str = "zinc") -> Planned:
    return plan(table, [model], [seed], ours=False)[0]


def lines(table: str = "zinc") -> dict[str, LedgerEntry]:
    return {line.key: line for line in Ledger(Path("results") / f"{table}.jsonl").entries()}


def checksum(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_the_first_run_of_a_row() -> None:
    run = planned()
    folder = kept_run(Path("runs/a"), run)
    assert enter(folder, "results") == [run.key]
    file = Path("weights/zinc/gat.safetensors")
    assert lines()[run.key].weights == checksum(str(file))
    kept = read_weights(file)
    assert (kept.key, kept.seed, kept.epoch, kept.model) == (run.key, 0, EPOCHS, "gat")
    assert Config.from_dict(kept.config) == run.config
    for name, value in fognn.load(folder, "last").state_dict().items():
        assert torch.equal(kept.tensors[name], value)
    # Once more, nothing changes, though the copy of the folder is newer.
    before = Path("results/zinc.jsonl").read_bytes(), file.read_bytes()
    enter(shutil.copytree(folder, "runs/copy", copy_function=shutil.copyfile), "results")
    assert (Path("results/zinc.jsonl").read_bytes(), file.read_bytes()) == before
    # A file that was lost is written again.
    file.unlink()
    enter(folder, "results")
    assert file.read_bytes() == before[1]


def test_the_lowest_seed_is_kept() -> None:
    for seed in (2, 3, 1):
        enter(kept_run(Path(f"runs/{seed}"), planned(seed)), "results")
        found = {line.seed: line.weights for line in lines().values()}
        lowest = min(found)
        assert found.pop(lowest) == checksum("weights/zinc/gat.safetensors")
        assert set(found.values()) <= {None}
        assert read_weights(Path("weights/zinc/gat.safetensors")).seed == lowest
    assert "weights" not in json.loads(Path("results/zinc.jsonl").read_text().splitlines()[0])


def test_rows_and_variants_have_their_own_files() -> None:
    runs = plan("zinc", ["gcn+fog", "gcn+fog-mean"])
    assert [run.slug for run in runs] == ["gcn+fog", "gcn+fog-mean"]
    keys = [key for run in runs for key in enter(kept_run(Path(run.slug), run), "results")]
    # The row is also one of the table of widths, and of the controls, which keep no second file.
    assert {"widths/gcn+fog-c158-seed0", "controls/zinc-gcn-kron-seed0"} <= {*keys}
    assert sorted(path.as_posix() for path in Path("weights").rglob("*.safetensors")) == [
        "weights/zinc/gcn+fog-mean.safetensors",
        "weights/zinc/gcn+fog.safetensors",
    ]
    for key, line in lines().items():
        assert line.weights == checksum(f"weights/{key.removesuffix('-seed0')}.safetensors")
    others = (lines("widths") | lines("controls")).values()
    assert [line.weights for line in others] == [None, None]
    # They are not listed as rows that lack weights.
    assert verify(["zinc", "widths", "controls"], "results").without == ()


def test_without_a_checkpoint() -> None:
    run = planned()
    folder = kept_run(Path("runs/a"), run)
    (folder / "last.ckpt").rename("last.ckpt")
    enter(folder, "results")
    assert lines()[run.key].weights is None
    assert not Path("weights").exists()
    Path("last.ckpt").rename(folder / "last.ckpt")
    enter(folder, "results")
    kept = lines()[run.key].weights
    # The same run keeps its weights, another training of it does not.
    (folder / "last.ckpt").unlink()
    enter(folder, "results")
    assert lines()[run.key].weights == kept == checksum("weights/zinc/gat.safetensors")
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"seconds": 1.25}))
    enter(folder, "results")
    assert lines()[run.key].weights is None
    assert not Path("weights/zinc/gat.safetensors").exists()


@pytest.mark.parametrize("damage", ["cut", "epoch", "network"])
def test_a_checkpoint_that_cannot_be_kept(damage: str) -> None:
    run = planned()
    folder = kept_run(Path("runs/a"), run)
    file = folder / "last.ckpt"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:1000])
    else:
        content = torch.load(file)
        if damage == "epoch":
            content["state"]["history"].pop()
        else:
            content["model"].popitem()
        torch.save(content, file)
    with pytest.warns(UserWarning, match=r"zinc/gat-seed0: its weights are not kept: "):
        enter(folder, "results")
    assert lines()[run.key].weights is None
    assert not Path("weights").exists()


def test_runs_by_another_protocol() -> None:
    run = plan("zinc", ["gat"], fraction=0.5)[0]
    folder = kept_run(Path("runs/a"), run)
    assert enter(folder, "results")[0].startswith("zinc/gat-seed0-")
    assert not Path("weights").exists()


def test_the_first_of_the_folds() -> None:
    (run,) = plan("limits", ["gin-imdb-multi"])
    folder = kept_run(Path("runs/a"), run)
    enter(folder, "results")
    kept = read_weights(Path("weights/limits/gin-imdb-multi.safetensors"))
    assert Config.from_dict(kept.config).data.fold == 1
    for name, value in fognn.load(folder / "fold-1", "last").state_dict().items():
        assert torch.equal(kept.tensors[name], value)


def test_no_path_of_the_machine() -> None:
    run = planned()
    config = run.config.with_values({"data.folder": "/home/ada/data"})
    folder = kept_run(Path("runs/a"), Planned(run.table, run.row, "", run.label, config))
    enter(folder, "results")
    for path in (Path("results/zinc.jsonl"), Path("weights/zinc/gat.safetensors")):
        assert b"/home/ada" not in path.read_bytes()


def test_where_the_weights_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = kept_run(tmp_path / "runs/a", planned())
    enter(folder, tmp_path / "b" / "results")
    assert (tmp_path / "b" / "weights" / "zinc" / "gat.safetensors").is_file()
    enter(folder, tmp_path / "b" / "results", tmp_path / "c")
    assert (tmp_path / "c" / "zinc" / "gat.safetensors").is_file()
    monkeypatch.chdir(tmp_path / "b" / "results")
    assert weights_beside(".") == tmp_path / "b" / "weights"
    assert weights_beside(Path("results")) == tmp_path / "b" / "results" / "weights"


def test_many_at_once() -> None:
    folders = [kept_run(Path(f"runs/{seed}"), planned(seed)) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda folder: enter(folder, "results"), reversed(folders)))
    found = {line.seed: line.weights for line in lines().values()}
    assert len(found) == 6
    assert found.pop(0) == checksum("weights/zinc/gat.safetensors")
    assert set(found.values()) == {None}
    assert not list(Path("weights").rglob(".tmp-*"))


def test_a_checksum_that_is_none() -> None:
    run = planned()
    enter(kept_run(Path("runs/a"), run), "results")
    line = json.loads(Path("results/zinc.jsonl").read_text())
    for wrong in (None, 3, "abc", "A" * 64, ["0" * 64]):
        Path("results/zinc.jsonl").write_text(json.dumps(line | {"weights": wrong}) + "\n")
        with pytest.warns(UserWarning, match=r"'zinc/gat-seed0': weights must be a SHA-256"):
            assert lines() == {}
    Path("results/zinc.jsonl").write_text(json.dumps(line | {"key": "zinc/gin-seed0"}) + "\n")
    with pytest.warns(UserWarning, match=r"key must be 'zinc/gat-seed0' with weights"):
        assert lines() == {}
    other = planned().config.with_values({"training.lr": 0.5}).to_dict()
    Path("results/zinc.jsonl").write_text(json.dumps(line | {"config": other}) + "\n")
    with pytest.warns(UserWarning, match=r"weights must be left out .*'zinc/gat-seed0'"):
        assert lines() == {}
