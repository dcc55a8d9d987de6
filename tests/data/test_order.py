import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DistributedSampler

from fognn.data.loaders import EpochLoader
from fognn.data.pack import random_order


class Permuted(DistributedSampler):
    """Torch's own rule of sharing an epoch, told which permutation to share."""

    def __init__(self, order: list[int], **kwargs) -> None:
        super().__init__(range(len(order)), shuffle=False, **kwargs)
        self.order = order

    def __iter__(self):
        return iter([self.order[i] for i in super().__iter__()])


@given(
    size=st.integers(1, 40),
    world_size=st.integers(1, 9),
    shuffle=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**64 - 1),
)
def test_ranks_share_an_epoch_as_with_distributed_sampler(size, world_size, shuffle, seed, epoch):
    def order(*shared: int) -> list[int]:
        loader = EpochLoader(size, 1, shuffle, seed, *shared)
        loader.set_epoch(epoch)
        return loader.order().tolist()

    whole = order(0, 1)
    assert sorted(whole) == list(range(size))
    for rank in range(world_size):
        sampler = Permuted(whole, num_replicas=world_size, rank=rank)
        assert order(rank, world_size) == list(sampler)


def philox(counter: int, key: tuple[int, int]) -> list[int]:
    """Philox4x64-10, from Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"."""
    mask, (k0, k1) = 2**64 - 1, key
    c0, c1, c2, c3 = counter, 0, 0, 0
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return [c0, c1, c2, c3]


def test_order_is_that_of_the_published_generator():
    words = [word for counter in range(1, 6) for word in philox(counter, (12, 34))]
    order = sorted(range(20), key=words.__getitem__)
    assert random_order(20, 12, 34).tolist() == order


def test_order_is_fixed_for_all_time():
    # A change of these numbers breaks the resuming of every run that exists.
    assert random_order(8, 0).tolist() == [0, 2, 1, 5, 4, 3, 6, 7]
    assert random_order(8, 1, 7).tolist() == [2, 1, 4, 7, 3, 5, 6, 0]


def test_each_place_gets_each_graph_equally_often():
    size, epochs = 5, 4000
    orders = torch.stack([random_order(size, 0, epoch) for epoch in range(epochs)])
    counts = torch.stack([(orders == graph).sum(0) for graph in range(size)])
    sd = math.sqrt(epochs * (1 / size) * (1 - 1 / size))
    assert (counts - epochs / size).abs().max() < 5 * sd
