"""The answer of a comparison: its rows, its sentence, its pages."""

from pathlib import Path
from typing import Any

import pytest
import torch
from compared_runs import FakeTraining, compared_entry
from fognn.experiments.compare_runs import networks
from tiny_runs import molecules

import fognn
from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.tables import TableRun
from fognn.report import comparison
from fognn.report.measurements import read_measurements
from fognn.report.site import build_site
from fognn.report.site.compare_answer import network_rows, sentence_of, winner_of


def entries(scores: dict[str, list[float]], metric: str = "mae", **more: Any) -> list[LedgerEntry]:
    """Runs with these test metrics, one for each seed; the validation metric is 1 higher."""
    hosts = list(dict.fromkeys(label.removesuffix("+FOG").lower() for label in scores))
    values = {"metric": metric, "epochs": 2}
    values["loss"] = "l1" if metric == "mae" else "cross_entropy"
    found = {run.label: run for run in networks("zinc", hosts, 5000, values, **more)}
    return [
        compared_entry(with_seed(found[label], seed), score + 1, score)
        for label, own in scores.items()
        for seed, score in enumerate(own)
    ]


def with_seed(run: TableRun, seed: int) -> TableRun:
    config = run.config.with_values({"seed": seed})
    return type(run)(run.table, run.row, run.variant, run.label, config)


HOST = [0.50, 0.52, 0.48]
SENTENCES = [
    (
        {"GIN": HOST, "GIN+FOG": [0.40, 0.41, 0.39]},
        "GIN+FOG is better by 0.100 ± 0.025 MAE over 3 seeds.",
    ),
    (
        {"GIN": [0.40, 0.41, 0.39], "GIN+FOG": HOST},
        "GIN+FOG is worse by 0.100 ± 0.025 MAE over 3 seeds.",
    ),
    (
        {"GIN": HOST, "GIN+FOG": [0.45, 0.55, 0.50]},
        "It cannot be told whether FOG helps (on GIN 0.00 ± 0.11 MAE, over 3 seeds).",
    ),
    (
        {"GIN": HOST, "GIN+FOG": [0.40, 0.41, 0.39], "GCN": HOST, "GCN+FOG": [0.45, 0.55, 0.5]},
        "GIN+FOG is better by 0.100 ± 0.025 MAE over 3 seeds; on GCN it cannot be told.",
    ),
    (
        {"GIN": [0.5], "GIN+FOG": [0.47]},
        "GIN+FOG was better by 0.030 MAE over 1 seed; one or two seeds decide nothing: another "
        "seed may show the opposite.",
    ),
    (
        {"GIN": [0.5, 0.51], "GIN+FOG": [0.47, 0.4801]},
        "GIN+FOG was better by 0.02995 ± 0.00064 MAE over 2 seeds; one or two seeds decide "
        "nothing: another seed may show the opposite.",
    ),
    ({"FOG": HOST}, "No host has runs with and without FOG, so there is nothing to compare."),
]


@pytest.mark.parametrize(("scores", "sentence"), SENTENCES)
def test_sentences(scores: dict[str, list[float]], sentence: str) -> None:
    assert sentence_of(network_rows(entries(scores))) == sentence


def test_a_higher_accuracy_is_better() -> None:
    scores = {"GCN": [50.0, 51.0, 52.0], "GCN+FOG": [60.5, 61.0, 62.5]}
    rows = network_rows(entries(scores, "accuracy"))
    expected = "GCN+FOG is better by 10.33 ± 0.72 points of accuracy over 3 seeds."
    assert sentence_of(rows) == expected
    assert [row.verdict for row in rows] == ["", "better"]


def test_folds_of_one_seed_are_pairs() -> None:
    own = entries({"GCN": [0.5], "GCN+FOG": [0.4]})
    for entry, shift in zip(own, (0.0, 0.1), strict=True):
        folds = [0.5 - shift + jitter for jitter in (0.0, 0.01, -0.01)]
        entry.result["folds"] = [
            {"fold": n, "val": _both(v), "test": _both(v), "epochs": 2}
            for n, v in enumerate(folds, 1)
        ]
        entry.result["spread"] = _both(0.01)
    rows = network_rows(own)
    assert rows[1].paired is not None
    assert (rows[1].paired.pairs, rows[1].paired.over) == (3, "fold")
    assert "over 3 folds; one or two seeds decide nothing: folds share" in sentence_of(rows)


def _both(value: float) -> dict[str, dict[str, float]]:
    return {at: {"batches": value, "items": value, "loss": value} for at in ("last", "best")}


def test_the_winner_is_that_of_the_validation_split() -> None:
    own = entries({"GIN": [0.9, 0.9], "GIN+FOG": [0.1, 0.1]})
    for entry in own:  # by the test split it is GIN+FOG
        entry.result["val"]["best"]["items"] = 1 - entry.result["test"]["best"]["items"]
    winner = winner_of(network_rows(own))
    assert winner is not None
    assert winner.label == "GIN"


