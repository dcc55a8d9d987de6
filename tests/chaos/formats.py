"""Every file format that fognn reads, each with a small valid sample and the ways to read it."""

import dataclasses
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyg_roots
import torch
from tiny_images import write_cifar
from tiny_runs import molecules
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset

import fognn
from chaos.samples import (
    OWN,
    TINY,
    benchmark,
    collated,
    compared,
    config_file,
    environment,
    exported,
    flat,
    folder_of_graphs,
    heterophilous,
    imdb_folds,
    imdb_text,
    imdb_tu,
    interrupted,
    kept_weights,
    ledgers,
    mini_images,
    mini_pickle,
    molecules_csv,
    new_folder,
    omniglot_zips,
    one_graph,
    one_graph_pt,
    own_images,
    pyg_root,
    read_once,
    run_folder,
    saved,
    stamped,
    train,
    trained,
    tsp_npz,
    with_run,
    zinc_csv,
    zinc_npz,
)
from fognn.data import CLUSTER, TSP, ZINC, IMDBMulti, omniglot, open_pyg, write_graphs
from fognn.data.few_shot import CIFARFS
from fognn.data.mini_imagenet import MiniImageNet
from fognn.data.own_data import read_own_data
from fognn.data.smiles_csv import read_smiles_csv
from fognn.experiments.keep import enter
from fognn.experiments.ledger import ledger_of
from fognn.experiments.search import choices_of
from fognn.training import Config, predict_images

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


def _own(name: str, **arguments: Any) -> Callable[[Path], Any]:
    return lambda folder: read_own_data(folder / name, **arguments)


def _graphs(name: str, file: str, make: Callable[[Path], None], **more: Any) -> Format:
    # With a slash, a folder is not taken for the name of a dataset.
    source = file if "/" not in file else f"{file.partition('/')[0]}/"
    commands = [["predict", "run", source, "-o", "out.csv"], train(source)]
    return Format(name, file, with_run(make), _own(source), commands, **more)


def _one(name: str, file: str, make: Callable[[Path], None]) -> Format:
    commands = [["predict", "run", file, "-o", "out.csv"], train(file)]
    return Format(name, file, with_run(make, "one graph"), _own(file), commands, checked=True)


def _longer() -> Command:
    # The run knows its data by the path in which it was trained.
    return ["train", "{graphs}", "gcn+fog", *TINY, "--epochs", "2", "-o", "run", "--no-ledger"]


def _entered(folder: Path) -> list[Any]:
    """What ``fognn collect`` makes of a run folder."""
    results = Path(tempfile.mkdtemp(dir=folder / "cache"))
    enter(folder / "run", results)
    found = ledger_of("runs", results).entries()
    return [dataclasses.replace(one, finished="") for one in found]


_REPORT = ["report", "run", "-o", "pages"]


_COLLECT = ["collect", "run", "--results", "results"]


def _lines(table: str) -> Callable[[Path], Any]:
    return lambda folder: ledger_of(table, folder / "results").entries()


_TABLES = [["table", "zinc"], ["table", "zinc", "--csv", "--at", "best"]]


_SITE = ["report", "--results", "results", "-o", "pages"]


def _read_omniglot(folder: Path) -> Any:
    # The real archives have 1,623 characters; the sample has four.
    few = {"_CHARACTERS": dict.fromkeys(omniglot.SOURCES, 2), "_TRAIN": 3}
    with patch.multiple(omniglot, **few):
        return omniglot.Omniglot(split="train", rotations=False)


_TU = "data/pyg/TUDataset/TINY"
_CIFAR = "data/cifar_fs/cifar_fs_100.npz"
_MINI = "data/miniimagenet"
_ZINC_KEPT = stamped(zinc_npz)
_DATA = ["--draw", "0"]


def _mini(name: str, file: str, make: Callable[[Path], None]) -> Format:
    command = ["data", "miniimagenet", "--split", "train", *_DATA]
    return Format(name, file, make, lambda folder: MiniImageNet(split="train"), [command])


