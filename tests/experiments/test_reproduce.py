import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fognn.experiments.estimate import estimate
from fognn.experiments.local import log_of
from fognn.experiments.pace import Pace, Workers
from kept_runs import kept_run, use_tiny_data
from ledger_entries import entry
from tiny_own_rows import small_plan, use_small_rows
from tiny_runs import metrics

from fognn.experiments.ledger import Ledger, ledger_entry
from fognn.experiments.pool import Job
from fognn.experiments.reproduce import collect, reproduce, unfinished
from fognn.experiments.tables import TableRun, plan
from fognn.training import Stopped, TrainingError, fit
from fognn.utils.errors import FileError
from fognn.utils.files import sha256_of

Plan = Callable[..., list[TableRun]]
Pools = Callable[..., list[Any]]


def keys(results: Path) -> list[str]:
    return [entry.key for entry in Ledger(results / "cluster.jsonl").entries()]


def test_trained_then_skipped(
    tmp_path: Path, tiny_plan: Plan, pool_here: Pools, capsys: pytest.CaptureFixture[str]
) -> None:
    pools = pool_here()
    runs, results = tmp_path / "runs", tmp_path / "results"
    planned = tiny_plan(2)
    first = reproduce(planned, runs, results)
    assert first.trained == tuple(run.key for run in planned) == tuple(keys(results))
    assert (first.skipped, first.failed) == ((), ())
    assert pools[0].closed
    assert f"[2/2] {planned[1].key}: gcn on CLUSTER, seed 1: test" in capsys.readouterr().err
    for run, line in zip(planned, Ledger(results / "cluster.jsonl").entries(), strict=True):
        assert line == ledger_entry(run, run.folder(runs))

    text = (results / "cluster.jsonl").read_text()
    second = reproduce(planned, runs, results)
    assert second.trained == ()
    assert second.skipped == first.trained
    assert (results / "cluster.jsonl").read_text() == text
    assert len(pools) == 1, "nothing to train, no pool"

    # Whoever lost the ledger gets it back from the folders.
    (results / "cluster.jsonl").unlink()
    todo, done = collect(planned, runs, results)
    assert (todo, done) == ([], list(first.trained))
    assert (results / "cluster.jsonl").read_text() == text


def test_half_done_runs_come_first(tmp_path: Path, tiny_plan: Plan) -> None:
    one, two, three = tiny_plan(3)
    two.folder(tmp_path).mkdir(parents=True)
    todo, done = collect([one, two, three], tmp_path, tmp_path)
    assert todo == [two, one, three]
    assert done == []


def test_a_fresh_clone_skips_what_the_ledger_has(
    tmp_path: Path, tiny_plan: Plan, pool_here: Pools
) -> None:
    pools = pool_here()
    runs, results, planned = tmp_path / "runs", tmp_path / "results", tiny_plan(2)
    reproduce(planned[:1], runs, results, quiet=True)
    line = (results / "cluster.jsonl").read_text()
    elsewhere = tmp_path / "clone" / "runs"
    assert unfinished(planned, elsewhere, results) == [planned[1]]
    summary = reproduce(planned, elsewhere, results, quiet=True)
    assert (summary.skipped, summary.trained) == ((planned[0].key,), (planned[1].key,))
    assert not planned[0].folder(elsewhere).exists()
    assert (results / "cluster.jsonl").read_text().startswith(line), "the line is as it was"
    # A folder that was begun is resumed all the same.
    folder = planned[0].folder(elsewhere)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(planned[0].config.to_yaml())
    assert unfinished(planned, elsewhere, results) == [planned[0]]
    assert len(pools) == 2


def test_again_trains_anew_and_keeps_what_was_there(
    tmp_path: Path, tiny_plan: Plan, pool_here: Pools
) -> None:
    pool_here()
    planned = tiny_plan(1)
    folder = planned[0].folder(tmp_path / "runs")
    reproduce(planned, tmp_path / "runs", tmp_path, quiet=True)
    first = (folder / "result.json").read_text()
    assert reproduce(planned, tmp_path / "runs", tmp_path, quiet=True).trained == ()
    for number in (1, 2):
        summary = reproduce(planned, tmp_path / "runs", tmp_path, quiet=True, again=True)
        assert summary.trained == (planned[0].key,)
        assert (folder.with_name(f"{folder.name}-before-{number}") / "result.json").exists()
    assert (folder.with_name(f"{folder.name}-before-1") / "result.json").read_text() == first
    assert keys(tmp_path) == [planned[0].key], "one line"
    # Without run folders, as in a fresh clone.
    summary = reproduce(planned, tmp_path / "others", tmp_path, quiet=True, again=True)
    assert summary.trained == (planned[0].key,)


