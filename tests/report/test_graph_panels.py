import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fognn.datasets.molecules import ATOMS
from fognn.report.graph_panels import draw_atoms, draw_blocks, draw_network, draw_tour
from fognn.report.plots import COLOURS, grid


@pytest.fixture
def axis():
    return grid(1, "", "")[1][0]


def lines(axis) -> list[int]:
    return [
        len(collection.get_segments()) for collection in axis.collections if is_line(collection)
    ]


def is_line(collection) -> bool:
    return hasattr(collection, "get_segments")


def points(axis) -> dict[str, np.ndarray]:
    return {c.get_label(): c.get_offsets() for c in axis.collections if not is_line(c)}


def both(*edges: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(edges + tuple((v, u) for u, v in edges)).t()


def test_blocks(axis) -> None:
    graph = Data(
        x=torch.tensor([0, 1, 0, 0, 2]),
        y=torch.tensor([0, 0, 1, 1, 1]),
        edge_index=both((0, 1), (1, 2), (2, 3), (3, 4), (0, 4)),
    )
    draw_blocks(axis, graph, ["a", "b"], ring=True)
    assert lines(axis) == [2, 1, 2]  # between, inside a, inside b
    got = points(axis)
    assert {name: len(places) for name, places in got.items()} == {"a": 2, "b": 3, "given": 2}
    assert got["given"][0].tolist() in got["a"].tolist()
    assert got["given"][1].tolist() in got["b"].tolist()
    colours = [c.get_facecolor()[0].tolist() for c in axis.collections if c.get_label() in "ab"]
    assert colours[0] != colours[1]


@pytest.mark.parametrize("labels", [1, 2, 6])
def test_discs_do_not_overlap(axis, labels: int) -> None:
    y = torch.arange(labels).repeat_interleave(torch.arange(labels) * 7 + 5)
    graph = Data(x=torch.zeros(len(y)), y=y, edge_index=torch.empty(2, 0, dtype=torch.int64))
    names = [f"block {label}" for label in range(labels)]
    draw_blocks(axis, graph, names)
    discs = [np.asarray(places) for places in points(axis).values()]
    # The first node of a sunflower is next to its middle.
    radii = [np.linalg.norm(disc - disc[0], axis=1).max() for disc in discs]
    for one in range(labels):
        for other in range(one):
            apart = np.linalg.norm(discs[one][0] - discs[other][0])
            assert apart > 0.9 * (radii[one] + radii[other])
            between = np.linalg.norm(discs[one][:, None] - discs[other][None], axis=2)
            assert between.min() > 0.5  # nodes of two discs never meet


def test_a_label_that_no_node_has(axis) -> None:
    graph = Data(x=torch.zeros(2), y=torch.tensor([0, 2]), edge_index=both((0, 1)))
    draw_blocks(axis, graph, ["a", "b", "c"])
    assert [len(places) for places in points(axis).values()] == [1, 0, 1]


def test_tour(axis) -> None:
    graph = Data(
        x=torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        y=torch.tensor([1, 0, 1]),
    )
    draw_tour(axis, graph)
    assert lines(axis) == [3, 2]
    assert np.allclose(points(axis)["point"], graph.x.numpy())
    assert axis.get_xlim()[0] < 0 < 1 < axis.get_xlim()[1]


def test_network(axis) -> None:
    graph = Data(x=torch.ones(4, 1), edge_index=both((0, 1), (0, 2), (1, 2)))  # node 3 is alone
    draw_network(axis, graph, COLOURS[2])
    assert lines(axis) == [3]
    (scatter,) = [c for c in axis.collections if not is_line(c)]
    sizes = scatter.get_sizes()
    assert sizes[0] == sizes[1] > sizes[3]
    assert np.isfinite(scatter.get_offsets()).all()


def test_network_of_one_node(axis) -> None:
    draw_network(axis, Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0).long()), COLOURS[0])
    assert lines(axis) == [0]


def test_atoms(axis) -> None:
    graph = Data(
        x=torch.tensor([0, 1, 7]),
        edge_index=torch.tensor([[0, 1, 0, 2], [1, 0, 2, 0]]),
        edge_attr=torch.tensor([2, 2, 1, 1]),
    )
    draw_atoms(axis, graph, ATOMS)
    assert [text.get_text() for text in axis.texts] == ["C", "O", "O -"]
    assert lines(axis) == [1, 1, 0]
