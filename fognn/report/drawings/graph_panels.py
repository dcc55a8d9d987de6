r"""One graph in one panel: nodes coloured by label, a tour, a plain network."""

import math
from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from fognn.report.drawings.plots import COLOURS

__all__ = ["draw_atoms", "draw_blocks", "draw_network", "draw_tour"]

_GOLDEN = math.pi * (3 - math.sqrt(5))


def draw_blocks(axis: Any, graph: Data, names: list[str], ring: bool = False) -> None:
    r"""Nodes coloured by their label, those of a label side by side.

    The graphs of stochastic block models are too dense for a layout by forces: each label has a
    disc of its own, an edge inside a label has its colour, and an edge between two is grey.

    Args:
        axis (Axes): The panel.
        graph (Data): The graph, :obj:`y` a label for each node.
        names (list of str): The name of each label.
        ring (bool, optional): Whether nodes whose token is not 0 get a black
            ring: those of CLUSTER whose block is given.
    """
    y, source, target = graph.y.numpy(), *_undirected(graph)
    places = _discs(y, len(names))
    same = y[source] == y[target]
    _lines(axis, places, source[~same], target[~same], color="#777777", alpha=0.07, linewidth=0.4)
    for label, name in enumerate(names):
        colour, inside = COLOURS[label % len(COLOURS)], same & (y[source] == label)
        _lines(
            axis, places, source[inside], target[inside], color=colour, alpha=0.22, linewidth=0.5
        )
        mine = y == label
        axis.scatter(
            *places[mine].T, s=22, color=colour, edgecolors="white", linewidths=0.5, zorder=3,
            label=name,
        )  # fmt: skip
    if ring:
        given = graph.x.numpy() != 0
        axis.scatter(
            *places[given].T, s=34, facecolors="none", edgecolors="black", linewidths=1.3, zorder=4,
            label="given",
        )  # fmt: skip
    _fit(axis, places)


def draw_tour(axis: Any, graph: Data) -> None:
    r"""Points where they are, edges to near points in grey, those of the tour in colour."""
    places, used = graph.x.numpy(), graph.y.numpy() == 1
    source, target = graph.edge_index.numpy()
    _lines(axis, places, source, target, color="#999999", alpha=0.10, linewidth=0.4)
    _lines(
        axis, places, source[used], target[used], color=COLOURS[5], alpha=1.0, linewidth=1.3,
        label="tour",
    )  # fmt: skip
    axis.scatter(*places.T, s=7, color=COLOURS[0], linewidths=0, zorder=3, label="point")
    _fit(axis, places)


def draw_network(axis: Any, graph: Data, colour: str) -> None:
    r"""A layout by forces, all nodes in one colour, larger where they have more neighbours."""
    places = _springs(graph)
    source, target = _undirected(graph)
    _lines(axis, places, source, target, color="#777777", alpha=0.35, linewidth=0.7)
    degree = np.bincount(graph.edge_index[1].numpy(), minlength=len(places))
    axis.scatter(
        *places.T, s=18 + 2 * degree, color=colour, edgecolors="white", linewidths=0.5, zorder=3
    )
    _fit(axis, places)


def draw_atoms(axis: Any, graph: Data, atoms: tuple[str, ...]) -> None:
    r"""A molecule without RDKit: a layout by forces, atoms by name, bonds by width."""
    places = _springs(graph)
    source, target = graph.edge_index.numpy()
    for bond in (1, 2, 3):
        lines = (graph.edge_attr.numpy() == bond) & (source < target)
        _lines(axis, places, source[lines], target[lines], color="#555555", linewidth=1.5 * bond)
    for place, token in zip(places, graph.x.tolist(), strict=True):
        axis.text(
            *place, atoms[token], fontsize=7, ha="center", va="center", zorder=3,
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": COLOURS[0]},
        )  # fmt: skip
    _fit(axis, places)


def _undirected(graph: Data) -> tuple[NDArray[Any], NDArray[Any]]:
    source, target = graph.edge_index.numpy()
    once = source < target
    return source[once], target[once]


def _discs(y: NDArray[Any], labels: int) -> NDArray[np.float64]:
    r"""Places on discs: one for each label, evenly filled like a sunflower."""
    sizes = np.bincount(y, minlength=labels)
    radii = np.sqrt(sizes.clip(min=1))
    if labels == 2:
        # From corner to corner, where a square panel is longest.
        far = 1.1 * radii.sum() / math.sqrt(2)
        centres = np.array([[0, 0], [far, -far]])
    else:
        # On a circle so wide that the largest discs would just touch; the first one on top.
        around = 1.12 * radii.max() / math.sin(math.pi / labels) if labels > 1 else 0.0
        angles = math.pi / 2 - 2 * math.pi * np.arange(labels) / labels
        centres = around * np.stack([np.cos(angles), np.sin(angles)], 1)
    places = np.empty((len(y), 2))
    for label, (size, radius) in enumerate(zip(sizes, radii, strict=True)):
        k = np.arange(size) + 0.5
        r, angle = radius * np.sqrt(k / max(size, 1)), k * _GOLDEN
        spread = np.stack([r * np.cos(angle), r * np.sin(angle)], 1)
        places[y == label] = centres[label] + spread
    return places


def _springs(graph: Data) -> NDArray[np.float64]:
    network = networkx.Graph()
    network.add_nodes_from(range(graph.num_nodes))
    network.add_edges_from(graph.edge_index.t().tolist())
    layout = networkx.spring_layout(network, seed=0, iterations=200)
    return np.array([layout[node] for node in range(graph.num_nodes)])


def _lines(
    axis: Any, places: NDArray[Any], source: NDArray[Any], target: NDArray[Any], **look: Any
) -> None:
    from matplotlib.collections import LineCollection

    ends = np.stack([places[source], places[target]], 1)
    axis.add_collection(LineCollection(list(ends), **look))


def _fit(axis: Any, places: NDArray[Any]) -> None:
    low, high = places.min(0), places.max(0)
    half = 0.55 * max(float((high - low).max()), 1e-9)
    for middle, limits in zip((low + high) / 2, (axis.set_xlim, axis.set_ylim), strict=True):
        limits(middle - half, middle + half)
    axis.set_aspect("equal")
