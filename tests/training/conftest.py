"""Generated graphs are made once for all tests of this folder."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOGNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
