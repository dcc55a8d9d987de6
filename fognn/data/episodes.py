r"""Few-shot episodes: the numbers of their images, and batches of the images themselves."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fognn.data.images import ImageSet
from fognn.utils import checks


class Episode(NamedTuple):
    r"""The images of one episode, as numbers, and their labels within it."""

    support: Tensor  # [n_way * k_shot], class after class
    support_labels: Tensor  # [n_way * k_shot], in 0..n_way-1
    query: Tensor  # [n_query]
    query_labels: Tensor  # [n_query], in 0..n_way-1
    classes: Tensor  # [n_way], the class that each label stands for


class Tasks(NamedTuple):
    r"""A batch of episodes for :class:`fognn.models.FewShotNet`: each query is a task."""

    support: Tensor  # [B, n_way * k_shot, C, H, W]
    support_labels: Tensor  # [B, n_way * k_shot], in 0..n_way-1
    query: Tensor  # [B, n_query, C, H, W]
    query_labels: Tensor  # [B, n_query], in 0..n_way-1, the target


class Episodes:
    r"""Draws episodes: :obj:`n_way` classes at random, :obj:`k_shot` images of each as support,
    and :obj:`n_query` further images of them as queries.

    Episode :math:`i` is a fixed function of :obj:`seed` and :math:`i`, on any machine, so that a
    run that was stopped resumes with the next number.

    Args:
        images (ImageSet): The images and their classes.
        n_way (int): Number of classes in an episode.
        k_shot (int): Number of support images of each class.
        n_query (int, optional): Number of queries *in all*, divided among the classes as evenly
            as possible; a single query is of a random class. (default: :obj:`1`)
        seed (int, optional): Seed of the episodes. (default: :obj:`0`)
    """

    def __init__(
        self, images: ImageSet, n_way: int, k_shot: int, n_query: int = 1, seed: int = 0
    ) -> None:
        for name, value in (("n_way", n_way), ("k_shot", k_shot), ("n_query", n_query)):
            checks.positive_int("Episodes", name, value)
        checks.int_in_range("Episodes", "seed", seed, 0)
        self.images, self.seed = images, seed
        self.n_way, self.k_shot, self.n_query = n_way, k_shot, n_query
        self.classes, place, sizes = images.labels.unique(return_inverse=True, return_counts=True)
        if len(sizes) < n_way:
            raise ValueError(f"Episodes: n_way must be at most {len(sizes)} classes, got {n_way}")
        needed = k_shot + -(-n_query // n_way)
        small = int(sizes.argmin())
        if sizes[small] < needed:
            name = images.classes[int(self.classes[small])]
            raise ValueError(
                f"Episodes: class {name} has {int(sizes[small])} images, but k_shot={k_shot} and "
                f"n_query={n_query} in {n_way} classes need {needed} of each"
            )
        self.members = torch.argsort(place, stable=True).split(sizes.tolist())

    def episode(self, number: int) -> Episode:
        r"""Draws one episode."""
        philox = np.random.Philox(key=np.array([self.seed, number], dtype=np.uint64))
        ways = _order(philox, len(self.members))[: self.n_way]
        extra = _order(philox, self.n_way) < self.n_query % self.n_way
        queries = self.n_query // self.n_way + extra
        support, query = [], []
        for way, count in zip(ways.tolist(), queries.tolist(), strict=True):
            drawn = self.members[way][_order(philox, len(self.members[way]))]
            support.append(drawn[: self.k_shot])
            query.append(drawn[self.k_shot : self.k_shot + count])
        shown, asked, labels = torch.cat(support), torch.cat(query), torch.arange(self.n_way)
        of_shown, of_asked = (labels.repeat_interleave(n) for n in (self.k_shot, queries))
        return Episode(shown, of_shown, asked, of_asked, self.classes[ways])

    def tasks(self, batch: Sequence[Episode]) -> Tasks:
        r"""Returns the images of some episodes."""
        support, labels, query, query_labels, _ = map(torch.stack, zip(*batch, strict=True))
        read = self.images.read
        return Tasks(read(support), labels, read(query), query_labels)


def _order(philox: np.random.Philox, size: int) -> Tensor:
    # Sorted random words: numpy's own permutation may change between versions.
    return torch.from_numpy(np.argsort(philox.random_raw(size), kind="stable"))
