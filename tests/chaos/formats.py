"""Every file format that fognn reads, each with a small valid sample and the ways to read it."""

import csv
import dataclasses
import functools
import gzip
import hashlib
import io
import os
import pickle
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyg_roots
import torch
from compared_runs import compared_entry
from imdb_example import TEXT
from ledger_entries import entry
from tiny_images import write_cifar
from tiny_runs import molecules
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset

import fognn
from chaos.commands import judge, run
from fognn.datasets import CLUSTER, TSP, ZINC, IMDBMulti, omniglot, open_pyg, write_graphs
from fognn.datasets.few_shot import CIFARFS
from fognn.datasets.mini_imagenet import MiniImageNet
from fognn.datasets.own_data import read_own_data
from fognn.datasets.smiles_csv import read_smiles_csv
from fognn.paper.compared import Compared
from fognn.paper.ledger import enter, ledger_of
from fognn.paper.search import Choices, choices_file, choose, grid
from fognn.paper.tables import plan
from fognn.training import Config

__all__ = ["FORMATS", "Format", "arguments", "clean", "digest", "environment", "prepare", "sample"]

Command = list[str]


@dataclass(frozen=True)
class Format:
    """A file format.

    Args:
        name: Its name.
        file: The file that is changed, relative to the folder of the sample.
        make: Writes the sample into a folder.
        read: Reads the sample in a folder, with the function that the commands call.
        commands: Arguments of ``fognn`` that read it, with the folder as working folder.
        checked: Whether the file has checksums: a changed byte must be noticed.
        remade: Whether it is a file of the cache, which is made again if it is damaged.
        safe: Whether fognn promises that reading the file runs no code.
        named: Other ways in which a message names the file, or the part of it that is wrong.
    """

    name: str
    file: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    commands: Sequence[Command] = ()
    checked: bool = False
    remade: bool = False
    safe: bool = True
    named: tuple[str, ...] = ()


def environment(folder: Path) -> dict[str, str]:
    """The environment of a trial: data and cache lie in its folder."""
    return {
        "FOGNN_DATA": str(folder / "data"),
        "FOGNN_CACHE": str(folder / "cache"),
        "HOME": str(folder),
    }


def digest(thing: Any) -> str:
    """A digest of what was read: tensors, arrays, graphs, and all that these are in."""
    sums = hashlib.sha256()

    def add(thing: Any) -> None:
        sums.update(f"{type(thing).__name__}(".encode())
        if isinstance(thing, Tensor):
            thing = thing.detach().cpu().contiguous()
            sums.update(f"{thing.dtype}{list(thing.shape)}".encode() + thing.numpy().tobytes())
        elif isinstance(thing, np.ndarray):
            sums.update(f"{thing.dtype}{thing.shape}".encode() + thing.tobytes())
        elif isinstance(thing, Data):
            add(thing.to_dict())
        elif isinstance(thing, torch.nn.Module):
            add(thing.state_dict())
        elif isinstance(thing, InMemoryDataset):
            add([thing[i] for i in range(len(thing))])
        elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            add({f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)})
        elif isinstance(thing, dict):
            for key in sorted(thing, key=str):
                add(str(key))
                add(thing[key])
        elif isinstance(thing, list | tuple):
            for item in thing:
                add(item)
        elif hasattr(thing, "images") and hasattr(thing, "labels"):
            add([thing.images, thing.labels, thing.classes])
        elif isinstance(thing, str | Path):  # the folder of the sample differs between trials
            sums.update(repr(Path(thing).name if os.sep in str(thing) else thing).encode())
        else:
            sums.update(repr(thing).encode())
        sums.update(b")")

    add(thing)
    return sums.hexdigest()


# Graphs ------------------------------------------------------------------------------------------
_TINY = ["--epochs", "1", "--batch-size", "8", "--threads", "1", "--quiet"]
_TINY += ["--set", "model.channels=8", "--set", "model.layers=2"]


def _train(data: str, *more: str) -> Command:
    return ["train", data, "gcn+fog", *_TINY, *more, "-o", "new"]


_OWN: list[Path] = []


def _new_folder() -> Path:
    _OWN.append(Path(tempfile.mkdtemp(prefix="fognn-chaos-")))
    return _OWN[-1]


