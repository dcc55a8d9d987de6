import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_entries import entry

from fognn.experiments.comparison import compare
from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.search import (
    DECAYS,
    RATES,
    Choice,
    Choices,
    choose,
    grid,
    with_choice,
    without_trials,
)
from fognn.experiments.tables import TableRun, plan

ROW = plan("zinc", ["gcn+fog"])[0]


def searched(row: TableRun, scores: list[float]) -> list[LedgerEntry]:
    """All trials of a row, with these validation metrics."""
    return [
        entry(trial, 0.3, val={"best": {"items": score, "batches": -score}, "last": {}})
        for trial, score in zip(grid(row), scores, strict=True)
    ]


def test_the_papers_grid() -> None:
    trials = grid(ROW)
    found = {(run.config.training.lr, run.config.training.weight_decay) for run in trials}
    assert found == {(r, d) for r in (1e-2, 5e-3, 1e-3, 5e-4) for d in (1e-3, 1e-6, 0.0)}
    assert len({run.key for run in trials}) == len(trials) == 12
    for run in trials:
        assert (run.table, run.row, run.variant) == ("zinc", ROW.row, "")
        values = {"training.lr": ROW.paper.lr, "training.weight_decay": ROW.paper.weight_decay}
        assert run.config.with_values(values) == ROW.config
    # The row's own rate and decay are of the grid, and that run is not trained twice.
    assert [run.name for run in trials].count("gcn+fog-seed0") == 1


def test_every_fog_row_of_the_paper_lies_on_the_grid() -> None:
    for run in plan("zinc", ["*fog"], ours=False):
        assert run.key in {trial.key for trial in grid(run)}


def test_it_keeps_what_else_was_asked_for() -> None:
    small = plan("zinc", ["gcn-sym"], [4], fraction=0.1, values={"machine.threads": 1})[0]
    for run in grid(small):
        assert (run.config.seed, run.config.data.fraction) == (4, 0.1)
        assert (run.variant, run.config.model.settings["norm"]) == ("norm=sym", "sym")
        assert run.config.machine.threads == 1


