"""A ledger with a line that is not as we write it: the other runs are shown and counted."""

import copy
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from site_example import write_ledger

from fognn.experiments.ledger import Ledger
from fognn.experiments.reproduce import unfinished
from fognn.experiments.tables import plan
from fognn.report.site import build_site
from fognn.report.tables import report_table

Content = dict[str, Any]
GONE = object()


def change(path: str, value: Any) -> Callable[[Content], None]:
    """Sets, or removes, a field that is named by a dotted path."""

    def apply(content: Content) -> None:
        *parts, last = path.split(".")
        for part in parts:
            content = content[part]
        if value is GONE:
            del content[last]
        else:
            content[last] = value

    return apply


# Field, value, what the warning says.
BAD = [
    ("seed", 10**400, "seed must be below 2"),
    ("seed", -1, "seed must be that of config"),
    ("seed", "0", "seed must be of type int, got '0'"),
    ("seed", True, "seed must be of type int, got True"),
    ("table", "tsp", "table must be 'zinc', got 'tsp'"),
    ("row", "zinc/transformer", "row must be one of the table 'zinc', got 'zinc/transformer'"),
    ("row", "tsp/gcn", "row must be one of the table 'zinc', got 'tsp/gcn'"),
    ("key", "zinc/../../../x", "key must be zinc/ and a name"),
    ("key", "tsp/gcn-seed0", "key must be zinc/ and a name"),
    ("variant", 3, "variant must be of type str, got 3"),
    ("label", "\ud800", "surrogates not allowed"),
    ("finished", None, "finished must be of type str, got None"),
    ("config", {}, "config: .*must be given"),
    ("config", [], "config must be of type dict"),
    ("config.training.warmup", 5, "training.warmup"),
    ("config.training", "adam", "training must be"),
    ("config.training.lr", "fast", "training.lr must be .*'fast'"),
    ("config.training.epochs", 2**80, "config.training.epochs must be below 2"),
    ("config.model.h1", 1e999, "config.model.h1 must be finite"),
    ("config.data.fraction", None, "data.fraction"),
    ("config.seed", 7, "seed must be that of config, 7, got 1"),
    ("result", {}, "result.metric must be that of config, 'mae', got nothing"),
    ("result.metric", "accuracy", "result.metric must be .*, got 'accuracy'"),
    ("result.test", GONE, "result.test must be given, or be null"),
    ("result.test", 0.4, "result.test.last must be given, got 0.4"),
    ("result.test.last.batches", "0.4", "result.test.last.batches must be a finite number"),
    ("result.test.last.batches", True, "result.test.last.batches must be a finite number"),
    ("result.test.last.batches", 1e200, "result.test.last.batches must be a finite number"),
    ("result.test.last.batches", GONE, "result.test.last.batches must be .*, got nothing"),
    ("result.test.best", GONE, "result.test.best must be given"),
    ("result.val", None, "result.val.last must be given, got None"),
    ("result.train", GONE, "result.train must be given, or be null"),
    ("result.train.best.items", "?", "result.train.best.items must be a finite number"),
    ("result.parameters", 10**400, "result.parameters must be below 2"),
    ("result.parameters", "many", "result.parameters must be a positive int, got 'many'"),
    ("result.parameters", 0, "result.parameters must be a positive int, got 0"),
    ("result.epochs", 2.5, "result.epochs must be a positive int, got 2.5"),
    ("result.epochs", GONE, "result.epochs must be a positive int, got nothing"),
    ("result.best_epoch", 1000, "result.best_epoch must be at most 60, got 1000"),
    ("result.best_epoch", "last", "result.best_epoch must be a positive int, got 'last'"),
    ("result.higher_is_better", True, "result.higher_is_better must be false, got True"),
    ("result.higher_is_better", 0, "result.higher_is_better must be false, got 0"),
    ("result.seconds", "3 h", "result.seconds must be a number of seconds, got '3 h'"),
    ("result.seconds_per_epoch", None, "result.seconds_per_epoch must be .*, got None"),
    ("result.stopped", GONE, "result.stopped must be a text, got nothing"),
    ("result.command", GONE, "result.command must be a text, got nothing"),
    ("result.device", None, "result.device must be a text, got None"),
    ("result.commit", 3, "result.commit must be null or of type str, got 3"),
    ("result.machine", "big", "result.machine must be null or of type dict, got 'big'"),
    ("result.versions", [1], "result.versions must be null or of type dict"),
    ("result.threads", "two", "result.threads must be null or of type int, got 'two'"),
    ("result.fingerprint", [1], "result.fingerprint must be null or of type str"),
    ("result.spread", 0.1, "result.spread.last must be given, got 0.1"),
    ("result.folds", 10, "result.folds must be null or of type list, got 10"),
    ("result.folds", [1], "result.folds, the 1. of them must have its number as fold, got 1"),
    ("result.folds", [{"fold": 1}], "result.folds, the 1. of them: val.last must be given"),
    ("curve", GONE, "curve must be of type dict, got nothing"),
    ("curve", {}, "curve.epoch must be a list of 60 numbers, got nothing"),
    ("curve.val", [0.1], "curve.val must be a list of 60 numbers"),
    ("curve.val_loss", "down", "curve.val_loss must be a list of 60 numbers, got 'down'"),
    ("curve.lr", ["0.1"] * 60, "curve.lr must have numbers or null, got '0.1'"),
    ("curve.train", [10**400] * 60, "curve.train must be below 2"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Content]:
    """The text of a ledger of two runs, and a third line."""
    results = tmp_path_factory.mktemp("results")
    write_ledger(results, "zinc", ["gcn", "gcn+fog"])
    text = (results / "zinc.jsonl").read_text()
    write_ledger(results, "zinc", ["gcn"], [1])
    return text, json.loads((results / "zinc.jsonl").read_text().splitlines()[-1])


def bad_line(good: Content, path: str, value: Any) -> str:
    content = copy.deepcopy(good)
    change(path, value)(content)
    return json.dumps(content).replace("Infinity", "1e999")


@pytest.mark.parametrize(("path", "value", "wrong"), BAD, ids=[f"{p}={v!r:.20}" for p, v, _ in BAD])
def test_table_and_reproduce(
    tmp_path: Path, written: tuple[str, Content], path: str, value: Any, wrong: str
) -> None:
    text, good = written
    file = tmp_path / "zinc.jsonl"
    file.write_text(text)
    table = report_table("zinc", tmp_path)
    # In the first place, where it would be in the way of all others.
    bad = bad_line(good, path, value)
    file.write_text(f"{bad}\n{text}")
    with pytest.warns(UserWarning, match=wrong) as caught:
        assert report_table("zinc", tmp_path) == table
    key = value if path == "key" else good["key"]
    assert {str(one.message).partition(": ")[0] for one in caught} == {f"{file}, line 1, {key!r}"}
    with pytest.warns(UserWarning, match=wrong):
        left = unfinished(plan("zinc", ["gcn"], 2, ours=False), tmp_path / "runs", tmp_path)
    assert [run.key for run in left] == ["zinc/gcn-seed1"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries = Ledger(file).entries()
    Ledger(file).add(entries[0])
    assert file.read_text().splitlines()[0] == bad


def test_report(tmp_path: Path, written: tuple[str, Content]) -> None:
    text, good = written
    bad = [bad_line(good, path, value) for path, value, _ in BAD]
    # The same run under another name, and a second line of the same name.
    bad += [json.dumps(good | {"key": "zinc/copy"}), "[" * 100_000, "{}", "3", '{"key": 1}', "\0"]
    lines = "".join(f"{line}\n" for line in [*bad[:20], json.dumps(good), *bad[20:]])
    (tmp_path / "zinc.jsonl").write_text(lines + text)
    (tmp_path / "runs.jsonl").write_text(lines)
    with pytest.warns(UserWarning, match="is skipped") as caught:
        build_site(tmp_path, tmp_path / "site")
    skipped = [str(one.message) for one in caught if "is skipped" in str(one.message)]
    assert len({one for one in skipped if "zinc.jsonl" in one}) == len(bad)
    assert len({one for one in skipped if "runs.jsonl" in one}) == len(bad) + 1
    pages = sorted(page.name for page in (tmp_path / "site/runs").rglob("*.html"))
    assert pages == ["gcn+fog-seed0.html", "gcn-seed0.html", "gcn-seed1.html"]
