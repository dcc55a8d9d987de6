"""README and docs show what was measured, and the README stays short."""

import itertools
import json
import re
import runpy
from pathlib import Path

import pytest

from fognn.experiments.comparison import compare
from fognn.experiments.fair import fair_pairs
from fognn.experiments.ledger import Ledger
from fognn.experiments.pairing import paired_difference
from fognn.experiments.search import table_entries
from fognn.experiments.tables import TABLES
from fognn.report.tables import report_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = re.compile(r"<!-- fognn table ([\w-]+) --markdown -->\n(.*?)\n<!-- end -->", re.DOTALL)
ROWS = re.compile(r"<!-- rows of: fognn table (\w+) --markdown -->\n(.*?)\n<!-- end -->", re.DOTALL)
SHOWN = [
    pytest.param(table, text, id=f"{path.name}-{table}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for table, text in TABLE.findall(path.read_text(encoding="utf-8"))
]


def test_the_results_page_shows_what_was_measured() -> None:
    assert {"results.md-zinc", "results.md-limits"} <= {str(shown.id) for shown in SHOWN}


@pytest.mark.parametrize(("table", "text"), SHOWN)
def test_a_table_is_what_the_ledger_says(table: str, text: str) -> None:
    assert text in report_table(table, ROOT / "results", "markdown")


def cells(line: str) -> list[str]:
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell.strip()) for cell in line.strip("|").split("|")]


def records(table: str) -> list[dict[str, str]]:
    header, _, *rows = [line for line in table.splitlines() if line.startswith("|")]
    return [dict(zip(cells(header), cells(row), strict=True)) for row in rows]


def test_the_readmes_rows_are_what_the_ledger_says() -> None:
    ((table, text),) = ROWS.findall(README)
    measured = {
        row["network"]: row for row in records(report_table(table, ROOT / "results", "markdown"))
    }
    shown = records(text)
    assert len(shown) > 3
    for row in shown:
        assert row.items() <= measured[row["network"]].items()


NUMBER = r"([+-]?\d+\.\d+)"
# Such as "+0.033 (0.014 to 0.052)"; the difference may be in another sentence.
INTERVAL = re.compile(rf"(?:{NUMBER}(?: points)?\s)?\({NUMBER}\s+to\s+{NUMBER}")


@pytest.fixture(scope="module")
def differences() -> list[tuple[float, float, float]]:
    """The paired difference of any two rows with runs, and the ends of its interval."""
    found = []
    for table in ("controls", "modern", "zinc"):
        lines = compare(table, table_entries(ROOT / "results", table))
        for one, other in itertools.permutations(lines, 2):
            at, over = TABLES[table].at, TABLES[table].over
            paired = paired_difference(other.label, one.entries, other.entries, at, over)
            if paired is not None and paired.interval is not None:
                found.append((paired.difference, *paired.interval))
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/controls.md", "docs/modern.md"])
def test_an_interval_in_prose_is_what_the_ledger_says(
    page: str, differences: list[tuple[float, float, float]]
) -> None:
    shown = INTERVAL.findall((ROOT / page).read_text(encoding="utf-8"))
    assert shown
    for texts in shown:
        numbers = [(float(text), text.partition(".")[2]) for text in texts if text]
        assert any(
            all(
                abs(number - value) <= 0.501 * 10 ** -len(digits)
                for (number, digits), value in zip(numbers, measured[-len(numbers) :], strict=True)
            )
            for measured in differences
        ), texts


def test_the_readmes_ratios_are_those_of_the_file() -> None:
    record = json.loads((ROOT / "results" / "layers.json").read_text())
    speed = README.partition("## Speed")[2].partition("\n## ")[0]
    command = record["command"].partition(" --json")[0]
    assert command in " ".join(speed.split())
    assert re.findall(r"commit `(\w+)`", speed) == [record["commit"][:10]]
    measured = {f"{row['ratio']:.3g}" for rows in record["tables"].values() for row in rows}
    for line in speed.splitlines():
        if line.startswith("| ") and not line.startswith("| |"):
            for ratio in re.findall(r"\d+\.?\d*", line.rstrip("|").rpartition("|")[2]):
                assert f"{float(ratio):.3g}" in measured, line


def test_the_readme_begins_with_the_two_commands_and_is_short() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert any("make demo" in line for line in lines[:15])
    assert any("make test" in line for line in lines[:15])


def test_the_table_of_norms_is_what_the_ledger_says() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    shown = records(text.partition("### Which norm")[2].partition("The difference")[0])
    entries = Ledger(ROOT / "results" / "zinc.jsonl").entries()
    names = (("", "zinc/gcn+fog"), ("norm=mean", "zinc/gcn+fog-mean"))
    for row, (variant, slug) in zip(shown, names, strict=True):
        measured = {
            f"seed {entry.seed}": f"{entry.result['test']['last']['batches']:.3f}"
            for entry in entries
            if (entry.row, entry.variant) == ("zinc/gcn+fog", variant)
            and entry.key == f"{slug}-seed{entry.seed}"  # with the paper's rate
        }
        assert {name: row[name] for name in row if name.startswith("seed")} == measured


def test_the_table_of_tries_is_what_the_ledger_says() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    shown = records(text.partition("Seed 0 of each try")[2].partition("\n- ")[0])
    lines = {entry.key: entry for entry in Ledger(ROOT / "results" / "zinc.jsonl").entries()}
    pairs = fair_pairs("zinc", ROOT / "results")
    assert len(shown) == len(pairs) == 6
    for row, pair in zip(shown, pairs, strict=True):
        wanted = [pair.host.planned.label]
        for setting in sorted(pair.host.tried):  # the host's rate is the lower one
            for side in (pair.host, pair.fog):
                assert side.choice is not None
                chosen = (side.choice.lr, side.choice.weight_decay)
                trial = next(t for t in side.choice.tried if (t.lr, t.weight_decay) == setting)
                figure = f"{lines[trial.key].result['test']['last']['batches']:.3f}"
                wanted.append(f"**{figure}**" if setting == chosen else figure)
        assert list(row.values()) == wanted


@pytest.mark.parametrize(
    ("page", "marker", "name"),
    [
        ("docs/reliability.md", "results/chaos.json", "chaos_table"),
        ("README.md", "claims", "claims_table"),
        ("docs/controls.md", "verdicts", "verdicts_table"),
    ],
)
def test_the_tables_of_campaign_claims_and_controls_are_up_to_date(
    page: str, marker: str, name: str
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = text.partition(f"<!-- {marker} -->")[2].partition("<!-- end -->")[0]
    table = runpy.run_path(str(ROOT / "docs" / "hooks" / "refresh_tables.py"))[name]()
    assert shown.strip() == table
