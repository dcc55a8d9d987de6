import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.report.findings import findings
from fognn.report.run_folder import Run, read_run
from fognn.report.run_groups import group_runs

MakeRun = Callable[..., Path]
# The last steps are of 0.5 points: that is the noise of this curve.
STEADY = [20.0, 30.0, 40.0, 40.5, 41.0, 40.5, 41.0, 40.5]


def said(*folders: Path) -> list[str]:
    return findings(group_runs([read_run(folder) for folder in folders]))


def test_fog_helps(make_run: MakeRun) -> None:
    host = make_run("a", "gcn", STEADY, 53.89)
    fog = make_run("b", "gcn+fog", STEADY, 57.1)
    for order in ((host, fog), (fog, host)):
        first, *rest = said(*order)
        assert first == (
            "On the test split gcn+fog ended 3.21 percentage points better than gcn: 57.10 % "
            "against 53.89 % balanced accuracy, over all items, at the best validation epoch. The "
            "other ways to count, in the table, give the same order."
        )
        assert rest[0].startswith("As to cost, gcn+fog has")
        assert rest[1].startswith("One seed and 10 % of the graphs are no proof")
        assert len(rest) == 2


def test_fog_does_not_help(make_run: MakeRun) -> None:
    first = said(make_run("a", "gcn", STEADY, 57.1), make_run("b", "gcn+fog", STEADY, 53.89))[0]
    assert first.startswith(
        "FOG did not help here: on the test split gcn+fog ended 3.21 percentage points worse than "
        "gcn: 53.89 % against 57.10 % balanced accuracy"
    )


@pytest.mark.parametrize(("value", "side"), [(50.49, "ahead of"), (49.51, "behind")])
def test_less_than_an_epoch_changes(make_run: MakeRun, value: float, side: str) -> None:
    first = said(make_run("a", "gcn", STEADY, 50.0), make_run("b", "gcn+fog", STEADY, value))[0]
    assert first == (
        "FOG made no clear difference here: on the test split gcn+fog is 0.49 percentage points "
        f"{side} gcn, {value:.2f} % against 50.00 % balanced accuracy, over all items, at the best "
        "validation epoch; that is not more than the validation balanced accuracy changes from one "
        "epoch to the next (0.50 percentage points)."
    )
    clear = said(make_run("c", "gcn", STEADY, 50.0), make_run("d", "gcn+fog", STEADY, 50.51))[0]
    assert clear.startswith("On the test split gcn+fog ended 0.51 percentage points better")


def test_equal_to_the_last_printed_digit(make_run: MakeRun) -> None:
    # One epoch has no change; a gap that is printed as 0.00 is none all the same.
    first = said(make_run("a", "gcn", [40.0], 50.0), make_run("b", "gcn+fog", [40.0], 50.004))[0]
    assert first.startswith("FOG made no clear difference here: ")
    assert "is 0.00 percentage points ahead of gcn" in first
    assert "one epoch to the next" not in first


def test_an_error_is_better_when_it_is_less(make_run: MakeRun) -> None:
    curve = [1.0, 0.5, 0.4, 0.41, 0.4, 0.41]
    host = make_run("a", "gat", curve, 0.45, metric="mae")
    fog = make_run("b", "gat+fog", curve, 0.35, metric="mae")
    assert said(host, fog)[0].startswith(
        "On the test split gat+fog ended 0.1000 better than gat: 0.3500 against 0.4500 MAE (less "
        "is better), over all items"
    )


def test_ways_that_disagree(make_run: MakeRun) -> None:
    host = make_run("a", "gcn", STEADY, (50.0, 50.0, 50.0, 50.0))
    fog = make_run("b", "gcn+fog", STEADY, (55.0, 54.0, 49.0, 50.0))
    assert said(host, fog)[0].endswith(
        "But it is not so at the last epoch over items and at the last epoch over batches."
    )


def test_networks_that_are_no_pair(make_run: MakeRun) -> None:
    got = said(make_run("a", "gat", STEADY, 50.0), make_run("b", "gcn+fog", STEADY, 55.0))
    assert got[0].startswith(
        "On the test split gcn+fog ended 5.00 percentage points better than gat"
    )
    assert "FOG" not in "".join(got)


def test_several_networks(make_run: MakeRun) -> None:
    values = {"gcn": 50.0, "gcn+fog": 55.0, "gat": 60.0, "gat+fog": 52.0, "gin": 58.0}
    got = said(*(make_run(name, name, STEADY, value) for name, value in values.items()))
    assert got[0].startswith("On the test split gat ended 2.00 percentage points better than gin:")
    assert got[1].startswith(
        "On the test split gcn+fog ended 5.00 percentage points better than gcn"
    )
    assert got[2].startswith(
        "FOG did not help here: on the test split gat+fog ended 8.00 percentage"
    )


