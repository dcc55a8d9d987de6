"""What every test may ask for."""

import os
import sys
import warnings
from pathlib import Path

import pytest
from command_line import Done, Run
from hypothesis import settings

# A machine that others use too is slow at times: no test fails for being late.
settings.register_profile("fognn", deadline=None)
settings.load_profile("fognn")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data that ``FOGNN_DATA`` names; without it the test is skipped.

    CI has the data, so there a missing folder is a failure and not a skip.
    """
    folder = os.environ.get("FOGNN_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = f"needs real data: FOGNN_DATA must name a folder, got {folder!r}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process: ``run("train", "zinc", "gcn")``. A process of its own takes
    seconds to load torch."""
    from fognn.cli import main

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main replaces it

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["fognn", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code or 0, *capfd.readouterr())

    return call
