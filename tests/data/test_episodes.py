import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.data import Episodes, ImageSet

LABELS = torch.arange(10).repeat_interleave(20)


def numbered(labels: torch.Tensor) -> ImageSet:
    """Image i is filled with i."""
    images = torch.arange(len(labels)).to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 4, 5)
    return ImageSet(images, labels, [f"class {i}" for i in range(int(labels.max()) + 1)])


@given(
    sizes=st.lists(st.integers(4, 9), min_size=2, max_size=6),
    k_shot=st.integers(1, 2),
    n_query=st.integers(1, 4),
    seed=st.integers(0, 2**64 - 1),
    number=st.integers(0, 2**64 - 1),
    mixed=st.randoms(use_true_random=False),
)
def test_an_episode_is_what_was_asked_for(sizes, k_shot, n_query, seed, number, mixed):
    # Class numbers with gaps, images in no order.
    listed = [10 * c + 3 for c, size in enumerate(sizes) for _ in range(size)]
    mixed.shuffle(listed)
    labels = torch.tensor(listed)
    n_way = mixed.randint(2, len(sizes))
    episode = Episodes(numbered(labels), n_way, k_shot, n_query, seed=seed).episode(number)
    assert episode.support.shape == episode.support_labels.shape == (n_way * k_shot,)
    assert episode.query.shape == episode.query_labels.shape == (n_query,)
    assert len(set(episode.classes.tolist())) == n_way
    images = torch.cat([episode.support, episode.query]).tolist()
    assert len(set(images)) == len(images)
    assert torch.equal(labels[episode.support], episode.classes[episode.support_labels])
    assert torch.equal(labels[episode.query], episode.classes[episode.query_labels])
    assert Counter(episode.support_labels.tolist()) == dict.fromkeys(range(n_way), k_shot)
    counts = torch.bincount(episode.query_labels, minlength=n_way)
    assert counts.max() - counts.min() <= 1


def test_an_episode_depends_on_seed_and_number_only():
    drawn, other = (Episodes(numbered(LABELS), 5, 1, seed=seed) for seed in (3, 4))
    first = [torch.cat(drawn.episode(number)).tolist() for number in range(6)]
    assert len({tuple(episode) for episode in first}) == 6
    assert torch.cat(drawn.episode(2)).tolist() == first[2]
    assert torch.cat(other.episode(2)).tolist() != first[2]


def test_episodes_are_fixed_for_all_time():
    episode = Episodes(numbered(LABELS), 3, 2, 2, seed=1).episode(5)
    assert [part.tolist() for part in episode] == [
        [166, 168, 77, 79, 105, 119],
        [0, 0, 1, 1, 2, 2],
        [160, 100],
        [0, 2],
        [8, 3, 5],
    ]


def test_draws_are_uniform():
    draws = 2000
    episodes = list(map(Episodes(numbered(LABELS), 5, 1).episode, range(draws)))
    for counts, share in (
        (torch.bincount(torch.cat([e.classes for e in episodes]), minlength=10), 5 / 10),
        (torch.bincount(torch.cat([e.query_labels for e in episodes]), minlength=5), 1 / 5),
        (torch.bincount(torch.cat([e.support for e in episodes]), minlength=200), 5 / 200),
        (torch.bincount(torch.cat([e.query for e in episodes]), minlength=200), 1 / 200),
    ):
        sd = math.sqrt(draws * share * (1 - share))
        assert (counts - draws * share).abs().max() < 5 * sd


def test_the_images_of_episodes():
    drawn = Episodes(numbered(LABELS), 5, 2, 3)
    batch = [drawn.episode(number) for number in (2, 3)]
    tasks = drawn.tasks(batch)
    assert tasks.support.shape == (2, 10, 3, 4, 5)
    assert tasks.query.shape == (2, 3, 3, 4, 5)
    for i, episode in enumerate(batch):
        assert (255 * tasks.support[i, :, 0, 0, 0]).round().tolist() == episode.support.tolist()
        assert tasks.support_labels[i].tolist() == episode.support_labels.tolist()
        assert (255 * tasks.query[i, :, 0, 0, 0]).round().tolist() == episode.query.tolist()
        assert tasks.query_labels[i].tolist() == episode.query_labels.tolist()


def test_a_class_may_be_used_up_but_not_more():
    images = numbered(torch.tensor([0] * 6 + [1] * 4 + [2] * 6))
    assert Episodes(images, 2, 3, 2).episode(0).support.numel() == 6
    with pytest.raises(ValueError, match="class 1 has 4 images, but k_shot=3 and n_query=3"):
        Episodes(images, 2, 3, 3)


@pytest.mark.parametrize(
    "wrong", [{"n_way": 0}, {"n_way": 11}, {"k_shot": 1.5}, {"n_query": 0}, {"seed": -1}]
)
def test_bad_arguments(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Episodes(numbered(LABELS), **{"n_way": 5, "k_shot": 1, **wrong})
