import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_images import write_cifar
from tiny_runs import molecules, open_split
from torch import Tensor

from fognn.data.episodes import Episodes, Tasks
from fognn.data.graph_files import write_graphs
from fognn.data.images import ImageSet
from fognn.experiments import protocol
from fognn.models import TASKS
from fognn.training import Config, DataConfig
from fognn.training import data as module
from fognn.training.data import (
    PLAIN_ZINC,
    EpisodeLoader,
    RunData,
    fingerprint,
    task_of,
)
from fognn.training.objective import forward_batch

SPLITS = ("train", "val", "test")
COUNTS = {"train": 9, "val": 5, "test": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a few graphs in the files of ZINC and TSP, and images in CIFAR-FS's."""
    folder = write_cifar(tmp_path_factory.mktemp("data"))
    (folder / "zinc").mkdir()
    (folder / "tsp").mkdir()
    zinc: dict[str, Any] = {}
    generator = np.random.default_rng(0)
    for seed, (split, count) in enumerate(COUNTS.items()):
        graphs = molecules(count, seed)
        zinc |= {
            f"{split}_n": np.array([graph.num_nodes for graph in graphs]),
            f"{split}_e": np.array([graph.num_edges for graph in graphs]),
        }
        for name in ("x", "edge_index", "edge_attr", "y"):
            parts = [graph[name] for graph in graphs]
            zinc[f"{split}_{name}"] = torch.cat(parts, dim=-1).numpy()
        n = generator.integers(50, 60, count)
        tours = [generator.permutation(size).astype(np.int16) for size in n]
        np.savez(
            folder / "tsp" / f"tsp_{split}.npz",
            n=n,
            c=generator.random((n.sum(), 2)).astype(np.float32),
            t=np.concatenate(tours),
        )
    np.savez(folder / "zinc" / "zinc12k.npz", **zinc)
    return folder


def config(name: str, folder: Path, **values: Any) -> Config:
    changes = {key.replace("__", "."): value for key, value in values.items()}
    return protocol(name, "fog", 0, {"data.folder": str(folder)} | changes)


def labels(batches: Any) -> list[float]:
    return [value for batch in batches for value in batch.y.tolist()]


@pytest.mark.parametrize("name", ["ZINC", "TSP", PLAIN_ZINC])
@pytest.mark.parametrize("split", SPLITS)
def test_the_splits_of_files(folder: Path, name: str, split: str) -> None:
    loader = open_split(config(name, folder, training__batch_size=2), split)
    assert len(loader.pack) == COUNTS[split]
    assert len(loader) == -(-COUNTS[split] // 2)
    half = open_split(config(name, folder, data__fraction=0.5), split)
    assert len(half.pack) == -(-COUNTS[split] // 2), "the first half, rounded up"


@pytest.mark.parametrize(("name", "val"), [("PATTERN", 2), ("CLUSTER", 1)])
def test_the_splits_of_generated_graphs(tmp_path: Path, name: str, val: int) -> None:
    run = config(name, tmp_path, data__fraction=0.0008)
    sizes = [len(open_split(run, split).pack) for split in SPLITS]
    assert sizes == [8, val, val]
    marks = {fingerprint(open_split(run, split)) for split in SPLITS}
    assert len(marks) == 3
    other = config(name, tmp_path, data__fraction=0.0008, data__seed=1)
    assert fingerprint(open_split(other, "train")) not in marks


def test_training_is_shuffled_by_the_seed_and_the_rest_is_not(folder: Path) -> None:
    whole = torch.cat([graph.y for graph in molecules(9, 0)]).tolist()
    run = config("zinc", folder, training__batch_size=4)
    train = open_split(run, "train")
    first = labels(train)
    train.set_epoch(1)
    assert first != whole
    assert labels(train) != first
    assert sorted(labels(train)) == sorted(first) == sorted(whole)
    other = open_split(dataclasses.replace(run, seed=1), "train")
    assert labels(other) != first
    val = open_split(run, "val")
    assert labels(val) == torch.cat([graph.y for graph in molecules(5, 1)]).tolist()


def test_ranks_share_a_batch_of_training_only(folder: Path) -> None:
    run = config("zinc", folder, training__batch_size=4, data__fraction=0.8)
    whole = [batch.y.tolist() for batch in open_split(run, "train")]
    ranks = [[b.y.tolist() for b in open_split(run, "train", rank, 2)] for rank in range(2)]
    for together, *parts in zip(whole, *ranks, strict=True):
        assert sorted(together) == sorted(parts[0] + parts[1])
        assert len(parts[0]) == len(parts[1]) == 2
    assert labels(open_split(run, "val", 1, 2)) == labels(open_split(run, "val"))


def test_zinc_without_node_features(folder: Path) -> None:
    plain, full = (
        {split: open_split(config(name, folder), split).pack for split in SPLITS}
        for name in (PLAIN_ZINC, "ZINC")
    )
    for split in SPLITS:
        assert not plain[split].columns["x"].values.any()
        assert full[split].columns["x"].values.any()
        for name in ("edge_attr", "y"):
            values = [pack[split].columns[name].values for pack in (plain, full)]
            assert torch.equal(*values)
        assert torch.equal(plain[split].edges.source, full[split].edges.source)
    assert task_of(DataConfig(PLAIN_ZINC)) == TASKS["zinc"]


def indices(monkeypatch: pytest.MonkeyPatch, run: Config, split: str) -> list[int]:
    """Which graphs a loader is made of."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "PackedLoader", lambda graphs, *_, **__: graphs)
        return list(open_split(run, split).indices())


def held_out_by(real_data: Path, fold: int) -> set[int]:
    path = real_data / "imdb_multi" / "10fold_idx" / f"test_idx-{fold}.txt"
    return set(map(int, path.read_text().split()))


@pytest.mark.parametrize("holdout", [False, True])
@pytest.mark.parametrize("fold", [1, 4, 10])
def test_folds_partition_the_graphs(
    real_data: Path, monkeypatch: pytest.MonkeyPatch, fold: int, holdout: bool
) -> None:
    run = config("imdb-multi", real_data, data__fold=fold, data__holdout=holdout)
    parts = {split: indices(monkeypatch, run, split) for split in RunData(run).splits}
    assert sorted(number for part in parts.values() for number in part) == list(range(1500))
    held_out = held_out_by(real_data, fold)
    if holdout:
        assert set(parts["test"]) == held_out
        assert set(parts["val"]) == held_out_by(real_data, fold % 10 + 1)
    else:
        assert set(parts["val"]) == held_out


@pytest.mark.parametrize("fold", [None, 11])
def test_a_fold_that_is_not_there(real_data: Path, fold: int | None) -> None:
    run = config("imdb-multi", real_data, data__fold=fold)
    with pytest.raises(ValueError, match=rf"data\.fold must be in 1\.\.10, got {fold}"):
        open_split(run, "train")


def test_wrong_splits_and_names(folder: Path) -> None:
    with pytest.raises(ValueError, match="split must be one of train, val, test, got 'dev'"):
        open_split(config("zinc", folder), "dev")
    with pytest.raises(ValueError, match="split must be one of train, val, got 'test'"):
        open_split(config("imdb-multi", folder, data__fold=1), "test")
    with pytest.raises(ValueError, match=r"name must be one of PATTERN, .* got 'mnist'"):
        task_of(DataConfig("mnist"))


@pytest.mark.parametrize("name", ["omniglot", "cifar-fs"])
def test_episodes_of_the_real_splits_have_no_class_in_common(real_data: Path, name: str) -> None:
    """A rotated character counts as the character itself."""
    seen: dict[str, set[str]] = {}
    for split in SPLITS:
        loader = open_split(protocol(name, "gnn", 0, {"data.folder": str(real_data)}), split)
        assert isinstance(loader, EpisodeLoader)
        sets = [loader.drawn.images.classes[c] for n in range(300) for c in classes_of(loader, n)]
        seen[split] = {re.sub("/rot[0-9]+$", "", label) for label in sets}
        assert len(seen[split]) > 15
    assert not seen["train"] & seen["val"]
    assert not seen["test"] & (seen["train"] | seen["val"])


def classes_of(loader: EpisodeLoader, number: int) -> list[int]:
    """The classes of an episode, of its support images and of its queries."""
    episode = loader.drawn.episode(number)
    labels = loader.drawn.images.labels
    assert torch.equal(labels[episode.support], episode.classes[episode.support_labels])
    assert torch.equal(labels[episode.query], episode.classes[episode.query_labels])
    return episode.classes.tolist()


def test_the_labels_of_queries_are_no_input() -> None:
    """Other labels of the queries change the target, and nothing that the network gets."""
    drawn = Episodes(numbered(20, 10), 5, 2, 5)
    batch = [drawn.episode(number) for number in range(4)]
    others = [e._replace(query_labels=(e.query_labels + 1) % 5) for e in batch]
    seen, other = (drawn.tasks(some) for some in (batch, others))
    assert not torch.equal(seen.query_labels, other.query_labels)

    def inputs(tasks: Tasks) -> list[Tensor]:
        given: list[Tensor] = []

        def net(*arguments: Tensor) -> Tensor:
            given.extend(arguments)
            return torch.zeros(4, 5, 5)

        forward_batch(net, tasks)  # type: ignore[arg-type]
        return given

    for one, two in zip(inputs(seen), inputs(other), strict=True):
        assert torch.equal(one, two)


def numbered(classes: int, each: int) -> ImageSet:
    """Images of one pixel whose colour is the number of the image."""
    count = classes * each
    assert count < 256
    images = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1)
    names = [f"class {number}" for number in range(classes)]
    return ImageSet(images, torch.arange(classes).repeat_interleave(each), names)


DATA = DataConfig("CIFAR-FS", n_way=4, k_shot=2)


def episodes(loader: EpisodeLoader, epoch: int = 0) -> list[list[tuple[int, ...]]]:
    """The numbers of the images of each task, batch by batch."""
    loader.set_epoch(epoch)

    def numbers(support: Tensor, query: Tensor) -> list[tuple[int, ...]]:
        pixels = torch.cat([support.flatten(1), query.flatten(1)], dim=1)  # one query
        return [tuple(row) for row in (255 * pixels).round().int().tolist()]

    return [numbers(batch.support, batch.query) for batch in loader]


def loader(train: bool, tasks: int = 8, seed: int = 0, *ranks: int) -> EpisodeLoader:
    drawn = Episodes(numbered(20, 10), DATA.n_way, DATA.k_shot, DATA.n_query, seed)
    return EpisodeLoader(drawn, tasks, 4, train, *ranks)


def test_training_never_sees_an_episode_twice() -> None:
    train = loader(train=True)
    seen = [task for epoch in range(3) for part in episodes(train, epoch) for task in part]
    assert len(seen) == len(set(seen)) == 24
    # They are the first episodes, in their order.
    drawn = Episodes(numbered(20, 10), 4, 2)
    expected = [
        (*episode.support.tolist(), *episode.query.tolist())
        for episode in map(drawn.episode, range(24))
    ]
    assert seen == expected
    assert episodes(train, 1) == episodes(train, 1), "an epoch can be repeated after a kill"


def test_the_fingerprint_of_graphs_sees_every_change(tmp_path: Path) -> None:
    def mark(name: str, index: tuple[int, ...] = (), by: float = 0) -> str:
        graphs = molecules(20)
        if index:
            graphs[0][name][index] += by
        path = tmp_path / f"{name}-{index}-{by}.npz"
        write_graphs(path, graphs)
        return fingerprint(open_split(protocol(str(path), "gcn"), "train"))

    whole = mark("x")
    assert whole == mark("y")
    assert len(whole) == 8
    # Graph 0 must be one of training for the changes to be seen.
    changed = [mark("x", (0,), 1), mark("edge_attr", (0,), 1), mark("y", (0,), 0.5)]
    edges = molecules(20)[0].edge_index
    changed.append(mark("edge_index", (0, 0), 1 if int(edges[0, 0]) == 0 else -1))
    assert len({whole, *changed}) == 5
