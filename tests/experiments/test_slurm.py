import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fognn.experiments.slurm import export_slurm
from fognn.experiments.tables import Planned
from fognn.training import Config, Result

Plan = Callable[..., list[Planned]]


def written(tmp_path: Path, planned: list[Planned], **options: object) -> Path:
    # A space, and what a shell would like to read otherwise.
    path = tmp_path / "a job's $folder"
    command = "echo fognn reproduce cluster"
    submit = export_slurm(planned, path, tmp_path / "runs", command=command, **options)
    assert submit == path / "submit.sh"
    return path


def environment(tmp_path: Path, **programs: str) -> dict[str, str]:
    """This one, with programs of SLURM that are not here."""
    for name, text in programs.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}


def test_the_scripts_are_bash(tmp_path: Path, tiny_plan: Plan) -> None:
    planned = tiny_plan(3)
    path = written(
        tmp_path, planned, parallel=2, cpus=4, time="1-00:00:00", options=["--mem=4G", "-p long"]
    )
    for name in ("array", "ledger", "submit"):
        subprocess.run(["bash", "-n", str(path / f"{name}.sh")], check=True)
        assert os.access(path / f"{name}.sh", os.X_OK)
    directives = [
        line.removeprefix("#SBATCH ")
        for line in (path / "array.sh").read_text().split("\n")
        if line.startswith("#SBATCH")
    ]
    assert {
        "--array=0-2%2", "--cpus-per-task=4", "--time=1-00:00:00", "--requeue", "--mem=4G",
        "-p long",
    } <= set(directives)  # fmt: skip
    lines = (path / "runs.tsv").read_text().splitlines()
    for line, run in zip(lines, planned, strict=True):
        config, folder = line.split("\t")
        assert Config.read(Path(config)).identity() == run.config.identity()
        assert Config.read(Path(config)).machine.threads == 4
        assert Path(folder) == run.folder(tmp_path / "runs")
    assert (path / "logs").is_dir()


def test_the_array_and_then_the_ledger(tmp_path: Path, tiny_plan: Plan) -> None:
    path = written(tmp_path, tiny_plan(1))
    calls = tmp_path / "calls"
    fake = f'printf "%s|" "$@" >> {calls}; echo >> {calls}; echo "71;cluster"'
    done = subprocess.run(
        [path / "submit.sh"],
        env=environment(tmp_path, sbatch=fake),
        capture_output=True,
        text=True,
        check=True,
    )
    assert calls.read_text().splitlines() == [
        f"--parsable|{path}/array.sh|",
        f"--dependency=afterany:71|{path}/ledger.sh|",
    ]
    assert "squeue --job 71" in done.stdout
    ledger = subprocess.run([path / "ledger.sh"], capture_output=True, text=True, check=True)
    assert ledger.stdout == "fognn reproduce cluster\n"


def test_task_0_by_hand(tmp_path: Path, tiny_plan: Plan) -> None:
    planned = tiny_plan(2)
    path = written(tmp_path, planned)
    done = subprocess.run(
        [path / "array.sh"],
        env=os.environ | {"SLURM_ARRAY_TASK_ID": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    result = Result.read(planned[0].folder(tmp_path / "runs"))
    assert (result.seed, result.threads, result.epochs) == (0, 1, 2)
    assert not planned[1].folder(tmp_path / "runs").exists()


def test_a_task_that_there_is_not(tmp_path: Path, tiny_plan: Plan) -> None:
    path = written(tmp_path, tiny_plan(2))
    done = subprocess.run(
        [path / "array.sh"],
        env=os.environ | {"SLURM_ARRAY_TASK_ID": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "no line 3 in" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "again"), [(signal.SIGUSR1, True), (signal.SIGTERM, False)])
def test_time_is_over(tmp_path: Path, tiny_plan: Plan, number: signal.Signals, again: bool) -> None:
    (run,) = tiny_plan(1, 100_000)
    path = written(tmp_path, [run])
    folder, calls = run.folder(tmp_path / "runs"), tmp_path / "calls"
    task = subprocess.Popen(
        [path / "array.sh"],
        env=environment(tmp_path, scontrol=f'echo "$@" >> {calls}')
        | {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_JOB_ID": "71"},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 90
    while not (folder / "metrics.csv").exists():
        assert time.monotonic() < deadline
        assert task.poll() is None
        time.sleep(0.05)
    task.send_signal(number)
    _, errors = task.communicate(timeout=60)
    assert task.returncode == 130
    assert "stopped in epoch" in errors
    assert (calls.read_text() if calls.exists() else "") == "requeue 71_0\n" * again


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parallel": 0}, "parallel must be a positive int, got 0"),
        ({"cpus": -1}, "cpus must be a positive int, got -1"),
        ({"options": ["mem=4G"]}, "options must be of sbatch, .*, got 'mem=4G'"),
        ({"options": ["--mem=4G\nrm"]}, "options must be of sbatch"),
    ],
)
def test_bad_input(
    tmp_path: Path, tiny_plan: Plan, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        written(tmp_path, tiny_plan(1), **options)
    assert list(tmp_path.iterdir()) == []


def test_no_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="planned must have at least one run"):
        written(tmp_path, [])
