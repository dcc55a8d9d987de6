"""The frame of results: means, intervals, differences and verdicts, compared with scipy's."""

import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_entries import entry, fold_entry
from scipy import stats

from fognn.experiments.differences import Difference, estimate, verdict_of
from fognn.experiments.ledger import LedgerEntry, ledger_of
from fognn.experiments.results import networks_frame, table_frame
from fognn.experiments.search import choices_of, choose, grid, with_rates
from fognn.experiments.tables import plan
from fognn.report.rates import rates_frame
from fognn.report.tables import report_table


def runs(table: str, name: str, figures: list[float], **values: Any) -> list[LedgerEntry]:
    planned = plan(table, [name], len(figures), **{"ours": False} | values)
    return [entry(run, figure) for run, figure in zip(planned, figures, strict=True)]


def frame_of(table: str, entries: list[LedgerEntry], *args: Any, **kwargs: Any) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as results:
        ledger_of(table, results).change(lambda _: entries)
        return table_frame(table, results, *args, **kwargs)


def row(frame: pd.DataFrame, network: str) -> Any:
    (found,) = [line for line in frame.itertuples() if line.network == network]
    return found


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9))
def test_a_mean_with_its_interval(values: list[float]) -> None:
    mean, sd, low, high = estimate(values)
    assert (mean, sd) == (statistics.fmean(values), statistics.stdev(values))
    if sd > 1e-6:
        expected = stats.t.interval(0.95, len(values) - 1, mean, sd / math.sqrt(len(values)))
        assert (low, high) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    mean, *others = estimate(values[:1])
    assert mean == values[0]
    assert all(map(math.isnan, others))


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (None, "not measured"),
        (Difference(-0.1, -0.2, -0.01, 3, "seed"), "better"),
        (Difference(0.1, 0.01, 0.2, 3, "seed"), "worse"),
        (Difference(-0.1, -0.2, 0.01, 3, "seed"), "inconclusive"),
        (Difference(-0.1, -0.2, -0.01, 2, "seed"), "maybe better"),
        (Difference(-0.1, -0.2, -0.01, 10, "fold"), "maybe better"),
        (Difference(0.1, math.nan, math.nan, 1, "seed"), "maybe worse"),
    ],
)
def test_verdicts(found: Difference | None, verdict: str) -> None:
    assert verdict_of(found, "mae") == verdict
    opposite = {"better": "worse", "worse": "better"}
    if found is not None:  # where higher is better, the same difference says the opposite
        words = [opposite.get(word, word) for word in verdict.split()]
        assert verdict_of(found, "accuracy") == " ".join(words)
        assert verdict_of(found, "mae", decides=False) not in ("better", "worse")


def test_a_table() -> None:
    host = runs("zinc", "gcn-sym", [0.40, 0.42, 0.45], ours=True)
    fog = runs("zinc", "gcn+fog", [0.30, 0.31, 0.33])
    frame = frame_of("zinc", host + fog)
    assert len(frame) == 13 + 1, "all rows of the paper, and the measured variant"
    line = row(frame, "GCN+FOG")
    assert line.values == (0.30, 0.31, 0.33)
    assert (line.seeds, line.figure, line.sd_over) == ((0, 1, 2), "test.last.batches", "seeds")
    assert (line.mean, line.sd) == (
        pytest.approx(0.94 / 3), pytest.approx(statistics.stdev([0.30, 0.31, 0.33])),
    )  # fmt: skip
    assert line.difference == pytest.approx(line.mean - 0.307)
    # The row of GCN has another norm than that of GCN+FOG: the host is our variant.
    assert (line.host, line.pairs, line.paired_over) == ("GCN (norm=sym)", 3, "seed")
    differences = [-0.10, -0.11, -0.12]
    assert (line.paired, line.low, line.high) == pytest.approx(
        (estimate(differences).mean, *estimate(differences)[2:])
    )
    assert line.verdict == "better"
    empty = row(frame, "GIN")
    assert math.isnan(empty.mean)
    assert (empty.seeds, empty.host, empty.verdict) == ((), "", "")
    best = row(frame_of("zinc", fog, "best", "items"), "GCN+FOG")
    assert best.values == pytest.approx((0.303, 0.313, 0.333))
    with pytest.raises(ValueError, match="table: at"):
        frame_of("zinc", fog, "first")
    with pytest.raises(ValueError, match="must be a run of table 'tsp'"):
        frame_of("tsp", fog)


def test_what_is_off_and_what_is_changed() -> None:
    """More than three printed deviations, or 5 %, away; changed settings explain it."""
    mean, sd = 0.307, 0.013
    for figure, off in ((mean + 2.9 * sd, "5 %"), (mean + 3.1 * sd, "3 s.d. and 5 %"), (0.31, "")):
        assert row(frame_of("zinc", runs("zinc", "gcn+fog", [figure])), "GCN+FOG").off == off
    part = runs("zinc", "gcn+fog", [0.9], fraction=0.1)
    frame = frame_of("zinc", part)
    line = row(frame, "GCN+FOG [data.fraction=0.1]")
    assert (line.fraction, line.off, line.ours) == (0.1, "", True)
    assert math.isnan(line.paper_mean)
    twice = runs("zinc", "gcn+fog", [0.3]) + runs("zinc", "gcn+fog", [0.4])
    with pytest.raises(ValueError, match="the same seed"):
        networks_frame(twice)


