import json
import math
import multiprocessing
import shutil
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import entry
from tiny_runs import metrics

from fognn.experiments.ledger import LedgerEntry, ledger_entry, ledger_of, readable
from fognn.experiments.tables import TableRun, plan
from fognn.training import Config, fit

TINY: dict[str, Any] = {
    "fraction": 0.0008,
    "epochs": 2,
    "values": {"training.batch_size": 4, "machine.threads": 1},
}
GCN = plan("zinc", ["gcn"], ours=False)[0]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableRun, Path]:
    """A run of a second, which tests must not change."""
    planned = plan("cluster", ["gcn"], [1], **TINY)[0]
    folder = planned.folder(tmp_path_factory.mktemp("runs"))
    fit(planned.config, folder, quiet=True)
    return planned, folder


def test_the_line_of_a_run(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    own = ledger_entry(folder, planned)
    assert (own.key, own.table, own.row) == (planned.key, "cluster", "cluster/gcn")
    assert (own.label, own.model, own.data, own.seed) == ("GCN", "gcn", "CLUSTER", 1)
    assert own.run == planned.config
    command = "fognn train cluster gcn --seed 1 --set data.fraction=0.0008 --set "
    command += "training.batch_size=4 --set training.epochs=2 --set machine.threads=1"
    assert own.result == json.loads((folder / "result.json").read_text()) | {"command": command}
    assert str(folder.parent) not in own.dump().decode()
    rows = metrics(folder)
    assert own.curve["epoch"] == [1, 2]
    names = {"lr": "lr", "train_loss": "train_loss", "val": "val_balanced_accuracy_items"}
    for name, column in names.items():
        assert own.curve[name] == pytest.approx([float(row[column]) for row in rows], rel=1e-6)

    ledger = ledger_of("cluster", tmp_path / "results")
    assert ledger.entries() == []
    ledger.add(own)
    first = ledger.path.read_bytes()
    ledger.add(ledger_entry(folder, planned))
    assert ledger.path.read_bytes() == first, "a repeated run replaces its own line"
    assert ledger.entries() == [own]


def test_what_is_no_number_is_null(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    copy = shutil.copytree(folder, tmp_path / folder.name)
    result = json.loads((copy / "result.json").read_text())
    result["val"]["best"]["loss"] = math.nan
    (copy / "result.json").write_text(json.dumps(result))
    ledger = ledger_of("cluster", tmp_path)
    ledger.add(ledger_entry(copy, planned))
    assert ledger.entries()[0].result["val"]["best"]["loss"] is None


def test_where_the_data_lie_is_not_told(finished: tuple[TableRun, Path], tmp_path: Path) -> None:
    planned, folder = finished
    moved = shutil.copytree(folder, tmp_path / "moved")
    config = Config.read(moved / "config.yaml").with_values({"data.folder": "/home/euler/data"})
    (moved / "config.yaml").write_text(config.to_yaml())
    assert b"euler" not in ledger_entry(moved, planned).dump()


def change(path: Path, **values: Any) -> None:
    """Changes the first line; ``result__epochs`` is one of the values of its result."""
    line, *rest = path.read_text().splitlines()
    content = json.loads(line)
    for name, value in values.items():
        *parts, last = name.split("__")
        place = content
        for part in parts:
            place = place[part]
        place[last] = value
    path.write_text("\n".join([json.dumps(content), *rest]) + "\n")


@pytest.mark.parametrize(
    "values",
    [
        {"seed": "3"},
        {"config__training": None},
        {"curve__val": 0.5},
        {"result__parameters": "many"},
        {"result__test": {"last": {}}},
        {"result__metric": "accuracy"},
    ],
    ids=str,
)
def test_a_wrong_line_is_skipped_and_stays(tmp_path: Path, values: dict[str, Any]) -> None:
    ledger = ledger_of("zinc", tmp_path)
    ledger.add(entry(GCN, 0.5))
    change(ledger.path, **values)
    before = ledger.path.read_text()
    other = entry(plan("zinc", ["gin"])[0], 0.4)
    with pytest.warns(UserWarning, match=r"zinc\.jsonl, line 1, is skipped: "):
        ledger.add(other)
    with pytest.warns(UserWarning, match="line 1"):
        assert ledger.entries() == [other]
    assert ledger.path.read_text().startswith(before)


def test_a_truncated_line_and_a_repeated_key(tmp_path: Path) -> None:
    ledger = ledger_of("zinc", tmp_path)
    ledger.add(entry(GCN, 0.5))
    text = ledger.path.read_text()
    ledger.path.write_text(text + text + text[:40])
    with pytest.warns(UserWarning, match=r"line (2|3), is skipped"):
        assert len(ledger.entries()) == 1


def test_fields_of_a_later_version_are_kept(tmp_path: Path) -> None:
    ledger = ledger_of("zinc", tmp_path)
    ledger.add(entry(GCN, 0.5))
    change(ledger.path, later=[1, {"b": 2}], result__later=3)
    (own,) = ledger.entries()
    ledger.add(own.model_copy(update={"finished": "2026-02-02T00:00:00+00:00"}))
    line = json.loads(ledger.path.read_text())
    assert (line["later"], line["result"]["later"]) == ([1, {"b": 2}], 3)
    assert list(line) == [*[*LedgerEntry.model_fields][:-1], "later"], "no weights"


def _add(folder: Path, seeds: list[int]) -> None:
    for run in plan("zinc", ["gcn"], seeds, ours=False):
        ledger_of("zinc", folder).add(entry(run, 0.5))


def test_several_writers_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_add, args=(tmp_path, [*range(n, n + 5)])) for n in (0, 5, 10)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(own.seed for own in ledger_of("zinc", tmp_path).entries()) == list(range(15))


def test_ledgers_to_read_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside the clone those of the clone, or of the wheel; the folder's own come first."""
    clone = Path(__file__).parents[2] / "results"
    monkeypatch.chdir(tmp_path)
    assert readable("results") == clone
    assert readable("others") == Path("others")
    monkeypatch.setattr("fognn.experiments.ledger.__file__", str(tmp_path / "a" / "b" / "c.py"))
    kept = tmp_path / "site" / "kept" / "results"
    kept.mkdir(parents=True)
    monkeypatch.setattr("fognn.experiments.ledger.files", lambda _: tmp_path / "site")
    assert readable("results") == kept
    line = entry(GCN, 0.5)
    ledger_of("compare/mine", "results").add(line)
    assert readable("results") == kept, "a comparison hides no table"
    assert readable("results", "**/*.jsonl") == Path("results")
    ledger_of("zinc", "results").add(line)
    assert readable("results") == Path("results")