def test_a_run_of_two_tables_is_trained_once(tmp_path: Path) -> None:
    (zinc,), (wide,) = plan("zinc", ["gcn+fog"]), plan("widths", ["gcn+fog-c158"])
    assert zinc.config == wide.config
    own = entry(zinc, 0.3)
    Ledger(tmp_path / "zinc.jsonl").add(own)
    assert unfinished([wide], tmp_path / "runs", tmp_path) == []
    assert reproduce([wide], tmp_path / "runs", tmp_path, quiet=True).skipped == (wide.key,)
    (copied,) = Ledger(tmp_path / "widths.jsonl").entries()
    assert (copied.key, copied.row, copied.label) == (wide.key, wide.row, wide.label)
    assert (copied.result, copied.curve) == (own.result, own.curve)


def test_weights_of_finished_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    runs, results = tmp_path / "runs", tmp_path / "results"
    (zinc,), (wide,) = plan("zinc", ["gcn+fog"], ours=False), plan("widths", ["gcn+fog-c158"])
    kept_run(zinc.folder(runs), zinc)
    assert reproduce([zinc], runs, results, quiet=True).skipped == (zinc.key,)
    (line,) = Ledger(results / "zinc.jsonl").entries()
    assert line.weights == sha256_of(tmp_path / "weights" / "zinc" / "gcn+fog.safetensors")
    text = (results / "zinc.jsonl").read_text()
    reproduce([zinc], runs, results, quiet=True)
    # With the folder or without, the line is as it was, and its copy in the other table has no
    # weights.
    for folder in (tmp_path / "others", runs):
        reproduce([zinc, wide], folder, results, quiet=True)
        assert (results / "zinc.jsonl").read_text() == text
        assert Ledger(results / "widths.jsonl").entries()[0].weights is None
    # Another row of that table keeps its own.
    (narrow,) = plan("widths", ["gcn+fog-c76"])
    kept_run(narrow.folder(runs), narrow)
    reproduce([narrow], runs, results, quiet=True, weights=tmp_path / "mine")
    line = Ledger(results / "widths.jsonl").entries()[-1]
    assert line.weights == sha256_of(tmp_path / "mine" / "widths" / "gcn+fog-c76.safetensors")


def test_a_failure_is_tried_once_more_after_the_others(
    tmp_path: Path, tiny_plan: Plan, pool_here: Pools
) -> None:
    order: list[str] = []
    planned = tiny_plan(3)

    def before(job: Job) -> None:
        order.append(job.key)
        if job.key == planned[0].key and order.count(job.key) == 1:
            raise TrainingError("bad luck")
        if job.key == planned[1].key:
            raise TrainingError("never")

    pool_here(before)
    first, second, third = (run.key for run in planned)
    summary = reproduce(planned, tmp_path, tmp_path, quiet=True)
    assert order == [first, second, third, first, second]
    assert summary.trained == (third, first)
    (failed,) = summary.failed
    assert (failed.job.key, failed.reason) == (second, "never")
    assert f"failed twice: {second}: never" in str(summary)
    assert str(failed.log) in str(summary)
    assert sorted(keys(tmp_path)) == sorted([third, first])


def test_ctrl_c_and_on(tmp_path: Path, tiny_plan: Plan, pool_here: Pools) -> None:
    planned = tiny_plan(3)
    handler = signal.getsignal(signal.SIGINT)

    def before(job: Job) -> None:
        if job.key == planned[1].key:
            os.kill(os.getpid(), signal.SIGINT)

    pools = pool_here(before)
    with pytest.raises(Stopped, match=r"2 of 3 runs are finished.*to resume: fognn again") as stop:
        reproduce(planned, tmp_path, tmp_path, quiet=True, command="fognn again")
    assert str(tmp_path) in str(stop.value)
    assert pools[0].closed
    assert signal.getsignal(signal.SIGINT) is handler
    # Here a run cannot be stopped: the second was finished, and is counted.
    assert keys(tmp_path) == [planned[0].key, planned[1].key]
    pool_here()
    summary = reproduce(planned, tmp_path, tmp_path, quiet=True)
    assert summary.skipped == (planned[0].key, planned[1].key)
    assert summary.trained == (planned[2].key,)