@functools.cache
def _trained(level: str) -> Path:
    """A folder with ``run``, ``graphs.npz`` and ``results``; made once a process."""
    folder = _new_folder()
    write_graphs(folder / "graphs.npz", molecules(12))
    if level == "one graph":
        _one_graph(folder / "graph.npz")
    source = "graph.npz" if level == "one graph" else "graphs.npz"
    arguments = [*_train(source)[:-1], "run", "--results", "results"]
    ended = run(arguments, folder, folder / "output", environment(folder))
    (folder / "data").mkdir()
    shutil.rmtree(folder / "output")
    if judge(ended) != "done":
        raise RuntimeError(f"{arguments} failed: {ended.err}")
    return folder


def _with_run(make: Callable[[Path], None], level: str = "graphs") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        shutil.copytree(_trained(level) / "run", folder / "run")
        make(folder)

    return write


def _saved(content: Callable[[], Any], name: str, old: bool = False) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        torch.save(content(), folder / name, _use_new_zipfile_serialization=not old)

    return write


def _collated() -> Any:
    data, slices = InMemoryDataset.collate(molecules(12))
    return data.to_dict(), slices, Data


def _flat() -> dict[str, Tensor]:
    graphs = molecules(12)
    return {
        "n": torch.tensor([g.num_nodes for g in graphs]),
        "e": torch.tensor([g.num_edges for g in graphs]),
        "y_level": "graph",
        **{name: torch.cat([g[name] for g in graphs]) for name in ("x", "edge_attr", "y")},
        "edge_index": torch.cat([g.edge_index for g in graphs], 1),
    }


def _folder_of_graphs(folder: Path) -> None:
    (folder / "graphs").mkdir()
    write_graphs(folder / "graphs" / "a.npz", molecules(6))
    torch.save(molecules(6, seed=1), folder / "graphs" / "b.pt")


def _node_graph(splits: int = 2) -> dict[str, Any]:
    random = np.random.default_rng(0)
    order = random.permutation(40)
    masks = np.zeros((3, 40, splits), dtype=bool)
    for split in range(splits):
        for mask, nodes in enumerate(np.split(np.roll(order, 7 * split), [20, 30])):
            masks[mask, nodes, split] = True
    return {
        "x": random.standard_normal((40, 5)).astype(np.float32),
        "edge_index": random.integers(0, 40, (2, 100)),
        "y": np.arange(40) % 2,
        **dict(zip(("train_mask", "val_mask", "test_mask"), masks, strict=True)),
    }


def _one_graph(path: Path) -> None:
    np.savez(path, **_node_graph())


def _one_graph_pt(folder: Path) -> None:
    tensors = {name: torch.from_numpy(array) for name, array in _node_graph().items()}
    torch.save(Data(**tensors), folder / "graph.pt")


def _heterophilous(folder: Path) -> None:
    graph = _node_graph()
    arrays = {"node_features": graph["x"], "node_labels": graph["y"]}
    arrays |= {f"{name}s": graph[name].T for name in graph if name.endswith("mask")}
    np.savez_compressed(folder / "graph.npz", edges=graph["edge_index"].T, **arrays)


def _own(name: str, **arguments: Any) -> Callable[[Path], Any]:
    return lambda folder: read_own_data(folder / name, **arguments)


def _graphs(name: str, file: str, make: Callable[[Path], None], **more: Any) -> Format:
    # With a slash, a folder is not taken for the name of a dataset.
    source = file if "/" not in file else f"{file.partition('/')[0]}/"
    commands = [["predict", "run", source, "-o", "out.csv"], _train(source)]
    return Format(name, file, _with_run(make), _own(source), commands, **more)


def _one(name: str, file: str, make: Callable[[Path], None]) -> Format:
    commands = [["predict", "run", file, "-o", "out.csv"], _train(file)]
    return Format(name, file, _with_run(make, "one graph"), _own(file), commands, checked=True)


# Molecules ---------------------------------------------------------------------------------------
def _csv(folder: Path) -> None:
    rows = [f"{s},{len(s) / 3:.3f},{i % 2},{'ab'[i % 2]}" for i, s in enumerate(_SMILES)]
    text = "\n".join(["smiles,value,active,kind", *rows]) + "\n"
    (folder / "molecules.csv").write_text(text)


_SMILES = [*pyg_roots.MOLECULES * 2, "CC=O", "O", "N#N", "C[NH3+]", "[Na+].[Cl-]", "F/C=C/F"]