def test_seeds(make_run: MakeRun) -> None:
    tests = {"gcn": (50.0, 52.0, 54.0), "gcn+fog": (56.0, 57.0, 58.0)}
    folders = [
        make_run(f"{model}{seed}", model, STEADY, value, seed=seed, config={"data.fraction": 1.0})
        for model, values in tests.items()
        for seed, value in enumerate(values)
    ]
    assert said(*folders)[0].startswith(
        "On the test split gcn+fog ended 5.00 percentage points better than gcn: 57.00 % against "
        "52.00 % balanced accuracy, over all items, at the best validation epoch, means of 3 and 3 "
        "runs."
    )


def test_seeds_that_spread(make_run: MakeRun) -> None:
    # Standard deviations sqrt(2) * 3 and sqrt(2) * 4, of two runs each: the error is exactly 5.
    tests = {"gcn": (47.0, 53.0), "gcn+fog": (55.9, 63.9)}
    folders = [
        make_run(f"{model}{seed}", model, STEADY, value, seed=seed)
        for model, values in tests.items()
        for seed, value in enumerate(values)
    ]
    first = said(*folders)[0]
    assert first.startswith("FOG made no clear difference here: on the test split gcn+fog is 9.90")
    assert first.endswith("not more than twice its standard error (10.00 percentage points).")


def test_one_network(make_run: MakeRun) -> None:
    folders = [make_run(f"a{s}", "gcn", STEADY, 50.0 + 2 * s, seed=s) for s in (0, 1)]
    assert said(*folders)[0] == (
        "The mean balanced accuracy of gcn is 51.00 % on the test split, standard deviation "
        f"{math.sqrt(2):.2f} percentage points, over 2 runs."
    )


def test_running(make_run: MakeRun) -> None:
    # At the age of the younger one, the older was not yet better.
    host = make_run("a", "gcn", [20.0, 30.0, 90.0, 90.0], 90.0)
    fog = make_run("b", "gcn+fog", [40.0, 40.5], finished=False)
    first, second, *_ = said(host, fog)
    assert first == (
        "On the validation split within 2 epochs gcn+fog is 10.50 percentage points better than "
        "gcn: 40.50 % against 30.00 % balanced accuracy."
    )
    assert second == "There is no test result of gcn+fog yet."


@pytest.mark.parametrize("curve", [[], [math.nan, math.nan]])
def test_nothing_to_compare(make_run: MakeRun, curve: list[float]) -> None:
    host = make_run("a", "gcn", STEADY, 50.0)
    fog = make_run("b", "gcn+fog", curve, finished=False)
    assert said(host, fog) == [
        "Nothing can be compared yet: there is no validation result of gcn+fog."
    ]


def run_of(model: str, val: Sequence[float], test: float, metric: str) -> Run:
    config: dict[str, Any] = {"data": {"name": "X"}, "model": {"name": model}, "seed": 0}
    columns = {"epoch": [float(e + 1) for e in range(len(val))], f"val_{metric}_items": list(val)}
    columns |= {name: [1.0] * len(val) for name in ("train_seconds", "val_seconds")}
    scores = {"items": test, "batches": test, "loss": 1.0}
    result = {"test": {"best": scores, "last": scores}, "parameters": 1, "seconds_per_epoch": 1.0}
    return Run(Path(model), config, metric, columns, result | {"best_epoch": 1})


values = st.floats(0, 100, allow_nan=False)


@given(values, values, st.lists(values, min_size=1, max_size=12), st.sampled_from(["f1", "mae"]))
def test_the_words_fit_the_numbers(a: float, b: float, val: list[float], metric: str) -> None:
    fog, host = run_of("gcn+fog", val, a, metric), run_of("gcn", val, b, metric)
    first = findings(group_runs([host, fog]))[0]
    better = a > b if metric == "f1" else a < b
    # As printed, which is as a reader checks it.
    assert f"{a:.4f} against {b:.4f}" in first
    found = re.search(r"(made no clear|did not help|ended \S+ better)", first)
    assert found
    verdict = found[1].split()[0]
    steps = sorted(abs(y - x) for x, y in zip(val[-6:], val[-6:][1:], strict=False))
    middle = len(steps) // 2
    noise = (steps[middle] + steps[~middle]) / 2 if steps else 0.0
    if verdict == "made":
        assert abs(a - b) <= max(noise, 0.00005)
    else:
        assert abs(a - b) > noise
        assert (verdict == "ended") == better
