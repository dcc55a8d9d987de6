"""What every test may ask for."""

import os
from pathlib import Path

import pytest
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
