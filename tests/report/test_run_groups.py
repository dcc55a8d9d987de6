from collections.abc import Callable
from pathlib import Path
from typing import Any

from fognn.report.run_folder import Run, read_run
from fognn.report.run_groups import differing, group_runs, settings

MakeRun = Callable[..., Path]


def run_of(make_run: MakeRun, name: str, model: str = "gcn", seed: int = 0, **config: Any) -> Run:
    dotted = {key.replace("_", ".", 1): value for key, value in config.items()}
    return read_run(make_run(name, model, [1.0], 2.0, seed=seed, config=dotted))


def test_settings(make_run: MakeRun) -> None:
    run = run_of(make_run, "a", model_heads=[8, 1], training_decay=None, model_fog={"h1": 12})
    got = settings(run)
    assert got["model.heads"] == "[8, 1]"
    assert got["training.decay"] == "null"
    assert got["model.fog.h1"] == "12"
    assert got["data.name"] == "CLUSTER"
    assert got["training.lr"] == "0.01"


def test_differing() -> None:
    got = differing([{"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}])
    assert got == {"b": ["2", "3"], "c": ["–", "4"]}
    assert differing([{"a": "1"}, {"a": "1"}]) == {}


def test_seeds_and_machines_go_together(make_run: MakeRun) -> None:
    runs = [
        run_of(make_run, "a"),
        run_of(make_run, "b", "gcn+fog"),
        run_of(make_run, "c", seed=1, machine={"device": "cuda"}, data_folder="/elsewhere"),
    ]
    groups = group_runs(runs)
    assert [(g.label, [r.folder.name for r in g.runs]) for g in groups] == [
        ("gcn", ["a", "c"]),
        ("gcn+fog", ["b"]),
    ]
    assert groups[0].tests("best", "items") == [2.0, 2.0]


def test_a_label_says_what_differs(make_run: MakeRun) -> None:
    runs = [
        run_of(make_run, "a"),
        run_of(make_run, "b", training_lr=0.1),
        run_of(make_run, "c", "gin", training_lr=0.5),
    ]
    labels = [group.label for group in group_runs(runs)]
    assert labels == ["gcn (training.lr 0.01)", "gcn (training.lr 0.1)", "gin"]
    # The seed of a run is not its data's.
    runs = [run_of(make_run, "d"), run_of(make_run, "e", seed=2, data_seed=5)]
    assert [g.label for g in group_runs(runs)] == ["gcn (data.seed –)", "gcn (data.seed 5)"]


def test_much_that_differs_makes_no_label(make_run: MakeRun) -> None:
    more = {"training_lr": 0.1, "training_batch_size": 1, "training_epochs": 1}
    runs = [run_of(make_run, "a"), run_of(make_run, "b", **more)]
    assert [g.label for g in group_runs(runs)] == [f"gcn ({run.folder})" for run in runs]
