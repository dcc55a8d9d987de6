r"""The two text formats in which IMDB-MULTI is published."""

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from fognn.utils.errors import FileError

__all__ = ["integer_rows", "read_text", "read_tu"]

_CLASSES = 3
# Nodes of each graph; sources and targets of all edges, counted through all graphs; labels.
_Graphs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _bad(path: Path, line: int, what: str) -> NoReturn:
    raise FileError(f"{path}, line {line}: {what}; remove the file and get it again")


def integer_rows(path: Path, width: int | None = None) -> Iterator[tuple[int, list[int]]]:
    r"""Gives each line's number and its integers, which blanks or commas part."""
    with open(path, encoding="ascii", errors="replace") as file:
        for line, text in enumerate(file, 1):
            try:
                row = [int(word) for word in text.replace(",", " ").split()]
            except ValueError:
                _bad(path, line, f"expected integers, got {text.strip()[:60]!r}")
            if width is not None and len(row) != width:
                _bad(path, line, f"expected {width} integers, got {len(row)}")
            yield line, row


def read_text(path: Path) -> _Graphs:
    r"""Reads: number of graphs; a graph: nodes, label; a node: tag, degree, neighbours."""
    rows = integer_rows(path)
    line = 0

    def following(what: str) -> list[int]:
        nonlocal line
        line, row = next(rows, (line + 1, None))
        if row is None:
            _bad(path, line, f"the file ends, expected {what}")
        return row

    sizes, labels, src, dst = [], [], [], []
    count = following("the number of graphs")
    if len(count) != 1 or count[0] < 1:
        _bad(path, line, f"expected the number of graphs, got {count}")
    first = 0
    for _ in range(count[0]):
        header = following("a graph's nodes and label")
        if len(header) != 2 or header[0] < 1 or header[1] not in range(_CLASSES):
            _bad(path, line, f"expected nodes and a label from 0 to {_CLASSES - 1}, got {header}")
        size, top = header[0], line + 1
        around = []
        for node in range(size):
            row = following(f"the neighbours of node {node}")
            if len(row) < 2 or row[1] != len(row) - 2:
                _bad(path, line, "expected tag, degree and as many neighbours as the degree says")
            around.append(set(row[2:]))
            if len(around[-1]) != row[1] or node in around[-1]:
                _bad(path, line, f"node {node} has a neighbour twice, or itself as a neighbour")
            if around[-1] and not 0 <= min(around[-1]) <= max(around[-1]) < size:
                _bad(path, line, f"node {node} has a neighbour that is not in 0..{size - 1}")
        for node, others in enumerate(around):
            for other in others:
                if node not in around[other]:
                    _bad(path, top + node, f"node {other} does not name node {node} in return")
            src += [first + other for other in others]
            dst += [first + node] * len(others)
        sizes.append(size)
        labels.append(header[1])
        first += size
    if any(row for _, row in rows):
        _bad(path, line + 1, f"expected the end of the file after {count[0]} graphs")
    return np.array(sizes), np.array(src, np.int64), np.array(dst, np.int64), np.array(labels)


def read_tu(paths: list[Path]) -> _Graphs:
    r"""Reads the TU format: all counts begin at 1 and run through the whole collection."""
    path, indicator, classes = paths
    y = []
    for line, (label,) in integer_rows(classes, 1):
        if label - 1 not in range(_CLASSES):
            _bad(classes, line, f"expected a label from 1 to {_CLASSES}, got {label}")
        y.append(label - 1)
    graph: list[int] = []
    for line, (number,) in integer_rows(indicator, 1):
        previous = graph[-1] if graph else -1
        if number - 1 not in (max(previous, 0), previous + 1):
            _bad(indicator, line, f"graph {number} is out of order")
        graph.append(number - 1)
    if not graph or graph[-1] + 1 != len(y):
        raise FileError(
            f"{indicator} numbers {graph[-1] + 1 if graph else 0} graphs and {classes} labels "
            f"{len(y)}: one of them is cut short, get both again"
        )
    pairs = []
    for line, (a, b) in integer_rows(path, 2):
        if not (1 <= a <= len(graph) and 1 <= b <= len(graph)):
            _bad(path, line, f"the edge {a}, {b} goes to a node that is not in 1..{len(graph)}")
        if graph[a - 1] != graph[b - 1]:
            _bad(path, line, f"the edge {a}, {b} joins two graphs")
        if a != b:
            pairs.append((a - 1, b - 1))
    src, dst = np.unique(np.array(pairs, np.int64).reshape(-1, 2), axis=0).T
    back = set(zip(dst.tolist(), src.tolist(), strict=True))
    for a, b in zip(src.tolist(), dst.tolist(), strict=True):
        if (a, b) not in back:
            raise FileError(
                f"{path} has the edge {a + 1}, {b + 1} in one direction only: get it again"
            )
    return np.bincount(graph, minlength=len(y)), src, dst, np.array(y)
