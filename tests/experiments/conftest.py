"""Runs of a second."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fognn.experiments.tables import TableRun, plan


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Generated graphs are made once for all tests of this folder, and their processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOGNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def tiny_plan() -> Callable[..., list[TableRun]]:
    """Runs of GCN on 8 graphs of CLUSTER, two batches an epoch; ``training__lr=1`` sets a value."""

    def make(seeds: int = 2, epochs: int = 2, **values: Any) -> list[TableRun]:
        usual = {"training.batch_size": 4, "training.schedule": "none", "model.channels": 16}
        changes = usual | {name.replace("__", "."): value for name, value in values.items()}
        return plan("cluster", ["gcn"], seeds, 0.0008, epochs, ours=False, values=changes)

    return make