def test_auto_takes_the_fastest(
    tmp_path: Path,
    tiny_plan: Plan,
    pool_here: Pools,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [Workers(2, 24.0), Workers(1, 15.0)]
    module = sys.modules[reproduce.__module__]
    monkeypatch.setattr(module, "fastest_workers", lambda config, runs: found[:runs])
    pool_here()
    reproduce(tiny_plan(2), tmp_path, tmp_path, workers="auto")
    text = capsys.readouterr().err
    assert "2 at a time: 24.0 steps/s (taken); 1 at a time: 15.0 steps/s" in text


@pytest.mark.parametrize("workers", ["many", 1.5, True, 0])
def test_workers_are_a_number_or_auto(tmp_path: Path, tiny_plan: Plan, workers: Any) -> None:
    with pytest.raises(ValueError, match="workers must be a positive int"):
        reproduce(tiny_plan(1), tmp_path, tmp_path, workers=workers)


def test_what_is_wrong_is_found_before_anything_is_trained(
    tmp_path: Path, tiny_plan: Plan, pool_here: Pools
) -> None:
    pools = pool_here()
    one, two = tiny_plan(2)
    with pytest.raises(ValueError, match="each run once, got cluster/gcn-seed0"):
        reproduce([one, two, one], tmp_path, tmp_path)
    two.folder(tmp_path).mkdir(parents=True)
    (two.folder(tmp_path) / "config.yaml").write_text(one.config.to_yaml())
    with pytest.raises(ValueError, match="holds another run"):
        reproduce([one, two], tmp_path, tmp_path)
    assert not pools


def test_a_damaged_line_is_kept_and_its_run_trained(
    tmp_path: Path, tiny_plan: Plan, pool_here: Pools
) -> None:
    pool_here()
    (run,) = tiny_plan(1)
    (tmp_path / "cluster.jsonl").write_text("damaged\n")
    with pytest.warns(UserWarning, match=r"cluster.jsonl, line 1: must be"):
        summary = reproduce([run], tmp_path / "runs", tmp_path)
    assert summary.trained == (run.key,)
    damaged, line, end = (tmp_path / "cluster.jsonl").read_text().split("\n")
    assert (damaged, json.loads(line)["key"], end) == ("damaged", run.key, "")


def test_logs_of_a_sweep_that_was_killed(tmp_path: Path, tiny_plan: Plan, pool_here: Pools) -> None:
    pool_here()
    done, other = tiny_plan(2)
    fit(done.config, done.folder(tmp_path), quiet=True)
    for run in (done, other):
        log_of(run.folder(tmp_path)).parent.mkdir(parents=True, exist_ok=True)
        log_of(run.folder(tmp_path)).write_text("stopped in epoch 1\n")
    summary = reproduce([done], tmp_path, tmp_path)
    assert summary.skipped == (done.key,)
    assert not log_of(done.folder(tmp_path)).exists()
    assert log_of(other.folder(tmp_path)).exists(), "it is not of this sweep"


@pytest.mark.slow
def test_with_real_processes(
    tmp_path: Path, tiny_plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = tiny_plan(3) + tiny_plan(1, 50, training__lr=1e30)
    summary = reproduce(planned, tmp_path / "runs", tmp_path, workers="auto")
    assert sorted(summary.trained) == sorted(run.key for run in planned[:3])
    (failed,) = summary.failed
    assert failed.reason.startswith("TrainingError: the ")
    assert "(taken)" in capsys.readouterr().err
    alone = fit(
        planned[0].config.with_values({"machine.threads": 1}), tmp_path / "alone", quiet=True
    )
    (own,) = [e for e in Ledger(tmp_path / "cluster.jsonl").entries() if e.key == planned[0].key]
    if own.result["threads"] == 1:
        assert metrics(planned[0].folder(tmp_path / "runs")) == metrics(alone.folder)


def test_missing_images_are_one_line_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FOGNN_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    with pytest.raises(FileError, match=r"miniImageNet is neither .* put miniimagenet/.*/data"):
        reproduce(plan("few-shot"), tmp_path / "runs", tmp_path / "results")
    with pytest.raises(FileError, match=r"put it at .*cifar_fs_100\.npz"):
        reproduce(plan("cifar-fs"), tmp_path / "runs", tmp_path / "results")
    assert not list(tmp_path.rglob("*.log"))


def test_a_table_of_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool_here: Pools
) -> None:
    use_small_rows(monkeypatch)
    pool_here()
    planned = small_plan(tmp_path / "data", ["gnn-1shot"], seeds=2)
    results = tmp_path / "results"
    guessed = estimate(planned, tmp_path, results, measured=lambda c: [Pace(1.0, 0.5, 2, 4)])
    assert [guess.epochs for guess in guessed.guesses] == [3, 3]
    summary = reproduce(planned, tmp_path, results, quiet=True)
    assert summary.trained == ("cifar-fs/gnn-1shot-seed0", "cifar-fs/gnn-1shot-seed1")
    assert (tmp_path / "weights" / "cifar-fs" / "gnn-1shot.safetensors").is_file()
    assert len(Ledger(results / "cifar-fs.jsonl").entries()) == 2
    again = reproduce(planned, tmp_path, results, quiet=True)
    assert (again.trained, len(again.skipped)) == ((), 2)
