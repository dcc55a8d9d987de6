import inspect

import pytest

from fognn.experiments.local import LocalPool
from fognn.experiments.pool import Pool
from fognn.experiments.ray_cluster import RayPool

MEMBERS = [name for name in vars(Pool) if not name.startswith("_")]


@pytest.mark.parametrize("kind", [LocalPool, RayPool])
def test_every_pool_has_all_that_a_sweep_needs(kind: type) -> None:
    assert set(MEMBERS) == {"free", "start", "running", "wait", "stop", "close"}
    for name in MEMBERS:
        wanted, own = vars(Pool)[name], vars(kind)[name]
        assert type(own) is type(wanted)
        if inspect.isfunction(wanted):
            assert list(inspect.signature(own).parameters) == list(
                inspect.signature(wanted).parameters
            )