# Run folders -------------------------------------------------------------------------------------
def _run_folder(folder: Path) -> None:
    trained = _trained("graphs")
    shutil.copytree(trained / "run", folder / "run")
    shutil.copy2(trained / "graphs.npz", folder)


def _interrupted(folder: Path) -> None:
    _run_folder(folder)
    (folder / "run" / "result.json").unlink()


def _longer() -> Command:
    # The run knows its data by the path in which it was trained.
    return ["train", "{graphs}", "gcn+fog", *_TINY, "--epochs", "2", "-o", "run", "--no-ledger"]


def _entered(folder: Path) -> list[Any]:
    """What ``fognn collect`` makes of a run folder."""
    results = Path(tempfile.mkdtemp(dir=folder / "cache"))
    enter(folder / "run", results)
    found = ledger_of("runs", results).entries()
    return [dataclasses.replace(one, finished="") for one in found]


_REPORT = ["report", "run", "-o", "pages"]
_COLLECT = ["collect", "run", "--results", "results"]


# Ledgers -----------------------------------------------------------------------------------------
def _ledgers(folder: Path) -> None:
    rows = plan("zinc", ["gcn", "gcn+fog"], 2, ours=False)
    for number, planned in enumerate(rows):
        ledger_of("zinc", folder / "results").add(entry(planned, 0.4 + number / 100))
    enter(_trained("graphs") / "run", folder / "results")
    trials = [entry(trial, 0.3 + i / 100) for i, trial in enumerate(grid(rows[-1]))]
    choice = choose(rows[-1], trials)
    assert choice is not None
    Choices(choices_file(folder / "results", "zinc")).add(choice)


def _compared(folder: Path) -> None:
    _ledgers(folder)
    config = Config.read(_trained("graphs") / "run" / "config.yaml")
    for number, name in enumerate(("gcn", "gcn+fog")):
        runs = [
            Compared(
                "compare/own",
                "gcn-5000",
                "fog" if number else "",
                name.upper(),
                config.with_values({"model.name": name, "seed": seed}),
            )
            for seed in range(2)
        ]
        entries = [compared_entry(one, 0.5 + number / 10, 0.6 + number / 10) for one in runs]
        for one in entries:
            ledger_of("compare/own", folder / "results").add(one)
        choice = choose(runs[0], entries, runs[:1])
        assert choice is not None
        Choices(choices_file(folder / "results", "compare/own")).add(choice)


def _lines(table: str) -> Callable[[Path], Any]:
    return lambda folder: ledger_of(table, folder / "results").entries()


_TABLES = [["table", "zinc"], ["table", "zinc", "--csv", "--at", "best"]]
_SITE = ["report", "--results", "results", "-o", "pages"]


# Datasets of the paper ---------------------------------------------------------------------------
def _zinc_npz(folder: Path) -> None:
    (folder / "data" / "zinc").mkdir(parents=True)
    arrays = {}
    for seed, split in enumerate(("train", "val", "test")):
        graphs = molecules(10, seed)
        arrays |= {
            f"{split}_n": np.array([g.num_nodes for g in graphs], dtype=np.uint8),
            f"{split}_e": np.array([g.num_edges for g in graphs], dtype=np.uint8),
            **{f"{split}_{k}": np.concatenate([g[k] for g in graphs]) for k in ("x", "y")},
            f"{split}_edge_attr": np.concatenate([g.edge_attr for g in graphs]),
            f"{split}_edge_index": np.concatenate([g.edge_index for g in graphs], 1),
        }
    np.savez(folder / "data" / "zinc" / "zinc12k.npz", **arrays)


def _zinc_csv(folder: Path) -> None:
    (folder / "data" / "zinc").mkdir(parents=True)
    rows = [f"{s},{len(s)}" for s in ("CCO", "CCC", "CC(=O)O", "CN", "CCCl", "c1ccccc1")]
    for split in ("train", "val", "test"):
        text = "\n".join(["smiles,y", *rows]) + "\n"
        (folder / "data" / "zinc" / f"zinc12k_{split}.csv").write_text(text)


def _tsp_npz(folder: Path) -> None:
    random = np.random.default_rng(0)
    (folder / "data" / "tsp").mkdir(parents=True)
    n = np.array([30, 28, 33])
    tours = [random.permutation(size) for size in n]
    for split in ("train", "val", "test"):
        points = random.random((n.sum(), 2)).astype(np.float32)
        path = folder / "data" / "tsp" / f"tsp_{split}.npz"
        np.savez(path, n=n, c=points, t=np.concatenate(tours).astype(np.int16))


