import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import tiny

from fognn.training import Config, TrainingError
from fognn.training.run_folder import RunFolder, check_folder, read_metrics


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def run(tmp_path: Path) -> Any:
    with RunFolder(tmp_path / "a" / "run", tiny()) as folder:
        yield folder


def test_a_new_folder(run: RunFolder) -> None:
    assert listed(run.path) == [".lock", "config.yaml"]
    assert Config.read(run.config_file) == tiny()


HOLD = """
import sys
from filelock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire(timeout=0)
print("held", flush=True)
sys.stdin.read()
"""


def test_held_by_another_process(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run", tiny()).lock.release()
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run" / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        (tmp_path / "run" / ".tmp-1-last.ckpt").write_text("the other one writes this just now")
        with pytest.raises(TrainingError, match="run is in use: another process trains in it"):
            RunFolder(tmp_path / "run", tiny())
        assert (tmp_path / "run" / ".tmp-1-last.ckpt").exists()
    finally:
        other.kill()
        other.communicate(timeout=30)
    # A process that was killed holds nothing.
    RunFolder(tmp_path / "run", tiny()).lock.release()


@pytest.mark.parametrize("name", ["thesis.tex", "last.ckpt", ".hidden"])
def test_a_foreign_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(
        ValueError, match=rf"folder must be .*, got '.*', which has '{name}' and no config\.yaml"
    ):
        RunFolder(tmp_path, tiny())
    assert listed(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_another_configuration(run: RunFolder) -> None:
    before = run.config_file.read_bytes()
    other = tiny(seed=1, training__lr=0.5)
    with pytest.raises(
        ValueError,
        match=r"run' holds another run \(training\.lr: 0\.001 and 0\.5; seed: 0 and 1, in",
    ):
        check_folder(run.path, other)
    assert run.config_file.read_bytes() == before


def test_leftovers_of_a_kill(tmp_path: Path) -> None:
    """Killed before its first file was whole, and again while it wrote a checkpoint."""
    (tmp_path / ".lock").write_text("")
    (tmp_path / ".tmp-123-config.yaml").write_text("dat")
    RunFolder(tmp_path, tiny()).lock.release()
    assert listed(tmp_path) == [".lock", "config.yaml"]
    (tmp_path / ".tmp-456-last.ckpt").write_bytes(b"PK")
    (tmp_path / "last.ckpt").write_bytes(b"whole")
    RunFolder(tmp_path, tiny()).lock.release()
    assert listed(tmp_path) == [".lock", "config.yaml", "last.ckpt"]


NUMBERS = st.floats(allow_nan=False)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_metrics_roundtrip(tmp_path_factory: pytest.TempPathFactory, values: Any) -> None:
    rows = [{"epoch": n, "lr": a, "val_loss": b} for n, (a, b) in enumerate(values, 1)]
    with RunFolder(tmp_path_factory.mktemp("run"), tiny()) as run:
        run.write_metrics(rows)
    found = read_metrics(run.path)
    assert found == rows, "each bit of each number"
    assert all(type(row["epoch"]) is int for row in found)