def test_budgets_of_the_same_name_are_compared_apart() -> None:
    small = entries({"GIN": HOST, "GIN+FOG": [0.40, 0.41, 0.39]})
    values = {"metric": "mae", "epochs": 2, "loss": "l1"}
    large = [
        compared_entry(with_seed(run, seed), 1.0, 0.3 + seed / 100)
        for run in networks("zinc", ["gin"], 9000, values)
        for seed in range(3)
    ]
    rows = network_rows([*small, *large])
    assert [row.note for row in rows] == ["5,000 parameters"] * 2 + ["9,000 parameters"] * 2
    assert rows[3].paired is not None
    assert rows[3].paired.difference == 0


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """fognn.compare on a file of graphs, without training."""
    torch.save(molecules(20), tmp_path / "graphs.pt")
    monkeypatch.chdir(tmp_path)

    def run(scores: Any, **more: Any) -> comparison.CompareResult:
        train = FakeTraining(tmp_path / "results", scores)
        monkeypatch.setattr(comparison, "reproduce", lambda some, *_, **__: train(some))
        return fognn.compare("graphs.pt", ["gcn"], budget=5000, epochs=2, **more)

    return run


def test_compare_and_its_pages(compared: Any, tmp_path: Path) -> None:
    def scores(run: TableRun) -> tuple[float, float]:
        score = 0.5 - 0.1 * bool(run.variant) + 0.01 * run.config.seed
        return score + 50 * (run.config.training.lr - 0.001), score

    result = compared(scores, seeds=3, rates=[0.01, 0.001])
    assert result.sentence == "GCN+FOG is better by 0.10 ± 0.00 MAE over 3 seeds."
    assert (result.winner.label, result.seeds) == ("GCN+FOG", 3)
    assert [row.lr for row in result.rows] == [0.001, 0.001]
    text = str(result)
    assert "fognn train trains it" in text  # its run folder is not here
    assert "300 MiB" in text
    result.folder.mkdir(parents=True)
    assert f"fognn predict {result.folder} INPUT -o predictions.csv" in str(result)
    page = result.report.read_text(encoding="utf-8")
    assert result.report == Path("runs/compare/graphs/report/index.html")
    assert "GCN+FOG is better by 0.1" in page
    assert "Validation MAE of each learning rate" in page
    assert "300 MiB" in page
    assert "the best validation epoch, over all items" in page
    assert "not of the networks alone" not in page
    runs = list((result.report.parent / "runs" / "compare" / "graphs").glob("*.html"))
    assert len(runs) == 6

    index = build_site(tmp_path / "results", tmp_path / "site")
    assert 'href="compare-graphs.html"' in index.read_text(encoding="utf-8")
    linked = (tmp_path / "site" / "compare-graphs.html").read_text(encoding="utf-8")
    assert "GCN+FOG is better by 0.1" in linked
    assert len(list((tmp_path / "site" / "runs" / "compare" / "graphs").glob("*.html"))) == 6


def test_networks_that_fail_are_named(compared: Any) -> None:
    def scores(run: TableRun) -> tuple[float, float] | str:
        return (0.1, 0.2) if run.variant else "the loss is nan"

    result = compared(scores, seeds=1, lr=0.01)
    assert result.notes == ("GCN failed at all learning rates and is left out: the loss is nan",)
    assert [row.label for row in result.rows] == ["GCN+FOG"]
    assert "nothing to compare" in str(result)


def test_all_networks_fail(compared: Any) -> None:
    result = compared(lambda run: "the loss is nan", seeds=1)
    assert (result.rows, result.report, result.winner) == ((), None, None)
    assert "GCN+FOG failed at all learning rates" in str(result)


def test_without_the_extra_for_pages(compared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: Any) -> None:
        raise ImportError("the report needs jinja2")

    monkeypatch.setattr(comparison, "build_comparison_report", build)
    result = compared(lambda run: (0.1, 0.2), seeds=1)
    assert result.notes == ("No pages: the report needs jinja2",)
    assert len(result.rows) == 2


def test_a_folder_with_other_files_is_seen_before_the_training(
    compared: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"output must be a new folder"):
        compared(lambda run: pytest.fail("trained"), output=tmp_path)


def test_the_time_and_the_seeds_that_it_allowed(compared: Any) -> None:
    result = compared(lambda run: (0.1, 0.2), time="1h", seeds=2, rates=[0.01])
    assert result.notes == ("2 seeds in the time of 1h",)


def test_a_rate_that_was_chosen_earlier_is_not_shown(compared: Any, tmp_path: Path) -> None:
    def scores(run: TableRun) -> tuple[float, float]:
        return run.config.training.lr, 0.1 + run.config.seed / 10

    compared(scores, seeds=2, rates=[0.01])
    result = compared(scores, seeds=2, rates=[0.01, 0.001])
    assert [(row.lr, len(row.entries)) for row in result.rows] == [(0.001, 2)] * 2
    (own,) = read_measurements(tmp_path / "results").comparisons.values()
    assert {entry.key for entry in own[0]} == {e.key for row in result.rows for e in row.entries}


def test_lr_and_rates(compared: Any) -> None:
    with pytest.raises(ValueError, match=r"lr must not be given with rates, got 0\.1"):
        compared(lambda run: (0.1, 0.1), lr=0.1, rates=[0.2])
