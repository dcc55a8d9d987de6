"""One field of a line is replaced by any JSON value, in each of the three kinds of files: nothing
raises, a line that is skipped is named, and the other lines count."""

import copy
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compared_runs import FakeTraining
from fognn.experiments.compare_runs import measure, networks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_entries import entry

from fognn.cli import main
from fognn.experiments.compared import ComparedRun
from fognn.experiments.ledger import Ledger, ledger_of
from fognn.experiments.reproduce import unfinished
from fognn.experiments.search import choices_of
from fognn.experiments.tables import TableRun, plan
from fognn.report.site import build_site
from fognn.report.tables import report_table

Content = dict[str, Any]
FILES = ["zinc.jsonl", "runs.jsonl", "compare/mine.jsonl", "searches/compare/mine.jsonl"]
TABLES = ["zinc", "compare"]
NESTED = st.sampled_from([5, 30, 900]).map(lambda depth: json.loads("[" * depth + "]" * depth))
VALUES = st.one_of(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.sampled_from([2**31, 2**62, 2**63, 10**400, -1, 0, 1]),
            st.floats(),
            st.text(max_size=5),
            st.sampled_from(["../../x", "compare/../x", "\ud800", "\0", "1e999", "zinc/gcn"]),
        ),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=4,
    ),
    NESTED,
)


class Written:
    """The folder of the ledgers, its lines, and what is printed of them."""

    def __init__(self, results: Path) -> None:
        self.results = results
        for run in plan("zinc", ["gcn", "gcn+fog"], 2, ours=False):
            ledger_of("zinc", results).add(entry(run, 0.4))
        other = entry(plan("zinc", ["gin"], 1, ours=False)[0], 0.3).to_dict()
        names = {"key": "zinc/gin-other", "table": "runs", "row": "", "variant": ""}
        (results / "runs.jsonl").write_text(json.dumps(other | names) + "\n")
        self.networks = networks("zinc", ["gin", "gcn"], 5000, {"epochs": 2}, "mine")
        self.compare()
        self.lines = {name: (results / name).read_text().splitlines() for name in FILES}

    def compare(self) -> Any:
        """The command fognn compare, without training."""

        def scores(run: TableRun) -> tuple[float, float]:
            assert isinstance(run, ComparedRun)
            return run.config.training.lr, 0.3 + run.config.seed / 100

        train = FakeTraining(self.results, scores)
        return measure(self.networks, self.results / "runs", self.results, train, 2, [3e-3, 1e-3])

    def write(self, name: str, place: int, text: str) -> None:
        for file, lines in self.lines.items():
            changed = [text if (file, n) == (name, place) else line for n, line in enumerate(lines)]
            (self.results / file).write_text("".join(f"{line}\n" for line in changed))

    def without(self, name: str, place: int) -> list[str]:
        """The tables without a line."""
        self.write(name, place, "")
        return [report_table(table, self.results) for table in TABLES]

    def keys(self) -> dict[str, list[str]]:
        """The keys of the lines that count, in each file."""
        found = {}
        for name in FILES:
            if name.startswith("searches"):
                choices = choices_of("compare/mine", self.results).read()
                found[name] = [choice.key for choice in choices]
            else:
                table = name.removesuffix(".jsonl")
                entries = Ledger(self.results / name, table).entries()
                found[name] = [entry.key for entry in entries]
        return found


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("results"))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The fields of a line, and the first item of each list."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = [(0, value[0])] if value else ()
    for key, inner in items:
        found += paths(inner, (*path, key))
    return found


def changed(line: str, draw: Callable[[Any], Any]) -> str:
    content = json.loads(line)
    *parents, last = draw(st.sampled_from(paths(content)))
    holder = content
    for key in parents:
        holder = holder[key]
    if draw(st.booleans()) and draw(st.booleans()):
        del holder[last]
    elif draw(st.booleans()) and isinstance(holder, dict):
        holder[last] = copy.deepcopy(holder[draw(st.sampled_from(sorted(holder)))])
    else:
        holder[last] = draw(VALUES)
    # Some have numbers that JSON does not know, or that are too large for a float.
    text = json.dumps(content)
    return text.replace("Infinity", "1e999") if draw(st.booleans()) else text


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", FILES)
def test_one_field(written: Written, name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(written.lines[name]) - 1))
    text = changed(written.lines[name][place], data.draw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = written.without(name, place)
        others = written.keys()
    written.write(name, place, text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tables = [report_table(table, written.results) for table in TABLES]
        report_table("compare", written.results, "csv")
        report_table("zinc", written.results, "latex", "best", "items")
        unfinished(plan("zinc", ["gcn"], 2, ours=False), written.results / "runs", written.results)
        keys = written.keys()
    skipped = [str(one.message) for one in caught if "is skipped" in str(one.message)]
    file = written.results / name
    assert all(one.startswith(f"{file}, line {place + 1}") for one in skipped)
    for each in FILES:
        assert set(others[each]) <= set(keys[each]), "the other lines count"
    if skipped:
        assert tables == before
        assert keys == others
    else:
        assert len(keys[name]) == len(others[name]) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = written.compare()  # trains what is missing, beside the line
    assert len(found.entries) == 8
    if skipped:
        assert file.read_text().splitlines()[place] == text


@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_pages(written: Written, data: st.DataObject) -> None:
    written.write("", 0, "")
    for name, lines in written.lines.items():
        more = [changed(data.draw(st.sampled_from(lines)), data.draw) for _ in range(15)]
        with (written.results / name).open("a") as file:
            file.writelines(f"{line}\n" for line in more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build_site(written.results, written.results / "site")
    pages = {path.stem for path in (written.results / "site/runs").rglob("*.html")}
    assert {"gcn-seed0", "gcn-seed1", "gcn+fog-seed0", "gcn+fog-seed1"} <= pages


def test_commands(
    written: Written, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in FILES:
        content = json.loads(written.lines[name][-1]) | {"label": 3, "tried": 4}
        written.write(name, len(written.lines[name]) - 1, json.dumps(content))
        command = ["table", "compare" if "mine" in name else "zinc"]
        if name == "runs.jsonl":
            command = ["report", "-o", str(written.results / "pages")]
        arguments = ["fognn", *command, "--results", str(written.results)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        line = f"{written.results / name}, line {len(written.lines[name])}"
        assert f"fognn: warning: {line}" in capfd.readouterr().err
