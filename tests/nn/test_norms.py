"""The norm of distinct rows against the same norm of the batch with all repetitions."""

from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import BatchNorm1d, BatchNorm2d, InstanceNorm2d, Module, SyncBatchNorm
from torch_geometric.nn import BatchNorm

from fognn.nn.norms import Repeats, as_norm, can_fuse, repeated_norm, update_running_statistics


def repeated(x: Tensor, repeats: Repeats) -> Tensor:
    """The batch that the rows stand for."""
    return torch.cat(
        [
            block.repeat_interleave(count, 0)
            for block, count in zip(x.split(repeats.sizes), repeats.counts, strict=True)
        ]
    )


def summed(grad: Tensor, repeats: Repeats) -> Tensor:
    """The sums over the repetitions of each row."""
    sizes = [size * count for size, count in zip(*repeats, strict=True)]
    return torch.cat(
        [
            part.reshape(size, count, *part.shape[1:]).sum(1)
            for part, size, count in zip(grad.split(sizes), *repeats, strict=True)
        ]
    )


def check(norm: Module, x: Tensor, repeats: Repeats) -> None:
    whole_norm = deepcopy(norm)
    x.requires_grad_()
    whole = repeated(x.detach(), repeats).requires_grad_()
    out, expected = repeated_norm(norm, x, repeats), whole_norm(whole)
    torch.testing.assert_close(repeated(out, repeats), expected)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (out * summed(weight, repeats)).sum().backward()
    assert x.grad is not None
    assert whole.grad is not None
    torch.testing.assert_close(x.grad, summed(whole.grad, repeats))
    for one, other in zip(norm.parameters(), whole_norm.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    for one, other in zip(norm.buffers(), whole_norm.buffers(), strict=True):
        torch.testing.assert_close(one, other)


blocks = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=3)


@given(blocks, st.integers(1, 4), st.booleans(), st.sampled_from([0.1, 0.9, None]))
def test_rows_stand_for_their_repetitions(
    given_blocks: list[tuple[int, int]], channels: int, images: bool, momentum: float | None
) -> None:
    repeats = Repeats(*map(tuple, zip(*given_blocks, strict=True)))
    rows = sum(size * count for size, count in given_blocks)
    if rows < 2 and not images:
        return  # a single value for each channel has no variance
    shape = (channels, 2, 3) if images else (channels,)
    kind = BatchNorm2d if images else BatchNorm1d
    norm = kind(channels, momentum=momentum).double()
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    check(norm, torch.randn(sum(repeats.sizes), *shape, dtype=torch.float64), repeats)


def test_other_norms() -> None:
    repeats = Repeats((3, 2), (2, 5))
    check(BatchNorm(4).double(), torch.randn(5, 4, dtype=torch.float64), repeats)
    images = torch.randn(5, 4, 3, 3, dtype=torch.float64)
    # Any other norm is called with all repetitions.
    check(InstanceNorm2d(4).double(), images, repeats)


def test_evaluation_needs_no_repetitions() -> None:
    norm = BatchNorm1d(4)
    norm(torch.randn(9, 4))
    before = deepcopy(norm.eval().state_dict())
    x = torch.randn(5, 4)
    assert torch.equal(repeated_norm(norm, x, Repeats((3, 2), (2, 5))), norm(x))
    assert all(torch.equal(before[name], value) for name, value in norm.state_dict().items())


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("training", [True, False])
def test_does_what_the_norm_itself_does(momentum, rows: int, training: bool) -> None:
    torch.manual_seed(0)
    theirs = BatchNorm(3, momentum=momentum, allow_single_element=True).train(training)
    ours = deepcopy(theirs)
    for _ in range(3):
        q = torch.randn(rows, 3) + 1
        expected = theirs(q)
        norm = as_norm(ours, rows)
        mean = q.mean(0) if norm.mean is None else norm.mean
        var = q.var(0, unbiased=False) if norm.var is None else norm.var
        normed = (q - mean) / (var + norm.eps).sqrt() * norm.weight + norm.bias
        update_running_statistics(ours, mean, var, rows)
        torch.testing.assert_close(normed, expected)
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_a_norm_that_only_itself_can_compute() -> None:
    assert can_fuse(BatchNorm(3, allow_single_element=True))
    norm = BatchNorm(3, allow_single_element=True)
    norm.module = SyncBatchNorm(3)
    assert not can_fuse(norm)
