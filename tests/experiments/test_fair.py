"""FOG - host at the paper's settings, and where both chose among the same tries."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from ledger_entries import entry

from fognn.experiments.fair import FairPair, fair_pairs, pair_settings
from fognn.experiments.ledger import ledger_of
from fognn.experiments.pairing import t_interval
from fognn.experiments.search import Choices, choices_file, choose, grid, with_choice
from fognn.experiments.tables import plan
from fognn.report.tables import report_table

RATES = (1e-2, 1e-3)


def measure(
    results: Path,
    slug: str,
    own: Sequence[float],
    chosen: Sequence[float],
    best: int,
    rates: Sequence[float] = RATES,
    **changes: float,
) -> None:
    """Adds a row's runs of each seed with its own settings, its trials on the first seed, of which
    number ``best`` is chosen, and the runs of each seed with the chosen settings."""
    runs = plan("zinc", [slug], len(own), **changes)
    ledger = ledger_of("zinc", results)
    trials = grid(runs[0], [(rate, 0.0) for rate in rates])
    for number, trial in enumerate(trials):
        line = entry(trial, 0.77)
        line.result["val"]["best"]["items"] = 0.1 if number == best else 0.9
        ledger.add(line)
    choice = choose(runs[0], ledger.entries(), trials)
    assert choice is not None
    Choices(choices_file(results, "zinc")).add(choice)
    for run, value in zip(runs, chosen, strict=True):
        ledger.add(entry(with_choice(run, choice), value))
    for run, value in zip(runs, own, strict=True):
        ledger.add(entry(run, value))


def the_pair(results: Path, host: str) -> FairPair:
    (pair,) = [p for p in fair_pairs("zinc", results) if p.host.planned.label == host]
    return pair


def test_the_six_pairs_of_zinc(tmp_path: Path) -> None:
    pairs = fair_pairs("zinc", tmp_path)
    assert [(pair.host.planned.label, pair.fog.planned.label) for pair in pairs] == [
        ("GCN (norm=sym)", "GCN+FOG"),
        *((name, f"{name}+FOG") for name in ("GAT", "GatedGCN", "GatedGCN-E", "GIN", "GraphSAGE")),
    ]
    assert all(pair.printed is pair.fair is pair.settings is None for pair in pairs)


def test_a_pair_tries_the_settings_of_both_of_its_rows() -> None:
    tried = {run.slug: pair_settings(run) for run in plan("zinc")}
    # As printed in table 3 of the paper.
    assert tried["gat"] == tried["gat+fog"] == [(0.01, 1e-6), (0.001, 0.0)]
    assert tried["gin"] == tried["gin+fog"] == [(0.005, 0.001), (0.001, 0.0)]
    assert tried["gatedgcn-e"] == tried["gatedgcn-e+fog"] == [(0.005, 0.0), (0.001, 0.0)]
    # Variants have the settings of their rows.
    assert tried["gcn-sym"] == tried["gcn"] == tried["gcn+fog"] == [(0.01, 0.0), (0.001, 0.0)]
    # Without a host: its own.
    assert len(tried["fog"]) == 1
    for table in ("cluster", "pattern", "tsp", "limits"):
        for run in plan(table):
            assert (run.paper.lr, run.paper.weight_decay) in pair_settings(run)


def test_the_part_of_the_settings_is_the_difference_of_differences(tmp_path: Path) -> None:
    # FOG gains 0.20 and 0.24 at the paper's settings, and 0.05 and 0.07 with equal tries.
    measure(tmp_path, "gat", [0.50, 0.52], [0.36, 0.37], best=0)
    measure(tmp_path, "gat+fog", [0.30, 0.28], [0.31, 0.30], best=1)
    pair = the_pair(tmp_path, "GAT")
    assert pair.host.choice is not None
    assert pair.fog.choice is not None
    assert (pair.host.choice.lr, pair.fog.choice.lr) == (1e-2, 1e-3)
    for found, wanted in (
        (pair.printed, [-0.20, -0.24]),
        (pair.fair, [-0.05, -0.07]),
        (pair.settings, [-0.15, -0.17]),
    ):
        assert found is not None
        assert found.difference == pytest.approx(sum(wanted) / 2)
        assert found.interval == pytest.approx(t_interval(wanted))
        assert (found.pairs, found.over) == (2, "seed")


def test_a_search_that_chose_the_papers_settings_has_the_same_runs(tmp_path: Path) -> None:
    measure(tmp_path, "gat", [0.5], [0.5], best=1)  # 0.001 is the row's own rate
    measure(tmp_path, "gat+fog", [0.3], [0.35], best=0)  # without its decay of 1e-6
    pair = the_pair(tmp_path, "GAT")
    assert pair.host.entries == pair.host.chosen
    assert pair.settings is not None
    assert pair.settings.difference == pytest.approx(-0.05)
    assert pair.settings.interval is None


def test_unequal_tries_are_not_compared(tmp_path: Path) -> None:
    measure(tmp_path, "gat", [0.5], [0.4], best=0)
    measure(tmp_path, "gat+fog", [0.3], [0.3], best=0, rates=(5e-3, 1e-3))
    pair = the_pair(tmp_path, "GAT")
    assert pair.printed is not None
    assert pair.fair is pair.settings is None
    assert "not equal" in report_table("rates", tmp_path)


def test_a_search_on_less_data_does_not_count(tmp_path: Path) -> None:
    for slug in ("gat", "gat+fog"):
        measure(tmp_path, slug, [0.5], [0.4], best=0, fraction=0.1)
    pair = the_pair(tmp_path, "GAT")
    assert pair.host.choice is pair.fog.choice is pair.printed is pair.fair is None


def test_the_table(tmp_path: Path) -> None:
    measure(tmp_path, "gat", [0.50, 0.52], [0.36, 0.37], best=0)
    measure(tmp_path, "gat+fog", [0.30, 0.28], [0.31, 0.30], best=1)
    found = list(csv.DictReader(io.StringIO(report_table("rates", tmp_path, "csv"))))
    gat = next(row for row in found if row["host"] == "GAT")
    assert gat["paper: host, FOG"] == "0.001; 0.01 / 1e-06"
    assert gat["chosen: host, FOG"] == "0.01; 0.001"
    assert gat["FOG − host"].startswith("−0.2200 [−0.4741, +0.0341], 2 seeds")
    assert gat["FOG − host, equal tries"].startswith("−0.0600 [")
    assert gat["due to settings"].startswith("−0.1600 [")
    assert gat["tries each"] == "2"
    # Both chose the paper's settings.
    for slug, value, best in (("gatedgcn-e", 0.4, 1), ("gatedgcn-e+fog", 0.3, 0)):
        measure(tmp_path, slug, [value], [value], best, rates=(5e-3, 1e-3))
    found = list(csv.DictReader(io.StringIO(report_table("rates", tmp_path, "csv"))))
    gated = next(row for row in found if row["host"] == "GatedGCN-E")
    assert gated["paper: host, FOG"] == gated["chosen: host, FOG"] == "0.001; 0.005"
    assert gated["FOG − host, equal tries"] == gated["FOG − host"] == "−0.1000, 1 seed"
    assert gated["due to settings"] == "nothing"
    gin = next(row for row in found if row["host"] == "GIN")
    assert (gin["chosen: host, FOG"], gin["tries each"]) == ("not run; not run", "–")


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_an_empty_ledger_shows_what_is_to_be_run(tmp_path: Path, form: str) -> None:
    text = report_table("rates", tmp_path, form)
    assert "fognn reproduce zinc" in text
    assert text.count("not run; not run") == 6
