import csv
import dataclasses
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_images import CLASSES, tiny_images, write_cifar
from tiny_runs import molecules, tiny
from torch import Tensor

from fognn.data.catalog import CATALOG
from fognn.data.episodes import Episodes, Tasks
from fognn.data.images import ImageSet
from fognn.data.graph_files import write_graphs
from fognn.experiments import protocol
from fognn.models import TASKS, create_model
from fognn.training import Config, DataConfig
from fognn.training import data as module
from fognn.training.data import (
    PLAIN_ZINC,
    EpisodeLoader,
    few_shot,
    fingerprint,
    folded,
    open_split,
    splits_of,
    task_of,
)
from fognn.training.evaluation import forward_batch

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


@pytest.mark.parametrize("split", SPLITS)
def test_the_splits_of_images(folder: Path, split: str) -> None:
    loader = open_split(tiny_images(folder), split)
    assert len(loader.images.classes) == CLASSES[split]
    assert loader.images.classes[0] == f"{split}-0"
    batches = list(loader)
    assert len(loader) == len(batches) == 2
    assert [len(batch.query) for batch in batches] == ([4, 4] if split == "train" else [4, 2])


def test_the_facts_of_zinc(real_data: Path) -> None:
    run = config("zinc", real_data)
    loaders = {split: open_split(run, split) for split in SPLITS}
    assert [len(loader.pack) for loader in loaders.values()] == [10_000, 1_000, 1_000]
    assert [int(loader.pack.num_nodes[0]) for loader in loaders.values()][::2] == [29, 16]
    first = loaders["test"].pack.columns["y"].values[0]
    assert float(first) == pytest.approx(1.997326, abs=1e-6)


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


@pytest.mark.parametrize("name", ["PATTERN", "CLUSTER", "ZINC", PLAIN_ZINC, "TSP"])
def test_the_task_fits_the_data(folder: Path, name: str) -> None:
    run = config(name, folder, data__fraction=0.001 if name in ("PATTERN", "CLUSTER") else 1)
    task = task_of(run.data)
    assert task is not None
    batch = next(iter(open_split(run, "test")))
    net = create_model("gatedgcn-e" if task.level != "node" else "gcn", task, channels=8)
    edge_attr = batch.edge_attr if "edge_attr" in batch else None
    out = net(batch.x, batch.edge_index, edge_attr, batch.batch, batch.num_graphs)
    assert len(out) == len(batch.y)
    assert batch.y.is_floating_point() or int(batch.y.max()) < out.size(1)


def test_every_dataset_is_of_one_kind() -> None:
    kinds = {e.name: (few_shot(d := DataConfig(e.name)), folded(d), splits_of(d)) for e in CATALOG}
    images, folds = (True, False, SPLITS), (False, True, ("train", "val"))
    assert {name for name, kind in kinds.items() if kind == images} == {
        *("miniImageNet", "Omniglot", "CIFAR-FS")
    }
    assert [name for name, kind in kinds.items() if kind == folds] == ["IMDB-MULTI"]
    assert sum(kind == (False, False, SPLITS) for kind in kinds.values()) == 4
    assert splits_of(DataConfig("IMDB-MULTI", holdout=True)) == SPLITS
    for name, kind in kinds.items():
        assert (task_of(DataConfig(name)) is None) == kind[0]


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
    parts = {split: indices(monkeypatch, run, split) for split in splits_of(run.data)}
    assert sorted(number for part in parts.values() for number in part) == list(range(1500))
    held_out = held_out_by(real_data, fold)
    if holdout:
        assert set(parts["test"]) == held_out
        assert set(parts["val"]) == held_out_by(real_data, fold % 10 + 1)
    else:
        assert set(parts["val"]) == held_out


