import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from fognn.training import environment as module
from fognn.training.environment import (
    commit,
    device_of,
    peak_memory,
)


def test_auto_is_the_fastest_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for cuda, expected in ((True, "cuda"), (False, "mps")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: cuda)
        assert (device_of("auto"), device_of("cpu")) == (expected, "cpu")
    with pytest.raises(ValueError, match=r"device .* got 'cuda'"):
        device_of("cuda")


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository that environment.py seems to lie in."""
    file = tmp_path / "fognn" / "training" / "environment.py"
    file.parent.mkdir(parents=True)
    shutil.copy(module.__file__, file)
    monkeypatch.setattr(module, "__file__", str(file))
    return tmp_path


def test_commit(clone: Path) -> None:
    assert commit() is None, "there is no clone yet"
    git(clone, "init", "-q")
    assert commit() is None, "there is no commit yet"
    (clone / "results").mkdir()
    ledger = clone / "results" / "zinc.jsonl"
    ledger.write_text("{}")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "first")
    head = git(clone, "rev-parse", "HEAD")
    assert commit() == head
    ledger.write_text("a run of this clone adds a line, which changes no code")
    assert commit() == head
    (clone / "new.txt").write_text("a file that git does not know changes no code")
    assert commit() == head
    (clone / "fognn" / "training" / "environment.py").write_text("changed")
    assert commit() == f"{head} with changes"


def test_the_peak_memory_is_that_of_this_process() -> None:
    before = peak_memory("cpu")
    assert before > 20 * 2**20
    size = before + 64 * 2**20
    block = bytearray(b"x") * size  # touched, so that it is resident
    assert peak_memory("cpu") >= len(block)
    del block
    assert peak_memory("cpu") >= size, "it does not fall"
