import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_entries import entry

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.search import (
    DECAYS,
    RATES,
    Choice,
    choices_of,
    choose,
    grid,
    with_rates,
    without_trials,
)
from fognn.experiments.tables import TableRun, plan

ROW = plan("zinc", ["gcn+fog"], ours=False)[0]


def searched(row: TableRun, scores: list[float]) -> list[LedgerEntry]:
    """All trials of a row, with these validation metrics."""

    def val(score: float) -> dict[str, Any]:
        other = {"items": -score, "batches": -score, "loss": 1.0}
        return {"best": other | {"items": score}, "last": other}

    return [
        entry(trial, 0.3, val=val(score)) for trial, score in zip(grid(row), scores, strict=True)
    ]


def chosen(row: TableRun, scores: list[float]) -> Choice:
    choice = choose(row, searched(row, scores), grid(row))
    assert choice is not None
    return choice


def test_the_papers_grid() -> None:
    trials = grid(ROW)
    found = {(run.config.training.lr, run.config.training.weight_decay) for run in trials}
    assert found == {(r, d) for r in (1e-2, 5e-3, 1e-3, 5e-4) for d in (1e-3, 1e-6, 0.0)}
    assert len({run.key for run in trials}) == len(trials) == 12
    values = {"training.lr": ROW.paper.lr, "training.weight_decay": ROW.paper.weight_decay}
    assert all(run.config.with_values(values) == ROW.config for run in trials)
    # The row's own rate and decay are of the grid, and that run is not trained twice.
    for run in plan("zinc", ["*fog"], ours=False):
        assert run.key in {trial.key for trial in grid(run)}


@settings(max_examples=20)
@given(st.lists(st.floats(0.1, 1.0), min_size=12, max_size=12), st.randoms())
def test_the_least_error_is_picked(scores: list[float], random: Any) -> None:
    entries = searched(ROW, scores)
    random.shuffle(entries)
    choice = choose(ROW, entries, grid(ROW))
    assert choice is not None
    # Of equal ones the first of the grid: the higher rate, the stronger decay.
    place = scores.index(min(scores))
    assert (choice.lr, choice.weight_decay) == (RATES[place // 3], DECAYS[place % 3])
    assert [trial.score for trial in choice.tried] == scores
    assert choice.picked.score == min(scores)


def test_the_highest_accuracy_is_picked() -> None:
    row = plan("cluster", ["gin"])[0]
    choice = chosen(row, [*range(50, 61), 3.0])
    assert choice.higher_is_better
    assert (choice.lr, choice.weight_decay, choice.picked.score) == (5e-4, 1e-6, 60)


def test_the_test_split_has_no_part_in_it() -> None:
    entries = searched(ROW, [0.5 - 0.01 * k for k in range(12)])
    wild = [
        own.model_copy(update={"result": own.result | {"test": {"last": k}}})
        for k, own in enumerate(entries)
    ]
    assert choose(ROW, wild, grid(ROW)) == choose(ROW, entries, grid(ROW))


def test_failed_trials() -> None:
    trials = grid(ROW)
    entries = searched(ROW, [0.5 + 0.01 * k for k in range(12)])
    choice = choose(ROW, entries[1:], trials)
    assert choice is not None
    assert (choice.tried[0].score, choice.picked) == (None, choice.tried[1])
    assert choose(ROW, [], trials) is None


def test_it_is_recorded(tmp_path: Path) -> None:
    choices = choices_of("zinc", tmp_path)
    # Not among the ledgers, which others read as results/*.jsonl.
    assert choices.path.relative_to(tmp_path).parts == ("searches", "zinc.jsonl")
    first = chosen(ROW, [0.5] * 11 + [0.4])
    second = chosen(plan("zinc", ["gcn"])[0], [0.5] * 12)
    again = chosen(ROW, [0.3] + [0.5] * 11)
    for choice in (first, second, again):
        choices.add(choice)
    assert choices.entries() == [again, second]
    line = json.loads(choices.path.read_text().splitlines()[0])
    assert line["tried"][0] == {
        "key": grid(ROW)[0].key, "lr": 1e-2, "weight_decay": 1e-3, "score": 0.3,
    }  # fmt: skip


def test_trials_do_not_fill_the_table() -> None:
    entries = searched(ROW, [0.5] * 4 + [0.1] + [0.5] * 7)
    choice = chosen(ROW, [0.5] * 4 + [0.1] + [0.5] * 7)
    planned = plan("zinc", ["gcn+fog"], 2, ours=False)
    runs = [with_rates(run, choice.lr, choice.weight_decay) for run in planned]
    assert runs[0].key == choice.picked.key
    gcn = entry(plan("zinc", ["gcn"])[0], 0.4)
    kept = without_trials([*entries, entry(runs[1], 0.2), gcn], [choice])
    # The row as printed, and the picked one with all its seeds.
    assert {own.key for own in kept} == {ROW.key, runs[0].key, runs[1].key, gcn.key}
    assert without_trials(entries, []) == entries