def _own_image(name: str, file: str) -> Format:
    images = ["--support", "support", "--query", "query.png"]
    return Format(
        name,
        file,
        own_images,
        lambda folder: predict_images(
            folder / "net.ckpt", folder / "support", folder / "query.png", threads=1
        ),
        [["predict", "net.ckpt", *images, "-o", "out.csv", "--html", "out.html"]],
    )


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        _graphs("graphs.pt", "graphs.pt", saved(lambda: molecules(12), "graphs.pt"), checked=True),
        _graphs("legacy.pt", "graphs.pt", saved(lambda: molecules(12), "graphs.pt", old=True)),
        _graphs(
            "tuple.pt",
            "graphs.pt",
            saved(lambda: tuple(molecules(12)), "graphs.pt"),
            checked=True,
        ),
        _graphs("collated.pt", "graphs.pt", saved(collated, "graphs.pt"), checked=True),
        _graphs(
            "batch.pt",
            "graphs.pt",
            saved(lambda: Batch.from_data_list(molecules(12)), "graphs.pt"),
            checked=True,
        ),
        _graphs("flat.pt", "graphs.pt", saved(flat, "graphs.pt"), checked=True),
        _graphs(
            "graphs.npz",
            "graphs.npz",
            lambda folder: write_graphs(folder / "graphs.npz", molecules(12)),
            checked=True,
        ),
        _graphs("folder/a.npz", "graphs/a.npz", folder_of_graphs, checked=True),
        _graphs("folder/b.pt", "graphs/b.pt", folder_of_graphs, checked=True),
        _one("graph.npz", "graph.npz", lambda folder: one_graph(folder / "graph.npz")),
        _one("graph.pt", "graph.pt", one_graph_pt),
        _one("heterophilous.npz", "graph.npz", heterophilous),
        Format(
            "molecules.csv",
            "molecules.csv",
            molecules_csv,
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
                train("molecules.csv", "--target-column", "value"),
                train("molecules.csv", "--target-column", "kind", "--task", "classification"),
            ],
        ),
        Format(
            "--config",
            "config.yaml",
            config_file,
            lambda folder: Config.read(folder / "config.yaml"),
            [["train", "--config", "config.yaml", "-o", "new", "--no-ledger", "--quiet"]],
            named=("config:", "create_model:", "Block:", "is not there"),
        ),
        Format("run/config.yaml", "run/config.yaml", run_folder, _entered, [_COLLECT, _REPORT]),
        Format("run/result.json", "run/result.json", run_folder, _entered, [_COLLECT, _REPORT]),
        Format("run/metrics.csv", "run/metrics.csv", run_folder, _entered, [_COLLECT, _REPORT]),
        Format(
            "run/best.ckpt",
            "run/best.ckpt",
            run_folder,
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
            interrupted,
            lambda folder: fognn.load(folder / "run", "last"),
            [["evaluate", "run", "--checkpoint", "last", "--threads", "1"], _longer()],
            checked=True,
        ),
        Format("zinc.jsonl", "results/zinc.jsonl", ledgers, _lines("zinc"), [*_TABLES, _SITE]),
        Format("runs.jsonl", "results/runs.jsonl", ledgers, _lines("runs"), [_SITE]),
        Format(
            "searches/zinc.jsonl",
            "results/searches/zinc.jsonl",
            ledgers,
            lambda folder: choices_of("zinc", folder / "results").read(),
            [*_TABLES, _SITE],
        ),
        Format(
            "compare/own.jsonl",
            "results/compare/own.jsonl",
            compared,
            _lines("compare/own"),
            [["table", "compare"], ["table", "compare", "--csv"], _SITE],
        ),
        Format(
            "zinc12k.npz",
            "data/zinc/zinc12k.npz",
            zinc_npz,
            lambda folder: ZINC(split="train"),
            [["data", "zinc", *_DATA], ["train", "zinc", "gcn", *TINY, "-o", "new"]],
            checked=True,
        ),
        Format(
            "zinc12k.csv",
            "data/zinc/zinc12k_train.csv",
            zinc_csv,
            lambda folder: ZINC(split="train"),
            [["data", "zinc", *_DATA]],
        ),
        Format(
            "cached zinc",
            "cache/zinc/processed/zinc-v1-12k-npz-STAMP-train.pt",
            read_once(_ZINC_KEPT, lambda folder: ZINC(split="train")),
            lambda folder: ZINC(split="train"),
            [["data", "zinc", *_DATA], ["train", "zinc", "gcn", *TINY, "-o", "new"]],
            checked=True,
            remade=True,
        ),
        Format(
            "cached cluster",
            "cache/cluster/processed/cluster-v1-seed0-train-4.pt",
            read_once(lambda folder: None, lambda folder: CLUSTER(num_graphs=4)),
            lambda folder: CLUSTER(num_graphs=4),
            checked=True,
            remade=True,
        ),
        Format(
            "tsp.npz",
            "data/tsp/tsp_train.npz",
            tsp_npz,
            lambda folder: TSP(split="train"),
            [["data", "tsp", *_DATA]],
            checked=True,
        ),
        Format(
            "official CLUSTER",
            "data/benchmarking_gnns/CLUSTER/raw/CLUSTER_v2.pt",
            benchmark("CLUSTER", "CLUSTER_v2", "node"),
            lambda folder: CLUSTER(source="official", num_graphs=4),
            checked=True,
        ),
        Format(
            "official TSP",
            "data/benchmarking_gnns/TSP/raw/TSP_v2.pt",
            benchmark("TSP", "TSP_v2", "edge"),
            lambda folder: TSP(source="official"),
            [["data", "tsp", *_DATA]],
            checked=True,
        ),
        Format(
            "IMDBMULTI.txt",
            "data/imdb_multi/IMDBMULTI.txt",
            imdb_text,
            lambda folder: IMDBMulti(),
            [["data", "imdb-multi", *_DATA]],
        ),
        Format(
            "10fold_idx",
            "data/imdb_multi/10fold_idx/train_idx-1.txt",
            imdb_folds,
            lambda folder: IMDBMulti().folds(),
        ),
        *(
            Format(
                f"TU {part}",
                f"data/IMDB-MULTI/IMDB-MULTI_{part}.txt",
                imdb_tu,
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
            omniglot_zips,
            _read_omniglot,
            checked=True,
        ),
        Format(
            "kept omniglot",
            "cache/omniglot/processed/omniglot_28_v1_STAMP.pt",
            read_once(omniglot_zips, _read_omniglot),
            _read_omniglot,
            checked=True,
            remade=True,
        ),
        _mini("mini-imagenet.pkl", f"{_MINI}/mini-imagenet-cache-train.pkl", mini_pickle),
        _mini("mini-imagenet.jpg", f"{_MINI}/images/n00000.jpg", mini_images),
        _mini("mini-imagenet.csv", "data/miniimagenet_splits/train.csv", mini_images),
        Format(
            "mini-imagenet.csv.gz",
            "data/miniimagenet_splits/train.csv.gz",
            lambda folder: mini_images(folder, zipped=True),
            lambda folder: MiniImageNet(split="train"),
            named=("miniimagenet_splits/train.csv",),
        ),
        _own_image("query image", "query.png"),
        _own_image("support image", "support/dog/0.png"),
        Format(
            "net/config.json",
            "net/config.json",
            exported,
            lambda folder: fognn.load(folder / "net"),
        ),
        Format(
            "net/model.safetensors",
            "net/model.safetensors",
            exported,
            lambda folder: fognn.load(folder / "net"),
        ),
        Format(
            "kept weights",
            "weights/zinc/gcn+fog.safetensors",
            kept_weights,
            lambda folder: fognn.load(folder / "weights" / "zinc" / "gcn+fog.safetensors"),
            [["export", "weights/zinc/gcn+fog.safetensors", "-o", "net"]],
        ),
        *(
            Format(
                f"pyg TUDataset {part}",
                f"{_TU}/raw/TINY_{part}.txt",
                pyg_root(pyg_roots.tu_dataset),
                lambda folder: open_pyg("pyg:TUDataset/TINY"),
                [train("pyg:TUDataset/TINY")],
                named=("pyg:",),
            )
            for part in ("A", "graph_indicator", "graph_labels", "node_labels")
        ),
        Format(
            "pyg TUDataset processed",
            f"{_TU}/processed/data.pt",
            read_once(
                pyg_root(pyg_roots.tu_dataset), lambda folder: open_pyg("pyg:TUDataset/TINY")
            ),
            lambda folder: open_pyg("pyg:TUDataset/TINY"),
            [train("pyg:TUDataset/TINY")],
            named=("pyg:",),
        ),
        Format(
            "pyg MoleculeNet",
            "data/pyg/MoleculeNet/esol/raw/delaney-processed.csv",
            pyg_root(pyg_roots.esol),
            lambda folder: open_pyg("pyg:MoleculeNet/ESOL"),
            [train("pyg:MoleculeNet/ESOL")],
            named=("pyg:",),
        ),
        Format(
            "pyg Planetoid",
            "data/pyg/Planetoid/Cora/raw/ind.cora.x",
            pyg_root(pyg_roots.planetoid),
            lambda folder: open_pyg("pyg:Planetoid/Cora"),
            safe=False,
            named=("pyg:",),
        ),
        Format(
            "pyg LRGBDataset",
            "data/pyg/LRGBDataset/peptides-func/raw/train.pt",
            pyg_root(pyg_roots.peptides),
            lambda folder: open_pyg("pyg:LRGBDataset/Peptides-func"),
            safe=False,
            named=("pyg:",),
        ),
    )
}


def arguments(command: Command) -> Command:
    """The arguments of a command of a format."""
    return [part.replace("{graphs}", str(trained("graphs") / "graphs.npz")) for part in command]


def sample(one: Format, folder: Path) -> Path:
    """Writes the sample of a format; returns its file. Made once a process, then copied."""
    made = prepare(one.name)
    shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
    pattern = one.file.replace("STAMP", "*")
    return next(iter(folder.glob(pattern)))


@functools.cache
def prepare(name: str) -> Path:
    """Makes the sample of a format, once a process; returns its folder."""
    folder = new_folder()
    (folder / "data").mkdir()
    (folder / "cache").mkdir()
    FORMATS[name].make(folder)
    return folder


def clean() -> None:
    """Removes the samples of this process."""
    for folder in OWN:
        shutil.rmtree(folder, ignore_errors=True)
    OWN.clear()
    prepare.cache_clear()
    trained.cache_clear()
