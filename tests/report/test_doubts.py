from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fognn.report.doubts import cost, doubts
from fognn.report.run_folder import read_run
from fognn.report.run_groups import group_runs

MakeRun = Callable[..., Path]
FULL = {"data.fraction": 1.0}


def groups_of(*folders: Path) -> list[Any]:
    return group_runs([read_run(folder) for folder in folders])


def test_cost(make_run: MakeRun) -> None:
    a = make_run("a", "gcn", [1.0], 2.0, parameters=101_655, seconds=2.0)
    b = make_run("b", "gcn+fog", [1.0], 2.0, parameters=101_830, seconds=2.5)
    host, fog = groups_of(a, b)
    assert cost(fog, host) == (
        "As to cost, gcn+fog has 101,830 parameters against 101,655 and takes 1.25 times as long "
        "for an epoch."
    )


@pytest.mark.parametrize("field", [{"device": "cuda"}, {"threads": 1}, {"machine": {"cores": 64}}])
def test_times_of_two_machines_are_not_compared(make_run: MakeRun, field: dict[str, Any]) -> None:
    a = make_run("a", "gcn", [1.0], 2.0)
    b = make_run("b", "gcn+fog", [1.0], 2.0, result=field)
    host, fog = groups_of(a, b)
    assert cost(fog, host) == "As to cost, gcn+fog has 100,000 parameters against 100,000."


def test_cost_of_running_ones(make_run: MakeRun) -> None:
    a = make_run("a", "gcn", [1.0], finished=False)
    b = make_run("b", "gcn+fog", [1.0], finished=False, seconds=3.0)
    c = make_run("c", "gin", [], finished=False)
    host, fog, begun = groups_of(a, b, c)
    assert cost(fog, host) == "As to cost, gcn+fog takes 1.50 times as long for an epoch."
    assert cost(begun, host) == ""


def test_times_of_a_busy_machine(make_run: MakeRun) -> None:
    host, fog = (make_run(name, name, [1.0] * 8, 2.0) for name in ("gcn", "gcn+fog"))
    file = fog / "metrics.csv"
    text = file.read_text()
    # One slow epoch is no matter.
    file.write_text(text.replace("1.5,0.5", "60,0.5", 1))
    assert cost(*reversed(groups_of(host, fog))).endswith("1.00 times as long for an epoch.")
    # Half of the epochs took 8 seconds, and half of them 2.
    file.write_text(text.replace("1.5,0.5", "7.5,0.5", 4))
    assert cost(*reversed(groups_of(host, fog))).endswith(
        "for an epoch (but the epochs of one and the same run differ 4.0-fold in time: the machine "
        "had other work)."
    )


def test_no_doubt(make_run: MakeRun) -> None:
    folders = [
        make_run(f"{model}{seed}", model, [1.0, 2.0, 1.5], 2.0, seed=seed, config=FULL)
        for model in ("gcn", "gcn+fog")
        for seed in (0, 1)
    ]
    assert doubts(groups_of(*folders)) == []


@pytest.mark.parametrize(
    ("config", "seeds", "sentence"),
    [
        (FULL, 1, "One seed is no proof"),
        ({"data.fraction": 0.1}, 1, "One seed and 10 % of the graphs are no proof"),
        ({"data.fraction": 0.025}, 2, "2.5 % of the graphs are no proof"),
    ],
)
def test_little_is_no_proof(
    make_run: MakeRun, config: dict[str, Any], seeds: int, sentence: str
) -> None:
    folders = [
        make_run(f"{model}{seed}", model, [1.0, 2.0, 1.5], 2.0, seed=seed, config=config)
        for model in ("gcn", "gcn+fog")
        for seed in range(seeds)
    ]
    (got,) = doubts(groups_of(*folders))
    assert got == f"{sentence}: another seed, or more data, may turn the order around."


def test_the_same_seed_twice_is_one_seed(make_run: MakeRun) -> None:
    folders = [make_run(n, "gcn", [1.0, 2.0, 1.5], 2.0, config=FULL) for n in ("a", "b")]
    assert "One seed is no proof" in doubts(groups_of(*folders))[0]


def test_other_data(make_run: MakeRun) -> None:
    a = make_run("a", "gcn", [2.0, 1.0], 2.0)
    b = make_run("b", "gcn+fog", [2.0, 1.0], 2.0, config={"data.fraction": 0.2, "data.seed": 1})
    first, second = doubts(groups_of(a, b))
    assert first.startswith("The runs did not see the same data (see data.fraction and data.seed)")
    assert "10 % of the graphs" in second  # the least of them


def test_left_out(make_run: MakeRun) -> None:
    a = [make_run(f"a{s}", "gcn", [2.0, 1.0], 2.0, seed=s, config=FULL) for s in range(2)]
    b = make_run("b0", "gcn+fog", [2.0, 1.0], 2.0, seed=0, config=FULL)
    c = make_run("b1", "gcn+fog", [2.0, 1.0], seed=1, finished=False, config=FULL)
    assert doubts(groups_of(*a, b, c)) == [
        "Left out, because there is no test result yet: 1 of 2 runs of gcn+fog."
    ]


def test_short(make_run: MakeRun) -> None:
    a = make_run("a", "gcn", [1.0, 2.0], 2.0)
    b = make_run("b", "gcn+fog", [2.0, 1.0], 2.0)
    assert doubts(groups_of(a, b))[-1] == (
        "The last epoch was the best of gcn: longer training may help."
    )
