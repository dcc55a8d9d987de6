import statistics
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from fognn.data.images import ImageSet
from fognn.data import CLUSTER
from fognn.data.statistics import count, count_graphs, count_images


def graph(nodes: int, edges: int, y: object = None) -> Data:
    data = Data(x=torch.zeros(nodes), edge_index=torch.zeros(2, edges, dtype=torch.int64))
    if y is not None:
        data.y = torch.as_tensor(y).reshape(-1)
    return data


@given(
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.floats(-9, 9)), min_size=2)
)
def test_real_labels_against_the_standard_library(sizes: list[tuple[int, int, float]]) -> None:
    got = count_graphs([graph(*size) for size in sizes]).statistics()
    nodes, edges, labels = zip(*sizes, strict=True)
    labels = torch.tensor(labels).tolist()  # in the precision of a label
    assert got["graphs"] == len(sizes)
    assert (got["nodes"], got["edges"]) == (sum(nodes), sum(edges))
    assert (got["nodes, fewest"], got["nodes, most"]) == (min(nodes), max(nodes))
    assert got["nodes, mean"] == pytest.approx(statistics.mean(nodes))
    assert got["edges, mean"] == pytest.approx(statistics.mean(edges))
    assert got["label, mean"] == pytest.approx(statistics.mean(labels), abs=1e-6)
    assert got["label, s.d."] == pytest.approx(statistics.stdev(labels), abs=1e-6)
    assert "classes" not in got


def test_classes() -> None:
    got = count_graphs([graph(2, 0, [0, 2]), graph(2, 0, [2, 2])]).statistics()
    assert got["classes"] == 3
    assert [got[f"label {label}, share"] for label in range(3)] == [0.25, 0, 0.75]
    assert "label, mean" not in got


def test_without_labels() -> None:
    assert list(count_graphs([graph(2, 1)]).statistics()) == [
        *("graphs", "nodes", "edges", "nodes, mean", "nodes, fewest", "nodes, most"),
        "edges, mean",
    ]


def test_one_real_label_has_no_deviation() -> None:
    assert "label, s.d." not in count_graphs([graph(2, 1, 0.5)]).statistics()


@pytest.mark.parametrize("y", [[0.5, 1.5, 2.0], [0, 1, 4], None])
def test_counts_of_splits_add_up(y: list[float] | None) -> None:
    graphs = [graph(n, n, None if y is None else y[n - 1]) for n in (1, 2, 3)]
    whole = count_graphs(graphs).statistics()
    assert (count_graphs(graphs[:1]) + count_graphs(graphs[1:])).statistics() == whole


def test_dataset_and_subset(tmp_path: Path) -> None:
    dataset = CLUSTER(tmp_path, num_graphs=5)
    assert count(dataset).statistics() == count_graphs(list(dataset)).statistics()
    part = count(dataset[2:4]).statistics()
    assert part["graphs"] == 2
    assert part["nodes"] == dataset[2].num_nodes + dataset[3].num_nodes
    assert count(CLUSTER(tmp_path, num_graphs=1)).statistics()["graphs"] == 1


def test_no_graph() -> None:
    with pytest.raises(ValueError, match="dataset must have a graph, it has none"):
        count_graphs([])


def test_images() -> None:
    images = torch.zeros(5, 3, 8, 6, dtype=torch.uint8)
    labels = torch.tensor([0, 0, 1, 1, 1])
    counts = count_images(ImageSet(images, labels, ["a", "b", "empty"]))
    assert counts.statistics() == {
        "images": 5,
        "classes": 3,
        "images a class, fewest": 0,
        "images a class, most": 3,
        "height": 8,
        "width": 6,
    }
    assert (counts + counts).statistics()["classes"] == 6
