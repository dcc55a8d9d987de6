"""Small valid samples of every file format that fognn reads."""

import csv
import functools
import gzip
import io
import os
import pickle
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyg_roots
import torch
from compared_runs import compared_entry
from imdb_example import TEXT
from ledger_entries import entry
from own_images import untrained_few_shot, write_image, write_support
from tiny_runs import molecules
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from chaos.commands import judge, run
from fognn.data import omniglot, write_graphs
from fognn.experiments import protocol
from fognn.experiments.compared import ComparedRun
from fognn.experiments.keep import enter
from fognn.experiments.ledger import ledger_of
from fognn.experiments.search import choices_of, choose, grid
from fognn.experiments.tables import plan
from fognn.models import TASKS, create_model
from fognn.models.weights import Weights, write_weights
from fognn.training import Config

Command = list[str]
Write = Callable[[Path], None]


def environment(folder: Path) -> dict[str, str]:
    """The environment of a trial: data and cache lie in its folder."""
    return {
        "FOGNN_DATA": str(folder / "data"),
        "FOGNN_CACHE": str(folder / "cache"),
        "HOME": str(folder),
    }


OWN: list[Path] = []
TINY = ["--epochs", "1", "--batch-size", "8", "--threads", "1", "--quiet"]
TINY += ["--set", "model.channels=8", "--set", "model.layers=2"]


def train(data: str, *more: str) -> Command:
    """A run of a second."""
    return ["train", data, "gcn+fog", *TINY, *more, "-o", "new"]


def new_folder() -> Path:
    OWN.append(Path(tempfile.mkdtemp(prefix="fognn-chaos-")))
    return OWN[-1]


@functools.cache
def trained(level: str) -> Path:
    """A folder with ``run``, ``graphs.npz`` and ``results``; made once a process."""
    folder = new_folder()
    write_graphs(folder / "graphs.npz", molecules(12))
    if level == "one graph":
        one_graph(folder / "graph.npz")
    source = "graph.npz" if level == "one graph" else "graphs.npz"
    arguments = [*train(source)[:-1], "run", "--results", "results"]
    ended = run(arguments, folder, folder / "output", environment(folder))
    (folder / "data").mkdir()
    shutil.rmtree(folder / "output")
    if judge(ended) != "done":
        raise RuntimeError(f"{arguments} failed: {ended.err}")
    return folder


def with_run(make: Callable[[Path], None], level: str = "graphs") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        shutil.copytree(trained(level) / "run", folder / "run")
        make(folder)

    return write


def saved(content: Callable[[], Any], name: str, old: bool = False) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        torch.save(content(), folder / name, _use_new_zipfile_serialization=not old)

    return write


def collated() -> Any:
    data, slices = InMemoryDataset.collate(molecules(12))
    return data.to_dict(), slices, Data


def flat() -> dict[str, Tensor]:
    graphs = molecules(12)
    return {
        "n": torch.tensor([g.num_nodes for g in graphs]),
        "e": torch.tensor([g.num_edges for g in graphs]),
        "y_level": "graph",
        **{name: torch.cat([g[name] for g in graphs]) for name in ("x", "edge_attr", "y")},
        "edge_index": torch.cat([g.edge_index for g in graphs], 1),
    }


def folder_of_graphs(folder: Path) -> None:
    (folder / "graphs").mkdir()
    write_graphs(folder / "graphs" / "a.npz", molecules(6))
    torch.save(molecules(6, seed=1), folder / "graphs" / "b.pt")


def node_graph(splits: int = 2) -> dict[str, Any]:
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


def one_graph(path: Path) -> None:
    np.savez(path, **node_graph())


def one_graph_pt(folder: Path) -> None:
    tensors = {name: torch.from_numpy(array) for name, array in node_graph().items()}
    torch.save(Data(**tensors), folder / "graph.pt")


def heterophilous(folder: Path) -> None:
    graph = node_graph()
    arrays = {"node_features": graph["x"], "node_labels": graph["y"]}
    arrays |= {f"{name}s": graph[name].T for name in graph if name.endswith("mask")}
    np.savez_compressed(folder / "graph.npz", edges=graph["edge_index"].T, **arrays)


def molecules_csv(folder: Path) -> None:
    rows = [f"{s},{len(s) / 3:.3f},{i % 2},{'ab'[i % 2]}" for i, s in enumerate(SMILES)]
    text = "\n".join(["smiles,value,active,kind", *rows]) + "\n"
    (folder / "molecules.csv").write_text(text)


SMILES = [*pyg_roots.MOLECULES * 2, "CC=O", "O", "N#N", "C[NH3+]", "[Na+].[Cl-]", "F/C=C/F"]


def run_folder(folder: Path) -> None:
    made = trained("graphs")
    shutil.copytree(made / "run", folder / "run")
    shutil.copy2(made / "graphs.npz", folder)


def interrupted(folder: Path) -> None:
    run_folder(folder)
    (folder / "run" / "result.json").unlink()


def ledgers(folder: Path) -> None:
    rows = plan("zinc", ["gcn", "gcn+fog"], 2, ours=False)
    for number, planned in enumerate(rows):
        ledger_of("zinc", folder / "results").add(entry(planned, 0.4 + number / 100))
    enter(trained("graphs") / "run", folder / "results")
    trials = [entry(trial, 0.3 + i / 100) for i, trial in enumerate(grid(rows[-1]))]
    choice = choose(rows[-1], trials)
    assert choice is not None
    choices_of("zinc", folder / "results").add(choice)


