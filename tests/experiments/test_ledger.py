import dataclasses
import json
import math
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import entry
from tiny_runs import metrics

from fognn.experiments.ledger import Ledger, LedgerEntry, _rounded, ledger_entry
from fognn.experiments.tables import TableRun, plan
from fognn.training import Config, Result, fit

TINY: dict[str, Any] = {
    "fraction": 0.0008,
    "epochs": 2,
    "values": {"training.batch_size": 4, "machine.threads": 1},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TableRun, Path]]:
    """A run of a second, which tests must not change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOGNN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        planned = plan("cluster", ["gcn"], [1], **TINY)[0]
        folder = planned.folder(tmp_path_factory.mktemp("runs"))
        fit(planned.config, folder, quiet=True)
        yield planned, folder


def test_the_line_of_a_run(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    own = ledger_entry(planned, folder)
    assert (own.key, own.table, own.row) == (planned.key, "cluster", "cluster/gcn")
    assert (own.variant, own.label, own.model, own.data) == ("", "GCN", "gcn", "CLUSTER")
    assert own.seed == 1
    assert Config.from_dict(own.config) == planned.config
    command = "fognn train cluster gcn --seed 1 --set data.fraction=0.0008 --set "
    command += "training.batch_size=4 --set training.epochs=2 --set machine.threads=1"
    assert own.result == json.loads((folder / "result.json").read_text()) | {"command": command}
    assert len(own.result["fingerprint"]) == 16
    assert str(folder.parent) not in json.dumps(own.to_dict())
    assert own.result["test"] == Result.read(folder).test
    rows = metrics(folder)
    assert own.curve["epoch"] == [1, 2]
    for name, column in (
        ("lr", "lr"),
        ("train_loss", "train_loss"),
        ("val_loss", "val_loss"),
        ("train", "train_balanced_accuracy_items"),
        ("val", "val_balanced_accuracy_items"),
    ):
        assert own.curve[name] == pytest.approx([float(row[column]) for row in rows], rel=1e-6)
    assert sum(own.curve["seconds"]) == pytest.approx(own.result["seconds"], rel=1e-6)
    ended = datetime.fromisoformat(own.finished)
    assert ended.utcoffset() is not None
    assert abs((datetime.now(UTC) - ended).total_seconds()) < 3600

    ledger = Ledger(tmp_path / "results" / "cluster.jsonl")
    assert ledger.entries() == []
    ledger.add(own)
    first = ledger.path.read_bytes()
    ledger.add(ledger_entry(planned, folder))
    # A repeated run replaces its own line, and the same run gives the same bytes.
    assert ledger.path.read_bytes() == first
    assert ledger.entries() == [own]


def test_what_is_no_number_is_null(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    copy = shutil.copytree(folder, tmp_path / folder.name)
    result = json.loads((copy / "result.json").read_text())
    result["val"]["best"]["loss"] = math.nan
    (copy / "result.json").write_text(json.dumps(result))
    ledger = Ledger(tmp_path / "cluster.jsonl")
    ledger.add(ledger_entry(planned, copy))
    assert ledger.entries()[0].result["val"]["best"]["loss"] is None


def test_a_folder_of_another_run(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    other = plan("cluster", ["gcn"], [2], **TINY)[0]
    with pytest.raises(ValueError, match=r"must hold cluster/gcn-seed2.*another run \(seed: 1 and"):
        ledger_entry(other, folder)
    with pytest.raises(ValueError, match="is not a finished run"):
        ledger_entry(planned, tmp_path)
    half = tmp_path / "half"
    shutil.copytree(folder, half)
    lines = (half / "metrics.csv").read_text().splitlines()
    (half / "metrics.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ValueError, match=r"result.json is of 2 epochs, .*metrics.csv of 1"):
        ledger_entry(planned, half)


def test_where_the_data_lie_is_not_told(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    config = Config.read(moved / "config.yaml").with_values({"data.folder": "/home/euler/data"})
    (moved / "config.yaml").write_text(config.to_yaml())
    assert "euler" not in json.dumps(ledger_entry(planned, moved).to_dict())


def test_unknown_keys_are_kept(tmp_path: Path) -> None:
    one, two = (entry(run, 0.5) for run in plan("zinc", ["gcn", "fog"]))
    ledger = Ledger(tmp_path / "zinc.jsonl")
    later = one.to_dict() | {"zeta": [1], "energy": {"kWh": 0.25}}
    ledger.path.write_text(json.dumps(later) + "\n")
    ledger.add(two)
    assert json.loads(ledger.path.read_text().splitlines()[0]) == later
    first = ledger.entries()[0]
    assert first.more == {"zeta": [1], "energy": {"kWh": 0.25}}
    assert dataclasses.replace(first, more={}) == one
    # Also on the way into another ledger.
    Ledger(tmp_path / "copy.jsonl").add(first)
    assert json.loads((tmp_path / "copy.jsonl").read_text()) == later


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(LedgerEntry)][1:-1])
def test_what_is_missing_or_wrong_is_named(tmp_path: Path, name: str) -> None:
    content = entry(plan("zinc", ["gcn"])[0], 0.5).to_dict()
    path = tmp_path / "zinc.jsonl"
    path.write_text(json.dumps(content | {name: None}) + "\n")
    words = rf"jsonl, line 1, 'zinc/gcn-seed0': {name} must be .*, got None"
    with pytest.warns(UserWarning, match=words):
        assert Ledger(path).entries() == []
    del content[name]
    path.write_text(json.dumps(content) + "\n")
    with pytest.warns(UserWarning, match=rf"{name} must be of type .*, got nothing"):
        assert Ledger(path).entries() == []


def test_a_damaged_line(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "zinc.jsonl")
    ledger.add(entry(plan("zinc", ["gcn"])[0], 0.5))
    with open(ledger.path, "a") as file:
        file.write('{"key": "zinc/fog-se')
    with pytest.warns(UserWarning, match=r"zinc\.jsonl, line 2: must be one JSON object"):
        assert len(ledger.entries()) == 1


def test_numbers_of_a_curve() -> None:
    assert _rounded(0.123456789) == 0.1234568
    assert _rounded(123456.789) == 123456.8
    assert _rounded(1e-300) == 1e-300
    assert _rounded(math.inf) is None
    assert _rounded(math.nan) is None


def test_the_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    own = entry(plan("zinc", ["gcn"])[0], 0.5)
    mixed = dataclasses.replace(own, result=dict(reversed(own.result.items())))
    for name, each in (("a", own), ("b", mixed)):
        Ledger(tmp_path / name).add(each)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert list(json.loads((tmp_path / "a").read_text())) == [
        field.name for field in dataclasses.fields(LedgerEntry) if field.name != "more"
    ]
