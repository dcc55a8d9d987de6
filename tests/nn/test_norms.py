import copy

import pytest
import torch
from torch_geometric.nn import BatchNorm

from fognn.nn.norms import is_torchs, norm_now, track
from fognn.ops.norm import plain_norm
from fognn.training.sync_norm import synchronise


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("training", [True, False])
def test_does_what_the_norm_itself_does(momentum, rows: int, training: bool) -> None:
    torch.manual_seed(0)
    theirs = BatchNorm(3, momentum=momentum, allow_single_element=True).train(training)
    ours = copy.deepcopy(theirs)
    for _ in range(3):
        q = torch.randn(rows, 3) + 1
        expected = theirs(q)
        out, mean, var = plain_norm(q, norm_now(ours, rows))
        track(ours, mean, var, rows)
        torch.testing.assert_close(out, expected)
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_a_norm_that_only_itself_can_compute() -> None:
    assert is_torchs(BatchNorm(3, allow_single_element=True))
    assert not is_torchs(synchronise(BatchNorm(3, allow_single_element=True)))
    assert not is_torchs(BatchNorm(3))  # raises for a single row
    assert not is_torchs(BatchNorm(3, affine=False, allow_single_element=True))
    norm = BatchNorm(3, allow_single_element=True)
    norm.module = torch.nn.BatchNorm1d(3, track_running_stats=False)
    assert not is_torchs(norm)
