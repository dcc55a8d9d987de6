r"""Few-shot episodes: the numbers of their images, and batches of the images themselves."""

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fognn.data.few_shot import ImageSet
from fognn.utils import checks

__all__ = ["Episode", "EpisodeSampler", "Episodes", "Tasks"]


class Episode(NamedTuple):
    r"""The images of one episode, as numbers, and their labels within it."""

    support: Tensor  # [n_way * k_shot], class after class
    support_labels: Tensor  # [n_way * k_shot], in 0..n_way-1
    query: Tensor  # [n_query]
    query_labels: Tensor  # [n_query], in 0..n_way-1
    classes: Tensor  # [n_way], the class that each label stands for


class EpisodeSampler:
    r"""Draws episodes: :obj:`n_way` classes at random, :obj:`k_shot` images of each as support,
    and :obj:`n_query` further images of them as queries.

    Episode :math:`i` is a fixed function of :obj:`seed` and :math:`i`, on any machine: it comes
    from the counter-based generator Philox, keyed with both. A run that was stopped after
    :math:`i` episodes resumes with :obj:`start=i`, and each rank of a distributed run can take
    episodes of its own.

    Args:
        labels (torch.Tensor or sequence of int): The class of each image.
        n_way (int): Number of classes in an episode.
        k_shot (int): Number of support images of each class.
        n_query (int, optional): Number of queries *in all*, divided among the classes as evenly
            as possible: 75 queries are 15 of each of 5 classes, and a single query is of a random
            class. (default: :obj:`1`)
        episodes (int, optional): Number of the episode to stop before; without it iteration never
            ends. (default: :obj:`None`)
        seed (int, optional): Seed of the episodes. (default: :obj:`0`)
        start (int, optional): Number of the first episode. (default: :obj:`0`)
        names (sequence of str, optional): Names of the classes, for error messages.
            (default: :obj:`None`)
    """

    def __init__(
        self,
        labels: Tensor | Sequence[int],
        n_way: int,
        k_shot: int,
        n_query: int = 1,
        episodes: int | None = None,
        seed: int = 0,
        start: int = 0,
        names: Sequence[str] | None = None,
    ) -> None:
        for name, value, low in (
            ("n_way", n_way, 1),
            ("k_shot", k_shot, 1),
            ("n_query", n_query, 1),
            ("episodes", episodes, 0),
            ("seed", seed, 0),
            ("start", start, 0),
        ):
            if value is not None or name != "episodes":
                checks.int_in_range("EpisodeSampler", name, value, low)
        labels = torch.as_tensor(labels)
        if labels.dim() != 1 or labels.is_floating_point() or labels.is_complex():
            raise ValueError(
                f"EpisodeSampler: labels must be integers of shape [N], "
                f"got {labels.dtype} {list(labels.shape)}"
            )
        self.n_way, self.k_shot, self.n_query = n_way, k_shot, n_query
        self.episodes, self.seed, self.start = episodes, seed, start
        self.classes, place, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
        if self.classes.numel() < n_way:
            raise ValueError(
                f"EpisodeSampler: n_way must be at most the number of classes, "
                f"{self.classes.numel()}, got {n_way}"
            )
        needed = k_shot + -(-n_query // n_way)
        small = int(sizes.argmin())
        if sizes[small] < needed:
            number = int(self.classes[small])
            named = f" ({names[number]})" if names is not None else ""
            raise ValueError(
                f"EpisodeSampler: class {number}{named} has {int(sizes[small])} images, but "
                f"k_shot={k_shot} and n_query={n_query} in {n_way} classes need {needed} of each"
            )
        self.members = torch.argsort(place, stable=True).split(sizes.tolist())

    def episode(self, number: int) -> Episode:
        r"""Draws one episode."""
        checks.int_in_range("EpisodeSampler", "number", number, 0)
        key = np.array([self.seed, number], dtype=np.uint64)
        philox = np.random.Philox(key=key)
        ways = _order(philox, len(self.members))[: self.n_way]
        extra = _order(philox, self.n_way) < self.n_query % self.n_way
        support, query, labels = [], [], []
        for label, (way, more) in enumerate(zip(ways.tolist(), extra.tolist(), strict=True)):
            members, queries = self.members[way], self.n_query // self.n_way + more
            drawn = members[_order(philox, members.numel())[: self.k_shot + queries]]
            support.append(drawn[: self.k_shot])
            query.append(drawn[self.k_shot :])
            labels += [label] * queries
        support_labels = torch.arange(self.n_way).repeat_interleave(self.k_shot)
        return Episode(
            torch.cat(support),
            support_labels,
            torch.cat(query),
            torch.tensor(labels),
            self.classes[ways],
        )

    def __iter__(self) -> Iterator[Episode]:
        numbers = count(self.start) if self.episodes is None else range(self.start, self.episodes)
        return map(self.episode, numbers)

    def __len__(self) -> int:
        if self.episodes is None:
            raise TypeError("EpisodeSampler: without a number of episodes there is no length")
        return max(0, self.episodes - self.start)


class Tasks(NamedTuple):
    r"""A batch of episodes, as :class:`fognn.models.FewShotNet` takes them. Each query, with the
    support set, is a task."""

    support: Tensor  # [B, n_way * k_shot, C, H, W]
    support_labels: Tensor  # [B, n_way * k_shot], in 0..n_way-1
    query: Tensor  # [B, n_query, C, H, W]
    query_labels: Tensor  # [B, n_query], in 0..n_way-1, the target


class Episodes:
    r"""The episodes of a sampler with the images of a set: iterates over :class:`Tasks`.

    Every query is a task of its own, a graph of this query and the support set, which the queries
    of an episode share.

    Args:
        images (ImageSet): The images.
        sampler (EpisodeSampler): Draws from their labels.
        batch_size (int, optional): Number of episodes in a batch. The last batch may be smaller.
            (default: :obj:`1`)
    """

    def __init__(self, images: ImageSet, sampler: EpisodeSampler, batch_size: int = 1) -> None:
        checks.int_in_range("Episodes", "batch_size", batch_size, 1)
        drawn = sum(members.numel() for members in sampler.members)
        if drawn != len(images):
            raise ValueError(
                f"Episodes: the sampler must draw from the labels of the images: it knows "
                f"{drawn} of them, there are {len(images)}"
            )
        self.images, self.sampler, self.batch_size = images, sampler, batch_size

    def __iter__(self) -> Iterator[Tasks]:
        episodes = iter(self.sampler)
        while batch := list(islice(episodes, self.batch_size)):
            yield self.tasks(batch)

    def __len__(self) -> int:
        return -(-len(self.sampler) // self.batch_size)

    def tasks(self, batch: Sequence[Episode]) -> Tasks:
        r"""Returns the tasks of some episodes."""
        support, labels, query, query_labels, _ = map(torch.stack, zip(*batch, strict=True))
        return Tasks(self._read(support), labels, self._read(query), query_labels)

    def _read(self, numbers: Tensor) -> Tensor:
        images = self.images.read(numbers.flatten())
        return images.view(*numbers.shape, *images.shape[1:])


def _order(philox: np.random.Philox, size: int) -> Tensor:
    # Sorted random words: numpy's own permutation may change between versions.
    return torch.from_numpy(np.argsort(philox.random_raw(size), kind="stable"))
