import math
from collections import Counter
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fognn.data.episodes import Episodes, EpisodeSampler
from fognn.data.few_shot import ImageSet


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
    labels = [10 * c + 3 for c, size in enumerate(sizes) for _ in range(size)]
    mixed.shuffle(labels)
    labels = torch.tensor(labels)
    n_way = mixed.randint(2, len(sizes))
    episode = EpisodeSampler(labels, n_way, k_shot, n_query, seed=seed).episode(number)
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


LABELS = torch.arange(10).repeat_interleave(20)


def test_an_episode_depends_on_seed_and_number_only():
    sampler = EpisodeSampler(LABELS, 5, 1, episodes=6, seed=3)
    all_of_them = [torch.cat(episode).tolist() for episode in sampler]
    assert len(all_of_them) == len(sampler) == 6
    assert len({tuple(episode) for episode in all_of_them}) == 6
    resumed = EpisodeSampler(LABELS, 5, 1, episodes=6, seed=3, start=4)
    assert [torch.cat(episode).tolist() for episode in resumed] == all_of_them[4:]
    assert len(resumed) == 2
    assert torch.cat(sampler.episode(2)).tolist() == all_of_them[2]
    other = EpisodeSampler(LABELS, 5, 1, seed=4)
    assert [torch.cat(e).tolist() for e in islice(other, 6)] != all_of_them


def test_episodes_are_fixed_for_all_time():
    episode = EpisodeSampler(LABELS, 3, 2, 2, seed=1).episode(5)
    assert [part.tolist() for part in episode] == [
        [166, 168, 77, 79, 105, 119],
        [0, 0, 1, 1, 2, 2],
        [160, 100],
        [0, 2],
        [8, 3, 5],
    ]


def test_without_a_number_they_never_end():
    sampler = EpisodeSampler(LABELS, 2, 1)
    assert len(list(islice(sampler, 50))) == 50
    with pytest.raises(TypeError, match="no length"):
        len(sampler)


def test_draws_are_uniform():
    draws = 2000
    episodes = list(EpisodeSampler(LABELS, 5, 1, episodes=draws))
    for counts, share in (
        (torch.bincount(torch.cat([e.classes for e in episodes]), minlength=10), 5 / 10),
        (torch.bincount(torch.cat([e.query_labels for e in episodes]), minlength=5), 1 / 5),
        (torch.bincount(torch.cat([e.support for e in episodes]), minlength=200), 5 / 200),
        (torch.bincount(torch.cat([e.query for e in episodes]), minlength=200), 1 / 200),
    ):
        sd = math.sqrt(draws * share * (1 - share))
        assert (counts - draws * share).abs().max() < 5 * sd


def test_a_class_may_be_used_up_but_not_more():
    labels = [0] * 6 + [1] * 4 + [2] * 6
    assert EpisodeSampler(labels, 2, 3, 2).episode(0).support.numel() == 6
    words = r"class 1 \(bed\) has 4 images, but k_shot=3 and n_query=3 in 2 classes need 5 of each"
    with pytest.raises(ValueError, match=words):
        EpisodeSampler(labels, 2, 3, 3, names=["baby", "bed", "car"])
    with pytest.raises(ValueError, match="class 1 has 4 images, but k_shot=9"):
        EpisodeSampler(labels, 2, 9)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_way": 0}, "n_way must be an int of at least 1, got 0"),
        ({"n_way": 11}, "n_way must be at most the number of classes, 10, got 11"),
        ({"k_shot": 0}, "k_shot must be an int of at least 1, got 0"),
        ({"k_shot": 1.5}, "k_shot must be an int of at least 1, got 1.5"),
        ({"n_query": 0}, "n_query must be an int of at least 1, got 0"),
        ({"episodes": -1}, "episodes must be an int of at least 0, got -1"),
        ({"seed": -1}, "seed must be an int of at least 0, got -1"),
        ({"seed": 2**64}, "seed must be an int of at least 0"),
        ({"start": None}, "start must be an int of at least 0, got None"),
        ({"labels": torch.rand(20)}, r"labels must be integers of shape \[N\], got torch.float32"),
        ({"labels": LABELS[None]}, r"labels must be integers of shape \[N\], .* \[1, 200\]"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        EpisodeSampler(**{"labels": LABELS, "n_way": 5, "k_shot": 1, **kwargs})


def numbered_images() -> ImageSet:
    """Image i is filled with i."""
    images = torch.arange(200, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 4, 5)
    return ImageSet(images, LABELS, [str(i) for i in range(10)])


def test_queries_of_an_episode_share_the_support_set():
    images = numbered_images()
    sampler = EpisodeSampler(images.labels, 5, 2, 3, episodes=5)
    batches = list(Episodes(images, sampler, batch_size=2))
    assert [len(batch.query) for batch in batches] == [2, 2, 1]
    assert len(Episodes(images, sampler, batch_size=2)) == 3
    tasks = batches[1]
    assert tasks.support.shape == (2, 10, 3, 4, 5)
    assert tasks.query.shape == (2, 3, 3, 4, 5)
    for i in range(2):
        episode = sampler.episode(2 + i)
        assert (255 * tasks.support[i, :, 0, 0, 0]).round().tolist() == episode.support.tolist()
        assert tasks.support_labels[i].tolist() == episode.support_labels.tolist()
        assert (255 * tasks.query[i, :, 0, 0, 0]).round().tolist() == episode.query.tolist()
        assert tasks.query_labels[i].tolist() == episode.query_labels.tolist()


def test_sampler_of_other_images_is_refused():
    sampler = EpisodeSampler(LABELS[:100], 5, 1)
    with pytest.raises(ValueError, match="it knows 100 of them, there are 200"):
        Episodes(numbered_images(), sampler)
    with pytest.raises(ValueError, match="Episodes: batch_size must be an int of at least 1"):
        Episodes(numbered_images(), EpisodeSampler(LABELS, 5, 1), batch_size=0)