def _benchmark(name: str, stem: str, level: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        random = torch.Generator().manual_seed(0)
        splits = []
        for _ in range(3):
            graphs = []
            for _ in range(4):
                edges = torch.randint(0, 9, (2, 20), generator=random)
                rows = 9 if level == "node" else 20
                graph = {"edge_index": edges, "y": torch.randint(0, 2, (rows,), generator=random)}
                if level == "node":
                    graph["x"] = torch.eye(7)[torch.randint(0, 7, (9,), generator=random)]
                else:
                    graph["x"] = torch.rand(9, 2, generator=random)
                    graph["edge_attr"] = torch.rand(20, generator=random)
                graphs.append(graph)
            splits.append(graphs)
        path = folder / "data" / "benchmarking_gnns" / name / "raw" / f"{stem}.pt"
        path.parent.mkdir(parents=True)
        torch.save(splits, path)

    return write


def _cached(make: Callable[[Path], None], read: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Writes a sample and reads it once, so that its processed file is there."""

    def write(folder: Path) -> None:
        make(folder)
        before = dict(os.environ)
        os.environ.update(environment(folder))
        try:
            read(folder)
        finally:
            os.environ.clear()
            os.environ.update(before)
        for lock in (folder / "cache").rglob("*.lock"):
            lock.unlink()

    return write


def _stamped(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """Sets the times of raw files: the names of processed files depend on them."""

    def write(folder: Path) -> None:
        make(folder)
        for path in folder.rglob("*"):
            os.utime(path, ns=(10**18, 10**18))

    return write


def _imdb_text(folder: Path) -> None:
    (folder / "data" / "imdb_multi").mkdir(parents=True)
    (folder / "data" / "imdb_multi" / "IMDBMULTI.txt").write_text(TEXT)


def _imdb_tu(folder: Path) -> None:
    raw = folder / "data" / "IMDB-MULTI"
    raw.mkdir(parents=True)
    pairs = [(1, 2), (2, 3), (1, 3), (4, 5), (5, 6), (4, 6), (7, 8), (8, 9)]
    edges = "".join(f"{a}, {b}\n{b}, {a}\n" for a, b in pairs)
    (raw / "IMDB-MULTI_A.txt").write_text(edges)
    (raw / "IMDB-MULTI_graph_indicator.txt").write_text("1\n" * 3 + "2\n" * 3 + "3\n" * 3)
    (raw / "IMDB-MULTI_graph_labels.txt").write_text("1\n3\n2\n")


def _imdb_folds(folder: Path) -> None:
    _imdb_text(folder)
    indices = folder / "data" / "imdb_multi" / "10fold_idx"
    indices.mkdir()
    for fold in range(1, 11):
        (indices / f"train_idx-{fold}.txt").write_text("0\n2\n")
        (indices / f"test_idx-{fold}.txt").write_text("1\n")


# Few-shot images ---------------------------------------------------------------------------------
def _picture(size: tuple[int, int], seed: int = 0, kind: str = "PNG", mode: str = "RGB") -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, kind)
    return out.getvalue()


def _omniglot(folder: Path) -> None:
    (folder / "data" / "omniglot").mkdir(parents=True)
    for name in omniglot.SOURCES:
        with zipfile.ZipFile(folder / "data" / "omniglot" / f"{name}.zip", "w") as file:
            for character in (1, 2):
                for drawing in range(1, 21):
                    member = f"{name}/Latin/character0{character}/0001_{drawing:02}.png"
                    picture = _picture((105, 105), drawing, mode="1")
                    file.writestr(zipfile.ZipInfo(member), picture)


def _read_omniglot(folder: Path) -> Any:
    # The real archives have 1,623 characters; the sample has four.
    omniglot._CHARACTERS = dict.fromkeys(omniglot.SOURCES, 2)
    omniglot._TRAIN = 3
    return omniglot.Omniglot(split="train", rotations=False)


def _mini_pickle(folder: Path) -> None:
    (folder / "data" / "miniimagenet").mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (6, 84, 84, 3), np.uint8)
    content = {"image_data": images, "class_dict": {"n1": [0, 2, 4], "n2": [1, 3, 5]}}
    path = folder / "data" / "miniimagenet" / "mini-imagenet-cache-train.pkl"
    path.write_bytes(pickle.dumps(content, 2))


def _mini_images(folder: Path, zipped: bool = False) -> None:
    images = folder / "data" / "miniimagenet" / "images"
    images.mkdir(parents=True)
    for i in range(4):
        (images / f"n{i % 2}000{i}.jpg").write_bytes(_picture((90, 80), i, "JPEG"))
    rows = [["filename", "label"], *([f"n{i % 2}000{i}.jpg", f"n{i % 2}"] for i in range(4))]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    splits = folder / "data" / "miniimagenet_splits"
    splits.mkdir()
    if zipped:
        (splits / "train.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    else:
        (splits / "train.csv").write_text(text.getvalue())


# Datasets of PyG, and exported networks ----------------------------------------------------------
def _pyg(make: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: make(folder / "data")


def _hub(folder: Path) -> None:
    from fognn.training.hub_export import export

    export(_trained("graphs") / "run", folder / "net")


def _config_file(folder: Path) -> None:
    _run_folder(folder)
    config = Config.read(folder / "run" / "config.yaml")
    (folder / "config.yaml").write_text(config.to_yaml())


_TU = "data/pyg/TUDataset/TINY"
_CIFAR = "data/cifar_fs/cifar_fs_100.npz"
_MINI = "data/miniimagenet"
_ZINC_KEPT = _stamped(_zinc_npz)
_DATA = ["--draw", "0"]

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        _graphs("graphs.pt", "graphs.pt", _saved(lambda: molecules(12), "graphs.pt"), checked=True),
        _graphs("legacy.pt", "graphs.pt", _saved(lambda: molecules(12), "graphs.pt", old=True)),
        _graphs(
            "tuple.pt",
            "graphs.pt",
            _saved(lambda: tuple(molecules(12)), "graphs.pt"),
            checked=True,
        ),
        _graphs("collated.pt", "graphs.pt", _saved(_collated, "graphs.pt"), checked=True),
        _graphs(
            "batch.pt",
            "graphs.pt",
            _saved(lambda: Batch.from_data_list(molecules(12)), "graphs.pt"),
            checked=True,
        ),
        _graphs("flat.pt", "graphs.pt", _saved(_flat, "graphs.pt"), checked=True),
        _graphs(
            "graphs.npz",
            "graphs.npz",
            lambda folder: write_graphs(folder / "graphs.npz", molecules(12)),
            checked=True,
        ),
        _graphs("folder/a.npz", "graphs/a.npz", _folder_of_graphs, checked=True),
        _graphs("folder/b.pt", "graphs/b.pt", _folder_of_graphs, checked=True),
        _one("graph.npz", "graph.npz", lambda folder: _one_graph(folder / "graph.npz")),
        _one("graph.pt", "graph.pt", _one_graph_pt),
        _one("heterophilous.npz", "graph.npz", _heterophilous),
        Format(
            "molecules.csv",
            "molecules.csv",
            _csv,
            lambda folder: [
                read_own_data(folder / "molecules.csv", target_column="value"),
                read_own_data(folder / "molecules.csv", target_column="active,value"),
                read_own_data(
                    folder / "molecules.csv", target_column="kind", task="classification"
                ),
                read_smiles_csv(folder / "molecules.csv", skip_bad=True),
            ],
            [
                ["data", "molecules.csv", *_DATA],
                ["data", "molecules.csv", "--target-column", "value", "-o", "out.html"],
                _train("molecules.csv", "--target-column", "value"),
                _train("molecules.csv", "--target-column", "kind", "--task", "classification"),
            ],
        ),
        Format(
            "--config",
            "config.yaml",
            _config_file,
            lambda folder: Config.read(folder / "config.yaml"),
            [["train", "--config", "config.yaml", "-o", "new", "--no-ledger", "--quiet"]],
            named=("config:", "create_model:"),
        ),
        Format("run/config.yaml", "run/config.yaml", _run_folder, _entered, [_COLLECT, _REPORT]),
        Format("run/result.json", "run/result.json", _run_folder, _entered, [_COLLECT, _REPORT]),
        Format("run/metrics.csv", "run/metrics.csv", _run_folder, _entered, [_COLLECT, _REPORT]),
        Format(
            "run/best.ckpt",
            "run/best.ckpt",
            _run_folder,
            lambda folder: fognn.load(folder / "run"),
            [
                ["evaluate", "run", "--threads", "1"],
                ["predict", "run", "graphs.npz", "-o", "out.csv"],
                ["export", "run", "-o", "net"],
                _longer(),
            ],
            checked=True,
        ),
        Format(
            "run/last.ckpt",
            "run/last.ckpt",
            _interrupted,
            lambda folder: fognn.load(folder / "run", "last"),
            [["evaluate", "run", "--checkpoint", "last", "--threads", "1"], _longer()],
            checked=True,
        ),
        Format("zinc.jsonl", "results/zinc.jsonl", _ledgers, _lines("zinc"), [*_TABLES, _SITE]),
        Format("runs.jsonl", "results/runs.jsonl", _ledgers, _lines("runs"), [_SITE]),
        Format(
            "searches/zinc.jsonl",
            "results/searches/zinc.jsonl",
            _ledgers,
            lambda folder: Choices(choices_file(folder / "results", "zinc")).all(),
            [*_TABLES, _SITE],
        ),
        Format(
            "compare/own.jsonl",
            "results/compare/own.jsonl",
            _compared,
            _lines("compare/own"),
            [["table", "compare"], ["table", "compare", "--csv"], _SITE],
        ),
        Format(
            "zinc12k.npz",
            "data/zinc/zinc12k.npz",
            _zinc_npz,
            lambda folder: ZINC(split="train"),
            [["data", "zinc", *_DATA], ["train", "zinc", "gcn", *_TINY, "-o", "new"]],
            checked=True,
        ),
        Format(
            "zinc12k.csv",
            "data/zinc/zinc12k_train.csv",
            _zinc_csv,
            lambda folder: ZINC(split="train"),
            [["data", "zinc", *_DATA]],
        ),
        Format(
            "cached zinc",
            "cache/zinc/processed/zinc-v1-12k-npz-STAMP-train.pt",
            _cached(_ZINC_KEPT, lambda folder: ZINC(split="train")),
            lambda folder: ZINC(split="train"),
            [["data", "zinc", *_DATA], ["train", "zinc", "gcn", *_TINY, "-o", "new"]],
            checked=True,
            remade=True,
        ),
        Format(
            "cached cluster",
            "cache/cluster/processed/cluster-v1-seed0-train-4.pt",
            _cached(lambda folder: None, lambda folder: CLUSTER(num_graphs=4)),
            lambda folder: CLUSTER(num_graphs=4),
            checked=True,
            remade=True,
        ),
        Format(
            "tsp.npz",
            "data/tsp/tsp_train.npz",
            _tsp_npz,
            lambda folder: TSP(split="train"),
            [["data", "tsp", *_DATA]],
            checked=True,
        ),
        Format(
            "official CLUSTER",
            "data/benchmarking_gnns/CLUSTER/raw/CLUSTER_v2.pt",
            _benchmark("CLUSTER", "CLUSTER_v2", "node"),
            lambda folder: CLUSTER(source="official", num_graphs=4),
            checked=True,
        ),
        Format(
            "official TSP",
            "data/benchmarking_gnns/TSP/raw/TSP_v2.pt",
            _benchmark("TSP", "TSP_v2", "edge"),
            lambda folder: TSP(source="official"),
            [["data", "tsp", *_DATA]],
            checked=True,
        ),
        Format(
            "IMDBMULTI.txt",
            "data/imdb_multi/IMDBMULTI.txt",
            _imdb_text,
            lambda folder: IMDBMulti(),
            [["data", "imdb-multi", *_DATA]],
        ),
        Format(
            "10fold_idx",
            "data/imdb_multi/10fold_idx/train_idx-1.txt",
            _imdb_folds,
            lambda folder: IMDBMulti().folds(),
        ),
        *(
            Format(
                f"TU {part}",
                f"data/IMDB-MULTI/IMDB-MULTI_{part}.txt",
                _imdb_tu,
                lambda folder: IMDBMulti(source="tu"),
            )
            for part in ("A", "graph_indicator", "graph_labels")
        ),
        Format(
            "cifar_fs_100.npz",
            _CIFAR,
            lambda folder: write_cifar(folder / "data", 1) and None,
            lambda folder: CIFARFS("val"),
            [["data", "cifar-fs", *_DATA]],
            checked=True,
        ),
        Format(
            "omniglot.zip",
            "data/omniglot/images_background.zip",
            _omniglot,
            _read_omniglot,
            checked=True,
        ),
        Format(
            "kept omniglot",
            "cache/omniglot/processed/omniglot_28_v1_STAMP.pt",
            _cached(_omniglot, _read_omniglot),
            _read_omniglot,
            checked=True,
            remade=True,
        ),
        Format(
            "mini-imagenet.pkl",
            f"{_MINI}/mini-imagenet-cache-train.pkl",
            _mini_pickle,
            lambda folder: MiniImageNet(split="train"),
            [["data", "miniimagenet", "--split", "train", *_DATA]],
        ),
        Format(
            "mini-imagenet.jpg",
            f"{_MINI}/images/n00000.jpg",
            _mini_images,
            lambda folder: MiniImageNet(split="train"),
            [["data", "miniimagenet", "--split", "train", *_DATA]],
        ),
        Format(
            "mini-imagenet.csv",
            "data/miniimagenet_splits/train.csv",
            _mini_images,
            lambda folder: MiniImageNet(split="train"),
            [["data", "miniimagenet", "--split", "train", *_DATA]],
        ),
        Format(
            "mini-imagenet.csv.gz",
            "data/miniimagenet_splits/train.csv.gz",
            lambda folder: _mini_images(folder, zipped=True),
            lambda folder: MiniImageNet(split="train"),
            named=("miniimagenet_splits/train.csv",),
        ),
        Format(
            "net/config.json",
            "net/config.json",
            _hub,
            lambda folder: fognn.load(folder / "net"),
        ),
        Format(
            "net/model.safetensors",
            "net/model.safetensors",
            _hub,
            lambda folder: fognn.load(folder / "net"),
        ),
        *(
            Format(
                f"pyg TUDataset {part}",
                f"{_TU}/raw/TINY_{part}.txt",
                _pyg(pyg_roots.tu_dataset),
                lambda folder: open_pyg("pyg:TUDataset/TINY"),
                [_train("pyg:TUDataset/TINY")],
                named=("pyg:",),
            )
            for part in ("A", "graph_indicator", "graph_labels", "node_labels")
        ),
        Format(
            "pyg TUDataset processed",
            f"{_TU}/processed/data.pt",
            _cached(_pyg(pyg_roots.tu_dataset), lambda folder: open_pyg("pyg:TUDataset/TINY")),
            lambda folder: open_pyg("pyg:TUDataset/TINY"),
            [_train("pyg:TUDataset/TINY")],
            named=("pyg:",),
        ),
        Format(
            "pyg MoleculeNet",
            "data/pyg/MoleculeNet/esol/raw/delaney-processed.csv",
            _pyg(pyg_roots.esol),
            lambda folder: open_pyg("pyg:MoleculeNet/ESOL"),
            [_train("pyg:MoleculeNet/ESOL")],
            named=("pyg:",),
        ),
        Format(
            "pyg Planetoid",
            "data/pyg/Planetoid/Cora/raw/ind.cora.x",
            _pyg(pyg_roots.planetoid),
            lambda folder: open_pyg("pyg:Planetoid/Cora"),
            safe=False,
            named=("pyg:",),
        ),
        Format(
            "pyg LRGBDataset",
            "data/pyg/LRGBDataset/peptides-func/raw/train.pt",
            _pyg(pyg_roots.peptides),
            lambda folder: open_pyg("pyg:LRGBDataset/Peptides-func"),
            safe=False,
            named=("pyg:",),
        ),
    )
}


def arguments(command: Command) -> Command:
    """The arguments of a command of a format."""
    return [part.replace("{graphs}", str(_trained("graphs") / "graphs.npz")) for part in command]


def sample(one: Format, folder: Path) -> Path:
    """Writes the sample of a format; returns its file. Made once a process, then copied."""
    made = prepare(one.name)
    shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
    pattern = one.file.replace("STAMP", "*")
    return next(iter(folder.glob(pattern)))


@functools.cache
def prepare(name: str) -> Path:
    """Makes the sample of a format, once a process; returns its folder."""
    folder = _new_folder()
    (folder / "data").mkdir()
    (folder / "cache").mkdir()
    FORMATS[name].make(folder)
    return folder


def clean() -> None:
    """Removes the samples of this process."""
    for folder in _OWN:
        shutil.rmtree(folder, ignore_errors=True)
    _OWN.clear()
    prepare.cache_clear()
    _trained.cache_clear()
