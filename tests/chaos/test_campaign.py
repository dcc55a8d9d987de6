"""A few trials of the campaign in the default suite: broken files at each entry point, a full disk,
several writers of a ledger."""

import random
from pathlib import Path
from typing import Any

import pytest

from chaos import trials


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOGNN_CACHE", str(folder / "cache"))
        trials.prepare(folder)
    return folder


def test_writers(tmp_path: Path) -> None:
    assert trials.writers(tmp_path, tmp_path, random.Random(0)) == "same"


@pytest.mark.slow
@pytest.mark.parametrize("part", [trials.kills, trials.disks, trials.sweeps, trials.files])
def test_a_trial(whole: Path, tmp_path: Path, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGNN_CACHE", str(whole / "cache"))
    assert part(whole, tmp_path, random.Random(0)) in ("same", "line")
