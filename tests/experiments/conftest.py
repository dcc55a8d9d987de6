"""Runs of a second, and a pool that trains them in this process."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fognn.experiments.pool import Job, Outcome
from fognn.experiments.reproduce import reproduce
from fognn.experiments.tables import TableRun, plan
from fognn.training import Config, Stopped, fit


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
        return plan(
            "cluster", ["gcn"], seeds, fraction=0.0008, epochs=epochs, ours=False, values=changes
        )

    return make


@pytest.fixture
def tiny_config(tiny_plan: Callable[..., list[TableRun]]) -> Callable[..., Config]:
    """The configuration of the first run of :func:`tiny_plan`."""

    def make(**values: Any) -> Config:
        return tiny_plan(1, **values)[0].config

    return make


@pytest.fixture
def tiny_job(tiny_plan: Callable[..., list[TableRun]]) -> Callable[..., Job]:
    """The first run of :func:`tiny_plan` as a job."""

    def make(runs: Any, **values: Any) -> Job:
        run = tiny_plan(1, **values)[0]
        return Job(run.key, run.config, run.folder(runs))

    return make


class PoolHere:
    """Trains in this process, one run at a time. ``before`` is called with each job first."""

    def __init__(self, before: Callable[[Job], None]) -> None:
        self.before = before
        self.job: Job | None = None
        self.closed = False

    @property
    def free(self) -> bool:
        return self.job is None

    def start(self, job: Job) -> None:
        self.job = job

    def running(self) -> list[Job]:
        return [] if self.job is None else [self.job]

    def wait(self, seconds: float) -> list[Outcome]:
        assert self.job is not None
        job, self.job = self.job, None
        log = job.folder.with_name(f"{job.folder.name}.log")
        try:
            self.before(job)
            fit(job.config, job.folder, quiet=True)
        except (RuntimeError, Stopped) as error:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(f"{error}\n")
            return [Outcome(job, str(error), log)]
        return [Outcome(job)]

    def stop(self) -> list[Outcome]:
        return []

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def pool_here(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[PoolHere]]:
    """Lets reproduce() train in this process; gives the list of the pools that it makes."""

    def use(before: Callable[[Job], None] = lambda job: None) -> list[PoolHere]:
        pools: list[PoolHere] = []

        def make(workers: int) -> PoolHere:
            pools.append(PoolHere(before))
            return pools[-1]

        # By name, fognn.experiments.reproduce is the function.
        monkeypatch.setattr(sys.modules[reproduce.__module__], "LocalPool", make)
        return pools

    return use
