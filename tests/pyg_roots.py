"""Roots of PyG datasets filled by hand: small raw files that PyG itself reads, no network."""

import pickle
from pathlib import Path

import numpy as np
import torch

MOLECULES = ["CCO", "CCC", "CC(=O)O", "CN", "C#N", "CCCl"]
MOLECULES += ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CC1"]


def planetoid(folder: Path, name: str = "Cora", classes: int = 4, seed: int = 0) -> None:
    """20 training nodes a class, 500 validation nodes, 60 test nodes; most neighbours are of the
    same class, and each feature tells something about it."""
    random = np.random.default_rng(seed)
    train, rest, test = 20 * classes, 520, 60
    count = train + rest + test
    y = np.arange(count) % classes
    x = (random.random((count, 2 * classes)) < 0.1 + 0.6 * np.eye(classes)[y].repeat(2, 1)) * 1.0
    graph: dict[int, list[int]] = {node: [] for node in range(count)}
    for node in range(count):
        same = random.choice(np.flatnonzero(y == y[node]), 3).tolist()
        for other in {*same, int(random.integers(count))} - {node}:
            graph[node].append(other)
            graph[other].append(node)
    hot, known = np.eye(classes)[y], train + rest
    files = {
        **{"x": x[:train], "y": hot[:train], "allx": x[:known], "ally": hot[:known]},
        **{"tx": x[known:], "ty": hot[known:], "graph": graph},
    }
    raw = folder / "pyg" / "Planetoid" / name / "raw"
    raw.mkdir(parents=True)
    for key, value in files.items():
        (raw / f"ind.{name.lower()}.{key}").write_bytes(pickle.dumps(value, 2))
    lines = "".join(f"{node}\n" for node in range(known, count))
    (raw / f"ind.{name.lower()}.test.index").write_text(lines)


def tu_dataset(folder: Path, name: str = "TINY", count: int = 40, labels: bool = True) -> None:
    """Triangles (class 0) and paths of three nodes (class 1)."""
    raw = folder / "pyg" / "TUDataset" / name / "raw"
    raw.mkdir(parents=True)
    edges = []
    for graph in range(count):
        a, b, c = (3 * graph + i for i in (1, 2, 3))
        pairs = [(a, b), (b, c)] + ([(a, c)] if graph % 2 == 0 else [])
        edges += [f"{u}, {v}\n{v}, {u}\n" for u, v in pairs]
    indicator = "".join(f"{graph + 1}\n" * 3 for graph in range(count))
    (raw / f"{name}_A.txt").write_text("".join(edges))
    (raw / f"{name}_graph_indicator.txt").write_text(indicator)
    (raw / f"{name}_graph_labels.txt").write_text("".join(f"{i % 2}\n" for i in range(count)))
    if labels:
        (raw / f"{name}_node_labels.txt").write_text("0\n1\n0\n" * count)


def esol(folder: Path, smiles: list[str] = MOLECULES) -> None:
    raw = folder / "pyg" / "MoleculeNet" / "esol" / "raw"
    raw.mkdir(parents=True)
    lines = [f"name,0,{len(s) / 2},{s}\n" for s in smiles]
    (raw / "delaney-processed.csv").write_text("id,other,measured,smiles\n" + "".join(lines))


def peptides(folder: Path, sizes: tuple[int, int, int] = (8, 3, 4)) -> None:
    raw = folder / "pyg" / "LRGBDataset" / "peptides-func" / "raw"
    raw.mkdir(parents=True)
    generator = torch.Generator().manual_seed(0)
    for split, size in zip(("train", "val", "test"), sizes, strict=True):
        graphs = []
        for _ in range(size):
            x = torch.randint(3, (5, 9), generator=generator)
            edge_attr = torch.randint(2, (8, 3), generator=generator)
            edge_index = torch.randint(5, (2, 8), generator=generator)
            y = torch.randint(2, (1, 10), generator=generator).float()
            graphs.append((x, edge_attr, edge_index, y))
        torch.save(graphs, raw / f"{split}.pt")
