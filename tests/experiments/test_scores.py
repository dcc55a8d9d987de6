from typing import Any

import pytest
from ledger_entries import entry, fold_entry

from fognn.experiments.scores import (
    Score,
    check_result,
    fold_scores,
    held_out_of,
    score_of,
    validation_of,
)
from fognn.experiments.tables import plan

ZINC = plan("zinc", ["gcn"])[0]
IMDB = plan("limits", ["gin-imdb-multi"])[0]


def test_each_of_the_four_figures() -> None:
    own = entry(ZINC, 0.5)
    found = {
        (at, over): score_of(own, at, over)
        for at in ("last", "best")
        for over in ("batches", "items")
    }
    assert found == {
        ("last", "batches"): Score(0.5),
        ("last", "items"): Score(0.501),
        ("best", "batches"): Score(0.502),
        ("best", "items"): Score(0.503),
    }
    assert held_out_of(own) is None
    assert fold_scores(own, "last", "items") == {}
    assert validation_of(own) == 0.5 + 0.1 + 0.003


@pytest.mark.parametrize("at", ["last", "best"])
@pytest.mark.parametrize("over", ["batches", "items"])
def test_without_a_test_split_it_is_the_papers_figure(at: str, over: str) -> None:
    own = fold_entry(IMDB, [50.0, 52.0, 54.0], [40.0, 44.0, 48.0])
    assert score_of(own, at, over) == Score(52.0, 2.0)
    assert held_out_of(own) == Score(44.0, 4.0)
    assert fold_scores(own, at, over) == {1: 50.0, 2: 52.0, 3: 54.0}


def test_one_fold_has_no_spread() -> None:
    own = entry(IMDB, 0.0, test=None, val=fold_entry(IMDB, [50.0, 52.0], [1.0, 2.0]).result["val"])
    assert score_of(own, "last", "batches") == Score(51.0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"parameters": None}, "result.parameters"),
        ({"parameters": 1.5}, "result.parameters"),
        ({"epochs": "3"}, "result.epochs"),
        ({"seconds_per_epoch": True}, "result.seconds_per_epoch"),
        ({"test": {}}, "result.test.last.batches"),
        ({"test": 3}, "result.test.last.batches"),
        ({"test": {"last": {"batches": 1, "items": 1}}}, "result.test.best.batches"),
        ({"test": None, "val": None}, "result.val.last.batches"),
        ({"spread": {"last": {}}}, "result.spread.last.batches"),
    ],
)
def test_a_result_that_is_not_whole(change: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=f"'zinc/gcn-seed0': {name} must be a number, got"):
        check_result(entry(ZINC, 0.5, **change))


def test_a_result_without_a_word_of_its_test() -> None:
    own = entry(ZINC, 0.5)
    check_result(own)
    del own.result["test"]
    with pytest.raises(ValueError, match=r"result\.test must be given"):
        check_result(own)
