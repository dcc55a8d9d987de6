import pytest
from ledger_entries import entry, fold_entry

from fognn.experiments.ledger import LedgerEntry
from fognn.experiments.pairing import paired_difference, t_interval
from fognn.experiments.tables import plan

# Student's own data of 1908: hours of sleep that two drugs add, in ten patients.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def runs(model: str, values: dict[int, float]) -> list[LedgerEntry]:
    planned = plan("zinc", [model], list(values))
    return [entry(run, value) for run, value in zip(planned, values.values(), strict=True)]


def test_students_drugs() -> None:
    one = runs("gcn+fog", dict(enumerate(FIRST)))
    other = runs("gcn", dict(enumerate(SECOND)))
    # The order in which seeds were run does not matter.
    found = paired_difference("GCN", one, other[::-1], "last", "batches")
    assert found is not None
    # As R prints it: t.test(extra ~ group, sleep, paired = TRUE).
    assert found.difference == pytest.approx(-1.58)
    assert found.interval == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)
    assert (found.host, found.pairs, found.over, found.note) == ("GCN", 10, "seed", "10 seeds")


def test_only_common_seeds() -> None:
    one = runs("gcn+fog", {0: 1.0, 2: 3.0, 5: 7.0, 9: 100.0})
    other = runs("gcn", {1: -50.0, 2: 2.0, 5: 5.0})
    found = paired_difference("GCN", one, other, "last", "batches")
    assert found is not None
    assert (found.difference, found.pairs, found.note) == (1.5, 2, "2 seeds")
    assert paired_difference("GCN", one[:1], other, "last", "batches") is None


def test_one_seed_has_no_interval() -> None:
    found = paired_difference(
        "GCN", runs("gcn+fog", {3: 1.0}), runs("gcn", {3: 2.0}), "last", "batches"
    )
    assert found is not None
    assert (found.difference, found.interval) == (-1.0, None)
    assert found.note == "1 seed: no interval"


def test_which_figure() -> None:
    one, other = runs("gcn+fog", {0: 1.0}), runs("gcn", {0: 2.0})
    one[0].result["test"]["best"]["items"] = 9.0
    found = paired_difference("GCN", one, other, "best", "items")
    assert found is not None
    assert found.difference == pytest.approx(9.0 - 2.003)


def test_one_seed_over_folds() -> None:
    fog, host = plan("limits", ["gin*imdb*"])[::-1]
    one, other = fold_entry(fog, SECOND, FIRST), fold_entry(host, FIRST, SECOND)
    found = paired_difference("GIN", [one], [other], "last", "batches")
    assert found is not None
    assert found.difference == pytest.approx(1.58)
    assert found.interval == pytest.approx((0.7001142, 2.4598858), abs=1e-7)
    assert (found.over, found.note) == ("fold", "10 folds")
    # Runs of other folds do not pair.
    less = fold_entry(host, FIRST[:9], SECOND[:9])
    found = paired_difference("GIN", [one], [less], "last", "batches")
    assert found is not None
    assert (found.over, found.note) == ("seed", "1 seed: no interval")


def test_two_seeds_over_folds() -> None:
    fogs = plan("limits", ["gin+fog-imdb-multi"], 2)
    hosts = plan("limits", ["gin-imdb-multi"], 2)
    one = [fold_entry(run, [50.0, 52.0 + k], [1.0, 2.0]) for k, run in enumerate(fogs)]
    other = [fold_entry(run, [40.0, 42.0], [1.0, 2.0]) for run in hosts]
    found = paired_difference("GIN", one, other, "last", "batches")
    assert found is not None
    assert (found.over, found.pairs, found.difference) == ("seed", 2, 10.25)


# Student's own data of 1908: hours of sleep that two drugs add, in ten patients.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_students_interval() -> None:
    # As R prints it: t.test(extra ~ group, sleep, paired = TRUE).
    differences = [a - b for a, b in zip(FIRST, SECOND, strict=True)]
    assert t_interval(differences) == pytest.approx((-2.4598858, -0.7001142), abs=1e-7)


def test_too_few_values_have_no_interval() -> None:
    assert t_interval([]) is None
    assert t_interval([1.0]) is None
    assert t_interval([1.0, 1.0]) == (1.0, 1.0)