@settings(max_examples=20)
@given(st.lists(st.floats(0.1, 1.0), min_size=12, max_size=12), st.randoms())
def test_the_least_error_is_picked(scores: list[float], random: Any) -> None:
    entries = searched(ROW, scores)
    random.shuffle(entries)
    choice = choose(ROW, entries)
    # Of equal ones the first of the grid: the higher rate, the stronger decay.
    place = scores.index(min(scores))
    assert (choice.lr, choice.weight_decay) == (RATES[place // 3], DECAYS[place % 3])
    assert [trial.score for trial in choice.tried] == scores
    assert choice.picked.score == min(scores)


def test_the_highest_accuracy_is_picked() -> None:
    row = plan("cluster", ["gin"])[0]
    choice = choose(row, searched(row, [*range(50, 61), 3.0]))
    assert choice.higher_is_better
    assert (choice.lr, choice.weight_decay, choice.picked.score) == (5e-4, 1e-6, 60)


def test_the_test_split_has_no_part_in_it() -> None:
    entries = searched(ROW, [0.5 - 0.01 * k for k in range(12)])
    choice = choose(ROW, entries)
    wild = [
        dataclasses.replace(own, result=own.result | {"test": {"last": k, "best": -k}})
        for k, own in enumerate(entries)
    ]
    assert choose(ROW, wild) == choice
    without = [dataclasses.replace(own, result=own.result | {"test": None}) for own in entries]
    assert choose(ROW, without) == choice
    assert choice.figure == "val.best.items"


def test_not_before_all_have_ended() -> None:
    entries = searched(ROW, [0.5] * 12)
    with pytest.raises(ValueError, match=r"all 12 runs .* 'zinc/gcn\+fog-seed0', 2 are missing"):
        choose(ROW, entries[:-2])
    # Those of another seed are other runs.
    other = plan("zinc", ["gcn+fog"], [1])[0]
    with pytest.raises(ValueError, match="12 are missing"):
        choose(other, entries)


def test_a_trial_without_a_score() -> None:
    entries = searched(ROW, [0.5] * 12)
    entries[3].result["val"] = None
    with pytest.raises(ValueError, match=r"result\.val\.best\.items must be a number, got None"):
        choose(ROW, entries)


def test_the_choice_is_used() -> None:
    choice = choose(ROW, searched(ROW, [0.5] * 4 + [0.1] + [0.5] * 7))
    seeds = plan("zinc", ["gcn+fog"], 3)
    runs = [with_choice(run, choice) for run in seeds]
    assert runs[0].key == choice.picked.key
    for run in runs:
        assert (run.config.training.lr, run.config.training.weight_decay) == (5e-3, 1e-6)
    with pytest.raises(ValueError, match=r"choice must be of 'zinc/gcn-seed0', got"):
        with_choice(plan("zinc", ["gcn"])[0], choice)


def test_it_is_recorded(tmp_path: Path) -> None:
    path = choices_of("zinc", tmp_path).path
    # Not among the ledgers, which others read as results/*.jsonl.
    assert path.relative_to(tmp_path).parts == ("searches", "zinc.jsonl")
    choices = Choices(path)
    assert choices.all() == []
    first = choose(ROW, searched(ROW, [0.5] * 11 + [0.4]))
    other = plan("zinc", ["gcn"])[0]
    second = choose(other, searched(other, [0.5] * 12))
    again = choose(ROW, searched(ROW, [0.3] + [0.5] * 11))
    for choice in (first, second, again):
        choices.add(choice)
    assert choices.all() == [again, second]
    line = json.loads(path.read_text().splitlines()[0])
    assert (line["lr"], line["weight_decay"], len(line["tried"])) == (1e-2, 1e-3, 12)
    assert line["tried"][0] == {
        "key": grid(ROW)[0].key, "lr": 1e-2, "weight_decay": 1e-3, "score": 0.3,
    }  # fmt: skip
    # A later version may say more.
    path.write_text(json.dumps(line | {"patience": 3}) + "\n")
    assert choices.all() == [again]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        *[({"tried": tried}, "must be a search") for tried in (None, [3], [], [{"lr": 1}])],
        ({"lr": 0.3}, "must be a search"),
        ({"row": 3}, "row must be a text, got 3"),
    ],
)
def test_a_damaged_choice(tmp_path: Path, change: dict[str, Any], wrong: str) -> None:
    path = choices_of("zinc", tmp_path).path
    choices = Choices(path)
    choices.add(choose(ROW, searched(ROW, [0.5] * 12)))
    path.write_text(json.dumps(json.loads(path.read_text()) | change) + "\n")
    words = r"zinc\.jsonl, line 1, 'zinc/gcn\+fog-seed0': "
    with pytest.warns(UserWarning, match=words + wrong):
        assert choices.all() == []


def test_trials_do_not_fill_the_table() -> None:
    entries = searched(ROW, [0.5] * 4 + [0.1] + [0.5] * 7)
    choice = choose(ROW, entries)
    second = with_choice(plan("zinc", ["gcn+fog"], [1])[0], choice)
    gcn = entry(plan("zinc", ["gcn"])[0], 0.4)
    kept = without_trials([*entries, entry(second, 0.2), gcn], [choice])
    # The row as printed, and the picked one with all its seeds.
    labels = {line.label: line.seeds for line in compare("zinc", kept) if line.entries}
    assert labels == {
        "GCN": (0,),
        "GCN+FOG": (0,),
        "GCN+FOG [training.lr=0.005, training.weight_decay=1e-06]": (0, 1),
    }
    assert without_trials(entries, []) == entries


def test_what_was_picked_must_have_been_tried() -> None:
    choice = choose(ROW, searched(ROW, [0.5] * 12))
    assert isinstance(choice, Choice)
    with pytest.raises(StopIteration):
        _ = dataclasses.replace(choice, lr=0.3).picked