def compared(folder: Path) -> None:
    ledgers(folder)
    config = Config.read(trained("graphs") / "run" / "config.yaml")
    for number, name in enumerate(("gcn", "gcn+fog")):
        runs = [
            ComparedRun(
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
        choices_of("compare/own", folder / "results").add(choice)


def zinc_npz(folder: Path) -> None:
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


def zinc_csv(folder: Path) -> None:
    (folder / "data" / "zinc").mkdir(parents=True)
    rows = [f"{s},{len(s)}" for s in ("CCO", "CCC", "CC(=O)O", "CN", "CCCl", "c1ccccc1")]
    for split in ("train", "val", "test"):
        text = "\n".join(["smiles,y", *rows]) + "\n"
        (folder / "data" / "zinc" / f"zinc12k_{split}.csv").write_text(text)


def tsp_npz(folder: Path) -> None:
    random = np.random.default_rng(0)
    (folder / "data" / "tsp").mkdir(parents=True)
    n = np.array([30, 28, 33])
    tours = [random.permutation(size) for size in n]
    for split in ("train", "val", "test"):
        points = random.random((n.sum(), 2)).astype(np.float32)
        path = folder / "data" / "tsp" / f"tsp_{split}.npz"
        np.savez(path, n=n, c=points, t=np.concatenate(tours).astype(np.int16))


def benchmark(name: str, stem: str, level: str) -> Callable[[Path], None]:
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


def read_once(make: Callable[[Path], None], read: Callable[[Path], Any]) -> Callable[[Path], None]:
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


def stamped(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """Sets the times of raw files: the names of processed files depend on them."""

    def write(folder: Path) -> None:
        make(folder)
        for path in folder.rglob("*"):
            os.utime(path, ns=(10**18, 10**18))

    return write


def imdb_text(folder: Path) -> None:
    (folder / "data" / "imdb_multi").mkdir(parents=True)
    (folder / "data" / "imdb_multi" / "IMDBMULTI.txt").write_text(TEXT)


def imdb_tu(folder: Path) -> None:
    raw = folder / "data" / "IMDB-MULTI"
    raw.mkdir(parents=True)
    pairs = [(1, 2), (2, 3), (1, 3), (4, 5), (5, 6), (4, 6), (7, 8), (8, 9)]
    edges = "".join(f"{a}, {b}\n{b}, {a}\n" for a, b in pairs)
    (raw / "IMDB-MULTI_A.txt").write_text(edges)
    (raw / "IMDB-MULTI_graph_indicator.txt").write_text("1\n" * 3 + "2\n" * 3 + "3\n" * 3)
    (raw / "IMDB-MULTI_graph_labels.txt").write_text("1\n3\n2\n")


def imdb_folds(folder: Path) -> None:
    imdb_text(folder)
    indices = folder / "data" / "imdb_multi" / "10fold_idx"
    indices.mkdir()
    for fold in range(1, 11):
        (indices / f"train_idx-{fold}.txt").write_text("0\n2\n")
        (indices / f"test_idx-{fold}.txt").write_text("1\n")


def picture(size: tuple[int, int], seed: int = 0, kind: str = "PNG", mode: str = "RGB") -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, kind)
    return out.getvalue()


def omniglot_zips(folder: Path) -> None:
    (folder / "data" / "omniglot").mkdir(parents=True)
    for name in omniglot.SOURCES:
        with zipfile.ZipFile(folder / "data" / "omniglot" / f"{name}.zip", "w") as file:
            for character in (1, 2):
                for drawing in range(1, 21):
                    member = f"{name}/Latin/character0{character}/0001_{drawing:02}.png"
                    content = picture((105, 105), drawing, mode="1")
                    file.writestr(zipfile.ZipInfo(member), content)


def mini_pickle(folder: Path) -> None:
    (folder / "data" / "miniimagenet").mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (6, 84, 84, 3), np.uint8)
    content = {"image_data": images, "class_dict": {"n1": [0, 2, 4], "n2": [1, 3, 5]}}
    path = folder / "data" / "miniimagenet" / "mini-imagenet-cache-train.pkl"
    path.write_bytes(pickle.dumps(content, 2))


def mini_images(folder: Path, zipped: bool = False) -> None:
    images = folder / "data" / "miniimagenet" / "images"
    images.mkdir(parents=True)
    for i in range(4):
        (images / f"n{i % 2}000{i}.jpg").write_bytes(picture((90, 80), i, "JPEG"))
    rows = [["filename", "label"], *([f"n{i % 2}000{i}.jpg", f"n{i % 2}"] for i in range(4))]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    splits = folder / "data" / "miniimagenet_splits"
    splits.mkdir()
    if zipped:
        (splits / "train.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    else:
        (splits / "train.csv").write_text(text.getvalue())


def own_images(folder: Path) -> None:
    untrained_few_shot(folder / "net.ckpt")
    write_support(folder / "support", {"cat": 1, "dog": 2})
    write_image(folder / "query.png", 7)


def pyg_root(make: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: make(folder / "data")


def exported(folder: Path) -> None:
    from fognn.training.hub_export import export

    export(trained("graphs") / "run", folder / "net")


def kept_weights(folder: Path) -> None:
    widths = {"channels": 16, "fog_channels": 8, "h1": 4, "h2": 2, "layers": 2}
    config = protocol("zinc", "gcn+fog", 0, {f"model.{name}": n for name, n in widths.items()})
    task = TASKS["zinc"]
    net = create_model("gcn+fog", task, **config.model.settings)
    kept = Weights("zinc/gcn+fog-seed0", 0, 1, config.to_dict(), task.to_dict(), net.state_dict())
    write_weights(folder / "weights" / "zinc" / "gcn+fog.safetensors", kept)


def config_file(folder: Path) -> None:
    run_folder(folder)
    config = Config.read(folder / "run" / "config.yaml")
    (folder / "config.yaml").write_text(config.to_yaml())
