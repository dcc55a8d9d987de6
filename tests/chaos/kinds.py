"""The kinds of run that the campaign interrupts, each a second long."""

import csv
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny_images import write_cifar
from tiny_runs import TIMES

from chaos.commands import run
from fognn.utils.torch_files import load_torch

__all__ = ["KINDS", "SMALL", "Kind", "bits", "kinds", "prepare"]

# Of result.json: what the clock and the machine decide, and not the training.
_MACHINE = ("seconds", "seconds_per_epoch", "peak_memory", "command", "commit", "fingerprint")
_WIDTHS = ("channels=16", "fog_channels=8", "h1=4", "h2=2")
SMALL = [word for width in _WIDTHS for word in ("--set", f"model.{width}")]


@dataclass(frozen=True)
class Kind:
    """A kind of run: the arguments of ``fognn train``, without the folder.

    ``cached`` is set if its data is prepared and kept in the cache: a trial may begin without it.
    """

    name: str
    arguments: tuple[str, ...]
    cached: bool = False

    def command(self, folder: str) -> list[str]:
        return ["train", *self.arguments, "-o", folder, "-q"]


def _kind(name: str, *arguments: str, cached: bool = False) -> Kind:
    return Kind(name, arguments, cached)


KINDS = (
    _kind(
        *("nodes of generated graphs", "pattern", "gcn+fog", "--fraction", "0.001"),
        *("--epochs", "4", "--batch-size", "4", *SMALL),
        cached=True,
    ),
    _kind(
        *("edges and a plateau of the rate", "tsp", "gatedgcn-e+fog", "--data", "data"),
        *("--epochs", "4", "--batch-size", "2", *SMALL, "--set", "training.patience=0"),
        cached=True,
    ),
    _kind(
        *("csv of molecules", "molecules.csv", "gin+fog", "--target-column", "y"),
        *("--epochs", "5", "--batch-size", "8", "--set", "model.dropout=0.2", *SMALL),
    ),
    _kind("one graph", "graph.npz", "gcn+fog", "--epochs", "8", *SMALL),
    _kind(
        *("sampled neighbourhoods", "graph.npz", "graphsage+fog", "--neighbors", "3,2"),
        *("--epochs", "4", "--batch-size", "8", *SMALL, "--set", "model.layers=2"),
    ),
    _kind("folds", "folds.npz", "gatedgcn+fog", "--split", "all", "--epochs", "3", *SMALL),
    _kind(
        *("few-shot images", "cifar-fs", "fewshot-gnn+fog", "--data", "data", "--epochs", "3"),
        *("--batch-size", "2", "--set", "training.steps=2", "--set", "data.episodes=4"),
        *("--set", "model.embedding=8"),
        cached=True,
    ),
)
# With the files of ZINC and IMDB-MULTI in FOGNN_DATA.
REAL = (
    _kind(
        *("ZINC", "zinc", "gatedgcn-e+fog", "--fraction", "0.003", "--epochs", "3"),
        *("--batch-size", "8"),
    ),
    _kind(
        *("IMDB-MULTI, folds", "imdb-multi", "gin+fog", "--epochs", "1", "--batch-size", "200"),
        *SMALL,
    ),
)


def kinds() -> tuple[Kind, ...]:
    """The kinds that can be run here."""
    folder = os.environ.get("FOGNN_DATA")
    return KINDS + (REAL if folder and (Path(folder) / "zinc").is_dir() else ())


def prepare(folder: Path) -> None:
    """Writes the data of :obj:`KINDS` to a folder."""
    random = np.random.default_rng(0)
    rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CC1"]
    smiles = ["C" * n + tail for n in range(1, 6) for tail in ("", "O", "N", "Cl", *rings)]
    lines = [f"{text},{random.normal():.3f}\n" for text in smiles]
    (folder / "molecules.csv").write_text("smiles,y\n" + "".join(lines))
    for name, splits in (("graph.npz", 0), ("folds.npz", 3)):
        np.savez(folder / name, **_graph(random, splits))
    write_cifar(folder / "data", images=8)
    for split, graphs in (("train", 8), ("val", 4), ("test", 4)):
        arguments = ["generate", "tsp", "--graphs", str(graphs), "--split", split, "--fewest", "26"]
        arguments += ["--most", "30", "--seconds", "0.01", "--workers", "1"]
        ended = run([*arguments, "-o", f"data/tsp/tsp_{split}.npz"], folder, folder / "output")
        assert ended.code == 0, ended.err


def _graph(random: np.random.Generator, splits: int) -> dict[str, Any]:
    nodes = 60
    y = np.arange(nodes) % 3
    edges = random.integers(0, nodes, (2, 240))
    which = random.permuted(np.tile(np.arange(nodes) % 4, (max(1, splits), 1)), axis=1).T
    masks = {"train_mask": which < 2, "val_mask": which == 2, "test_mask": which == 3}
    if not splits:
        masks = {name: mask[:, 0] for name, mask in masks.items()}
    x = (random.random((nodes, 6)) + np.eye(3)[y].repeat(2, 1)).astype(np.float32)
    return {"x": x, "edge_index": np.concatenate([edges, edges[::-1]], 1), "y": y, **masks}


def bits(folder: Path) -> str:
    """A digest of all that a finished run has trained and measured, without the clock."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = _READERS.get(path.name, lambda _: b"")(path)
        digest.update(content and str(path.relative_to(folder)).encode() + content)
    return digest.hexdigest()


def _metrics(path: Path) -> bytes:
    with open(path, newline="") as file:
        rows = [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]
    return json.dumps(rows).encode()


def _result(path: Path) -> bytes:
    content = {k: v for k, v in json.loads(path.read_text()).items() if k not in _MACHINE}
    for fold in content.get("folds") or []:
        fold.pop("seconds", None)
    return json.dumps(content, sort_keys=True).encode()


def _checkpoint(path: Path) -> bytes:
    weights = load_torch(path)["model"]
    return b"".join(
        name.encode() + tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        for name, tensor in sorted(weights.items())
    )


_READERS: dict[str, Callable[[Path], bytes]] = {
    "metrics.csv": _metrics,
    "result.json": _result,
    "last.ckpt": _checkpoint,
    "best.ckpt": _checkpoint,
}
