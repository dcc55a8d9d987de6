"""README and docs show what was measured, and the README stays short."""

import itertools
import json
import re
import runpy
from pathlib import Path

import pytest

from fognn.experiments.differences import paired_difference
from fognn.experiments.ledger import ledger_of
from fognn.experiments.results import table_frame
from fognn.experiments.search import choices_of
from fognn.experiments.tables import TABLES
from fognn.report.rates import rates_frame

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOOK = runpy.run_path(str(ROOT / "docs" / "hooks" / "refresh_tables.py"))


@pytest.mark.parametrize("page", HOOK["PAGES"], ids=lambda page: page.name)
def test_the_tables_of_a_page_are_what_the_ledgers_say(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<!-- end -->") == len(
        re.findall("<!-- (fognn table|rows of|verdicts)", text)
    )
    assert HOOK["refreshed"](text) == text


def cells(line: str) -> list[str]:
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell.strip()) for cell in line.strip("|").split("|")]


def records(table: str) -> list[dict[str, str]]:
    header, _, *rows = [line for line in table.splitlines() if line.startswith("|")]
    return [dict(zip(cells(header), cells(row), strict=True)) for row in rows]


NUMBER = r"([+-]?\d+\.\d+)"
# Such as "+0.033 (0.014 to 0.052)"; the difference may be in another sentence.
INTERVAL = re.compile(rf"(?:{NUMBER}(?: points)?\s)?\({NUMBER}\s+to\s+{NUMBER}")


@pytest.fixture(scope="module")
def differences() -> list[tuple[float, float, float]]:
    """The paired difference of any two rows with runs, and the ends of its interval."""
    found = []
    for table in ("controls", "modern", "zinc"):
        at, over = TABLES[table].at, TABLES[table].over
        rows = [entries for entries in table_frame(table, ROOT / "results")["entries"] if entries]
        for one, other in itertools.permutations(rows, 2):
            paired = paired_difference(one, other, at, over)
            if paired is not None and paired.low is not None:
                found.append((paired.value, paired.low, paired.high))
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
    entries = ledger_of("zinc", ROOT / "results").entries()
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
    shown = records(text.partition("Seed 0 of each try")[2].partition("\nGAT, GraphSAGE")[0])
    figures = {
        entry.key: f"{entry.result['test']['last']['batches']:.3f}"
        for entry in ledger_of("zinc", ROOT / "results").entries()
    }
    choices = {choice.label: choice for choice in choices_of("zinc", ROOT / "results").entries()}
    pairs = rates_frame("zinc", ROOT / "results")
    assert len(shown) == len(pairs) == 6
    for row, pair in zip(shown, pairs.itertuples(), strict=True):
        wanted = [pair.network]
        fog = f"{pair.network.partition(' ')[0]}+FOG"
        settings = sorted((t.lr, t.weight_decay) for t in choices[fog].tried)  # the host's is lower
        for setting in settings:
            for choice in (choices[pair.network], choices[fog]):
                (key,) = {t.key for t in choice.tried if (t.lr, t.weight_decay) == setting}
                chosen = setting == (choice.lr, choice.weight_decay)
                wanted.append(f"**{figures[key]}**" if chosen else figures[key])
        assert list(row.values()) == wanted
