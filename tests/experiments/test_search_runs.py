from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fognn.experiments.ledger import ledger_of
from fognn.experiments.pool import Job, Outcome, Summary
from fognn.experiments.reproduce import reproduce
from fognn.experiments.search import Choices, choices_file
from fognn.experiments.search_runs import search, trials
from fognn.experiments.tables import Planned, plan


def few(**values: Any) -> list[Planned]:
    small = {"training.batch_size": 4, "machine.threads": 1}
    return plan(
        "cluster", ["gcn", "gcn+fog"], fraction=0.0008, epochs=1, values=small | values, ours=False
    )


def test_every_row_is_searched_on_its_first_seed() -> None:
    planned = plan("zinc", ["gcn", "gcn-sym"], seeds=3)
    runs = trials(planned)
    assert len(runs) == 2 * 12
    assert {run.config.seed for run in runs} == {0}
    assert len({run.key for run in runs}) == 24


def test_what_validation_likes_best_is_taken(
    tmp_path: Path, pool_here: Callable[..., list[Any]]
) -> None:
    pool_here()
    planned = few()[:1]
    runs, results = tmp_path / "runs", tmp_path / "results"
    chosen, choices = search(
        planned, results, lambda some: reproduce(some, runs, results, quiet=True)
    )
    entries = {entry.key: entry for entry in ledger_of("cluster", results).entries()}
    assert len(entries) == 12
    (choice,), (run,) = choices, chosen
    best = max(entry.result["val"]["best"]["items"] for entry in entries.values())
    assert entries[run.key].result["val"]["best"]["items"] == best
    assert (run.config.training.lr, run.config.training.weight_decay) == (
        choice.lr,
        choice.weight_decay,
    )
    assert Choices(choices_file(results, "cluster")).all() == [choice]


def test_a_failed_trial_ends_the_search(tmp_path: Path) -> None:
    run = few()[0]
    failed = Outcome(Job(run.key, run.config, tmp_path), "it broke", None)
    with pytest.raises(ValueError, match=r"(?s)all runs must finish .*it broke"):
        search([run], tmp_path, lambda _: Summary((), (), (failed,), 1.0))
    assert not list(tmp_path.iterdir())
