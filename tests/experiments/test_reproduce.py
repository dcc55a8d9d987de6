import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept_runs import kept_run, use_tiny_data
from tiny_runs import metrics

from fognn.experiments.ledger import kept_name, ledger_entry, ledger_of
from fognn.experiments.reproduce import Sweep, dry_run, reproduce
from fognn.experiments.search import choices_of
from fognn.experiments.tables import TableRun, plan
from fognn.experiments.workers import Workers
from fognn.training import Config, Result, Stopped, fit
from fognn.utils.files import sha256_of

Plan = Callable[..., list[TableRun]]


def keys(results: Path) -> list[str]:
    return [own.key for own in ledger_of("cluster", results).entries()]


def test_trained_then_skipped(
    tmp_path: Path, tiny_plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, results, planned = tmp_path / "runs", tmp_path / "results", tiny_plan(2)
    assert Sweep(len(planned), runs, results, {}).left(planned) == planned
    first = reproduce(planned, runs, results)
    assert first.trained == [run.key for run in planned] == keys(results)
    assert (first.skipped, first.failed) == ([], {})
    assert f"[2/2] {planned[1].key}: gcn on CLUSTER, seed 1: test" in capsys.readouterr().err
    for run, line in zip(planned, ledger_of("cluster", results).entries(), strict=True):
        assert line == ledger_entry(run.folder(runs), run)
    text = (results / "cluster.jsonl").read_text()
    second = reproduce(planned, runs, results)
    assert (second.trained, second.skipped) == ([], first.trained)
    # Whoever lost the ledger gets it back from the folders.
    (results / "cluster.jsonl").unlink()
    assert reproduce(planned, runs, results).skipped == first.trained
    assert (results / "cluster.jsonl").read_text() == text
    # A fresh clone skips what the ledger has, and resumes what has begun.
    elsewhere = tmp_path / "clone"
    assert dry_run(planned, elsewhere, results) == "# 2 runs, 0 of them to train"
    folder = planned[1].folder(elsewhere)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(planned[1].config.to_yaml())
    commands = dry_run(planned, elsewhere, results).splitlines()
    assert commands[0].startswith("fognn train cluster gcn --seed 1 --set ")
    assert commands[1:] == ["# 2 runs, 1 of them to train"]


def test_weights_of_finished_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    runs, results = tmp_path / "runs", tmp_path / "results"
    zinc, later = plan("zinc", ["gcn+fog"], [1, 2], ours=False)
    (lower,) = plan("zinc", ["gcn+fog"], 1, ours=False)
    (wide,) = plan("widths", ["gcn+fog-c158"], [1])
    kept_run(zinc.folder(runs), zinc)
    assert reproduce([zinc], runs, results, quiet=True).skipped == [zinc.key]
    (line,) = ledger_of("zinc", results).entries()
    file = tmp_path / "weights" / "zinc" / "gcn+fog.safetensors"
    assert (kept_name(line), line.weights) == ("zinc/gcn+fog", sha256_of(file))
    # The same again, another seed, and the same run in another table change nothing.
    kept_run(later.folder(runs), later)
    for folder in (tmp_path / "others", runs):
        reproduce([zinc, wide] + [later] * (folder == runs), folder, results, quiet=True)
        assert ledger_of("zinc", results).entries()[0] == line
        assert ledger_of("widths", results).entries()[0].weights is None
    assert ledger_of("zinc", results).entries()[1].weights is None
    # A lost file is written again.
    file.unlink()
    reproduce([zinc], runs, results, quiet=True)
    assert sha256_of(file) == line.weights
    # A lower seed takes its place.
    kept_run(lower.folder(runs), lower)
    reproduce([lower], runs, results, quiet=True)
    found = {own.seed: own.weights for own in ledger_of("zinc", results).entries()}
    assert found == {0: sha256_of(file), 1: None, 2: None}


def test_a_failure_is_tried_once_more_after_the_others(
    tmp_path: Path, tiny_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[int] = []

    def fails(config: Config, folder: Path, **options: Any) -> Result:
        order.append(config.seed)
        if (config.seed, order.count(config.seed)) == (0, 1) or config.seed == 1:
            raise RuntimeError("bad luck")
        return fit(config, folder, **options)

    monkeypatch.setattr("fognn.experiments.workers.fit", fails)
    first, second, third = (run.key for run in tiny_plan(3))
    summary = reproduce(tiny_plan(3), tmp_path, tmp_path, quiet=True)
    assert order == [0, 1, 2, 0, 1]
    assert summary.trained == [third, first]
    assert summary.failed == {second: "RuntimeError: bad luck"}
    assert f"failed twice: {second}: RuntimeError: bad luck" in str(summary)


def test_a_search_then_its_choice(tmp_path: Path, tiny_plan: Plan) -> None:
    tries = [(1e-3, 0.0), (1e-2, 0.0)]
    summary = reproduce(tiny_plan(2), tmp_path / "runs", tmp_path, quiet=True, settings=tries)
    (choice,) = summary.choices
    assert choices_of("cluster", tmp_path).entries() == [choice]
    lines = {own.key: own for own in ledger_of("cluster", tmp_path).entries()}
    assert len(lines) == 3, "two trials of the first seed, and the second seed"
    scores = {t.lr: lines[t.key].result["val"]["best"]["items"] for t in choice.tried}
    assert choice.lr == max(scores, key=lambda rate: scores[rate])
    assert {own.run.training.lr for own in lines.values() if own.seed == 1} == {choice.lr}


@pytest.mark.parametrize("workers", ["many", 1.5, 0])
def test_workers_are_a_number_or_auto(tmp_path: Path, tiny_plan: Plan, workers: Any) -> None:
    with pytest.raises(ValueError, match="workers must be a positive int"):
        reproduce(tiny_plan(1), tmp_path, tmp_path, workers=workers)


def test_what_is_wrong_is_found_before_anything_is_trained(tmp_path: Path, tiny_plan: Plan) -> None:
    one, two = tiny_plan(2)
    two.folder(tmp_path).mkdir(parents=True)
    (two.folder(tmp_path) / "config.yaml").write_text(one.config.to_yaml())
    with pytest.raises(ValueError, match="another run"):
        reproduce([one, two], tmp_path, tmp_path)
    assert not one.folder(tmp_path).exists()


def when_begun(run: TableRun, runs: Path, act: Callable[[], None]) -> threading.Thread:
    """Acts as soon as a run has finished an epoch."""

    def watch() -> None:
        deadline = time.monotonic() + 120
        while not (run.folder(runs) / "last.ckpt").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def alone(run: TableRun, folder: Path) -> list[dict[str, str]]:
    fit(run.config.with_values({"machine.threads": 1}), folder, quiet=True)
    return metrics(folder)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_saves_and_the_same_call_resumes(
    tmp_path: Path, tiny_plan: Plan, workers: int
) -> None:
    planned, runs = tiny_plan(2, 100), tmp_path / "runs"
    thread = when_begun(planned[0], runs, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped, match=r"of 2 runs are finished.*to resume: fognn again"):
        reproduce(planned, runs, tmp_path, workers, quiet=True, command="fognn again")
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not (planned[0].folder(runs) / "result.json").exists()
    done = reproduce(planned, runs, tmp_path, workers, quiet=True)
    assert len(done.trained) + len(done.skipped) == 2
    assert "resumes after epoch" in (planned[0].folder(runs) / "log.txt").read_text()
    assert metrics(planned[0].folder(runs)) == alone(planned[0], tmp_path / "alone")


def test_a_killed_worker_is_reported_and_its_run_resumed(
    tmp_path: Path, tiny_plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the workers stay alive from one call to the next."""
    first, *others = tiny_plan(1, 100) + tiny_plan(3, 2)
    runs = tmp_path / "runs"
    where = {"workers": 2, "ray": None, "shared": False}
    with Sweep(1 + len(others), runs, tmp_path, where) as sweep:
        pids: list[int] = []

        def workers() -> list[int]:
            assert isinstance(sweep.pool, Workers)
            return [pid.result() for pid in sweep.pool.pids.values()]

        def kill() -> None:
            pids.extend(workers())
            os.kill(pids[0], signal.SIGKILL)

        thread = when_begun(first, runs, kill)
        assert sweep.train([first]).trained == [first.key]
        thread.join()
        before = workers()
        assert sorted(sweep.train(others).trained) == sorted(run.key for run in others)
        after = workers()
    assert pids[0] not in before
    assert set(before) <= set(after)
    assert f"{first.key} failed, will be tried again: its worker process was killed" in (
        errors := capsys.readouterr().err
    )
    assert f"[{1 + len(others)}/{1 + len(others)}]" in errors
    assert metrics(first.folder(runs)) == alone(first, tmp_path / "alone")
    assert json.loads((others[0].folder(runs) / "result.json").read_text())["threads"] == 1