def test_the_folds_together_hold_out_every_graph_once(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    for fold in range(1, module.FOLDS + 1):
        run = config("imdb-multi", real_data, data__fold=fold, data__fraction=0.1)
        some = indices(monkeypatch, run, "val")
        assert len(some) == 15
        seen += indices(monkeypatch, config("imdb-multi", real_data, data__fold=fold), "val")
    assert sorted(seen) == list(range(1500))


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
        sets = [loader.images.classes[c] for n in range(300) for c in classes_of(loader, n)]
        seen[split] = {re.sub("/rot[0-9]+$", "", label) for label in sets}
        assert len(seen[split]) > 15
    assert not seen["train"] & seen["val"]
    assert not seen["test"] & (seen["train"] | seen["val"])


def classes_of(loader: EpisodeLoader, number: int) -> list[int]:
    """The classes of an episode, of its support images and of its queries."""
    episode = loader.drawn.episode(number)
    labels = loader.images.labels
    assert torch.equal(labels[episode.support], episode.classes[episode.support_labels])
    assert torch.equal(labels[episode.query], episode.classes[episode.query_labels])
    return episode.classes.tolist()


def test_the_real_split_of_mini_imagenet_has_no_class_in_two_parts(real_data: Path) -> None:
    parts = []
    for split in SPLITS:
        path = real_data / "miniimagenet_splits" / f"{split}.csv.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            parts.append({row["label"] for row in csv.DictReader(file)})
    assert [len(part) for part in parts] == [64, 16, 20]
    assert len(set.union(*parts)) == 100


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
    return EpisodeLoader(numbered(20, 10), DATA, tasks, 4, seed, train, *ranks)


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


def test_batches_are_episodes_with_their_queries() -> None:
    data = dataclasses.replace(DATA, n_query=3)
    batches = list(EpisodeLoader(numbered(20, 10), data, 6, 4, 0, True))
    assert [tuple(batch.query.shape[:2]) for batch in batches] == [(4, 3), (2, 3)]
    assert [tuple(batch.support.shape[:2]) for batch in batches] == [(4, 8), (2, 8)]


def test_validation_sees_the_same_episodes_in_every_epoch() -> None:
    val = loader(train=False, tasks=7)
    first = episodes(val)
    assert [len(part) for part in first] == [4, 3]
    assert len(val) == 2
    assert episodes(val, 5) == first


def test_ranks_share_a_batch_of_episodes() -> None:
    for epoch in (0, 2):
        whole = episodes(loader(True), epoch)
        parts = [episodes(loader(True, 8, 0, rank, 2), epoch) for rank in range(2)]
        assert [sorted(a + b) for a, b in zip(*parts, strict=True)] == [sorted(b) for b in whole]
        assert [len(part) for part in parts[0] + parts[1]] == [2] * 4


def test_the_runs_seed_changes_the_training_episodes_only(folder: Path) -> None:
    runs = [dataclasses.replace(tiny_images(folder), seed=seed) for seed in (0, 1)]
    for split in SPLITS:
        first, second = (next(iter(open_split(run, split))) for run in runs)
        assert torch.equal(first.query, second.query) == (split != "train")
    other = tiny_images(folder, data__seed=1)
    first, second = (next(iter(open_split(run, "val"))) for run in (runs[0], other))
    assert not torch.equal(first.query, second.query)


def test_too_few_images_or_classes(folder: Path) -> None:
    with pytest.raises(ValueError, match="n_way must be at most the number of classes, 16"):
        open_split(tiny_images(folder, data__n_way=17), "val")
    with pytest.raises(ValueError, match=r"class 0 \(val-0\) has 2 images, but k_shot=5"):
        open_split(tiny_images(folder, data__k_shot=5), "val")


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


def test_the_fingerprint_forgets_the_order_of_names() -> None:
    first = open_split(tiny(), "train")
    whole = fingerprint(first)
    columns = first.pack.columns
    assert len(columns) > 1
    first.pack.columns = dict(reversed(columns.items()))
    assert fingerprint(first) == whole


def test_the_fingerprint_of_images(folder: Path, tmp_path: Path) -> None:
    run = tiny_images(folder)
    marks = [fingerprint(open_split(run, split)) for split in SPLITS]
    assert len(set(marks)) == 3
    again = tiny_images(write_cifar(tmp_path))
    assert fingerprint(open_split(again, "val")) == marks[1], "the same images elsewhere"
    more = tiny_images(write_cifar(tmp_path / "more", images=3))
    assert fingerprint(open_split(more, "val")) != marks[1]


SCRIPT = """
import sys
from fognn.experiments import protocol
from fognn.training.data import fingerprint, open_split
print(fingerprint(open_split(protocol(sys.argv[1], "gcn"), "train")))
"""


@pytest.mark.slow
def test_the_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    """PyG keeps names in sets, whose order depends on the seed of Python's hashes."""
    path = tmp_path / "graphs.npz"
    write_graphs(path, molecules(12))
    here = fingerprint(open_split(protocol(str(path), "gcn"), "train"))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(path)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    assert [process.communicate()[0].strip() for process in processes] == [here, here]