def test_folds() -> None:
    gin, fog = plan("limits", ["gin-imdb-multi", "gin+fog-imdb-multi"])
    frame = frame_of("limits", [
        fold_entry(gin, [50.0, 52.0, 54.0], [48.0, 50.0, 52.0]),
        fold_entry(fog, [51.0, 54.0, 55.0], [50.0, 51.0, 53.0]),
    ])  # fmt: skip
    line = row(frame, "GIN+FOG, IMDB-MULTI")
    assert (line.figure, line.folds, line.sd_over) == ("val.best.items", 3, "folds")
    assert (line.mean, line.held_out) == (pytest.approx(160 / 3), pytest.approx(154 / 3))
    assert line.sd == pytest.approx(statistics.stdev([51.0, 54.0, 55.0]))
    assert (line.paired, line.pairs, line.paired_over) == (pytest.approx(4 / 3), 3, "fold")
    assert line.verdict in ("inconclusive", "maybe better"), "folds share training data"


def test_controls_are_subtracted_from_their_reference() -> None:
    entries = [
        *runs("controls", "zinc-gcn-kron", [0.30, 0.32, 0.31]),
        *runs("controls", "zinc-gcn-concat", [0.34, 0.35, 0.36]),
        *runs("controls", "zinc-gcn-wider", [0.29]),
        *runs("controls", "zinc-gin-concat", [0.40]),
    ]
    frame = frame_of("controls", entries)
    concat = row(frame, "GCN+FOG, concat")
    assert (concat.host, concat.pairs) == ("GCN+FOG, kron", 3)
    assert concat.paired == pytest.approx(-0.04)
    assert row(frame, "GCN, wider").paired == pytest.approx(0.01)
    assert math.isnan(row(frame, "GCN, wider").low), "one seed has no interval"
    assert row(frame, "GIN+FOG, concat").host == "", "its reference is not measured"
    minus = frame_of("controls", entries, minus="zinc-gcn-concat")
    assert row(minus, "GCN+FOG, kron").paired == pytest.approx(-0.04)
    assert math.isnan(row(minus, "GCN+FOG, concat").paired)
    with pytest.raises(ValueError, match=r"minus 'zinc-gin-kron'"):
        frame_of("controls", entries, minus="zinc-gin-kron")


def test_few_shot_images_have_an_interval_of_one_seed() -> None:
    (run,) = plan("omniglot", ["gnn-1shot"])
    best = {"items": 98.0, "batches": 97.0, "loss": 1.0, "interval": 0.31}
    own = entry(run, 98.0, test={"best": best, "last": best})
    line = row(frame_of("omniglot", [own]), "GNN, 1-shot")
    assert (line.mean, line.interval) == (98.0, 0.31)
    assert math.isnan(line.sd)
    assert math.isnan(row(frame_of("omniglot", [own], over="batches"), "GNN, 1-shot").interval)


def test_from_the_ledger_without_trials_and_as_csv(tmp_path: Path) -> None:
    ledger = ledger_of("zinc", tmp_path)
    for name, figures in {"gcn-sym": [0.40, 0.44], "gcn+fog": [0.30, 0.31]}.items():
        first, *_ = planned = plan("zinc", [name], 2, ours=name != "gcn+fog")
        settings = [(0.001, 0.0), (0.0005, 0.0)]
        tried = [entry(trial, 0.5 - n) for n, trial in enumerate(grid(first, settings))]
        choice = choose(first, tried, grid(first, settings))
        assert choice is not None
        choices_of("zinc", tmp_path).add(choice)
        fair = [
            entry(with_rates(run, choice.lr, choice.weight_decay), f - 0.01)
            for run, f in zip(planned, figures, strict=True)
        ]
        for own in [*tried, *fair, *map(entry, planned, figures)]:
            ledger.add(own)
    frame = table_frame("zinc", tmp_path)
    measured = [line.network for line in frame.itertuples() if line.entries]
    assert "GCN+FOG" in measured
    assert all("lr=0.001" not in name for name in measured), "a trial is in no table"
    header, *lines = report_table("zinc", tmp_path, "csv").splitlines()
    assert ",fog_minus_host,low,high," in header
    assert len(lines) == len(frame)
    (pair,) = [r for r in rates_frame("zinc", tmp_path).itertuples() if r.tries]
    assert (pair.network, pair.tries) == ("GCN (norm=sym)", "2")
    assert pair.printed.value == pytest.approx(-0.115)
    assert pair.fair.value == pytest.approx(-0.115)
    assert pair.settings.value == pytest.approx(0.0, abs=1e-9)
    assert "GCN+FOG" in report_table("zinc", tmp_path)
