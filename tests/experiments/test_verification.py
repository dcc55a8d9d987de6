import json
import os
import shutil
from pathlib import Path

import pytest
from kept_runs import kept_run, use_tiny_data

from fognn.experiments.kept import enter
from fognn.experiments.tables import plan
from fognn.experiments.kept import Check, verify

FILE = Path("weights/zinc/gat.safetensors")
LEDGER = Path("results/zinc.jsonl")


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a run of ZINC with weights, one without, and one over folds."""
    place = tmp_path_factory.mktemp("ready")
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_data(patch)
        patch.chdir(place)
        for number, run in enumerate(
            [*plan("zinc", ["gat", "gin"], [1]), *plan("limits", ["gin-imdb-multi"])]
        ):
            folder = kept_run(Path(f"runs/{number}"), run)
            if run.slug == "gin":
                (folder / "last.ckpt").unlink()
            enter(folder, "results")
    return place


@pytest.fixture(autouse=True)
def place(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    for name in ("results", "weights"):
        shutil.copytree(ready / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)


def outcome(*tables: str) -> list[str]:
    return [check.outcome for check in verify(tables or None).checks()]


def change_line(number: int, **values: float) -> None:
    """Adds to the figures of the test split at the last epoch."""
    lines = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    for name, value in values.items():
        lines[number]["result"]["test"]["last"][name] += value
    LEDGER.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_all_as_in_the_ledger() -> None:
    found = verify(["zinc"], data="/nowhere")
    assert (found.names, found.without, found.unnamed) == (["zinc/gat"], ("zinc/gin",), ())
    (check,) = found.checks()
    assert (check.name, check.seed, check.digits, check.ok) == ("zinc/gat", 1, 3, True)
    assert check.here == pytest.approx(check.ledger, abs=1e-6)
    assert check.ledger[0] != check.ledger[1], "over batches and over items"
    assert verify().names == ["zinc/gat", "limits/gin-imdb-multi"]
    assert outcome() == ["ok", "ok"]
    assert outcome("tsp") == []
    # The same in another place.
    FILE.parents[1].rename("elsewhere")
    (other,) = verify(["zinc"], weights="elsewhere").checks()
    assert other == check


@pytest.mark.parametrize(("ledger", "ok"), [(0.2864, True), (0.28565, True), (0.2874, False)])
def test_half_a_unit_of_the_last_digit(ledger: float, ok: bool) -> None:
    # 0.286 is printed as 0.2864 and 0.28565 are; 0.28549 is printed as 0.285, 0.0002 away.
    check = Check("zinc/gat", 0, 3, (0.286, ledger), (0.286, 0.286))
    assert (check.ok, check.outcome) == (ok, "ok" if ok else "DIFFERS")
    assert Check("zinc/gat", 0, 3, (0.28549,), (0.28551,)).ok
    assert not Check("few-shot/gnn", 0, 2, (50.0,), (50.006,)).ok


@pytest.mark.parametrize("over", ["batches", "items"])
def test_another_figure(over: str) -> None:
    change_line(0, **{over: 0.001})
    # The fingerprint of the written run is not that of the data.
    (text,) = outcome("zinc")
    assert text.startswith("DIFFERS, with other data: fingerprint ")
    assert text.endswith("and not 0123abcd")
    change_line(0, **{over: -0.0009})
    assert outcome("zinc") == ["ok"]


def test_a_fold_has_its_own_figure() -> None:
    path = Path("results/limits.jsonl")
    line = json.loads(path.read_text())
    for fold, expected in ((1, "ok"), (0, "DIFFERS")):
        line["result"]["folds"][fold]["val"]["last"]["items"] += 1
        path.write_text(json.dumps(line) + "\n")
        assert outcome("limits")[0].partition(",")[0] == expected


@pytest.mark.parametrize("at", [0, 20, -1])
def test_a_flipped_bit(at: int) -> None:
    data = bytearray(FILE.read_bytes())
    data[at] ^= 1
    FILE.write_bytes(data)
    (text,) = outcome("zinc")
    assert "is damaged: its checksum" in text


def test_a_missing_file() -> None:
    FILE.unlink()
    (text,) = outcome("zinc")
    assert "gat.safetensors is missing" in text


def test_files_that_no_line_names() -> None:
    shutil.copy(FILE, FILE.with_name("gin.safetensors"))
    Path("weights/more").mkdir()
    Path("weights/more/notes.txt").write_text("x")
    FILE.with_name(".tmp-1-gat.safetensors").write_text("left by a killed process")
    named = "no line of the ledger names this file"
    assert outcome("zinc") == ["ok", named]
    assert verify(["zinc"]).names == ["zinc/gat", "zinc/gin.safetensors"]
    assert outcome() == ["ok", "ok", named, named]
    LEDGER.unlink()
    assert outcome("zinc") == [named, named]


def test_data_that_are_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ValueError("ZINC is\nnot here")

    monkeypatch.setattr("fognn.training.data._graphs", missing)
    assert outcome("zinc") == ["not evaluated: ZINC is not here"]


def test_a_file_of_another_program() -> None:
    """With the right checksum in the line, and no network."""
    import hashlib

    FILE.write_bytes(os.urandom(100))
    checksum = hashlib.sha256(FILE.read_bytes()).hexdigest()
    lines = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    lines[0]["weights"] = checksum
    LEDGER.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (text,) = outcome("zinc")
    assert text.startswith("not evaluated: ")
    assert "holds no whole network" in text


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"verify: unknown table 'znic'"):
        verify(["znic"])
    with pytest.raises(ValueError, match=r"verify: results must be a folder .*got 'nowhere'"):
        verify(["zinc"], "nowhere")
