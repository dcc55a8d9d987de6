import statistics as standard
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from fognn.data import ImageSet, describe, open_user_data
from fognn.data.statistics import count, joined, statistics


def graph(nodes: int, edges: int, y: object = None) -> Data:
    data = Data(x=torch.zeros(nodes), edge_index=torch.zeros(2, edges, dtype=torch.int64))
    if y is not None:
        data.y = torch.as_tensor(y).reshape(-1)
    return data


@given(
    sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.floats(-9, 9)), min_size=2)
)
def test_real_labels_against_the_standard_library(sizes: list[tuple[int, int, float]]) -> None:
    got = statistics(count([graph(*size) for size in sizes]))
    nodes, edges, labels = zip(*sizes, strict=True)
    labels = torch.tensor(labels).tolist()  # in the precision of a label
    assert got["graphs"] == len(sizes)
    assert (got["nodes"], got["edges"]) == (sum(nodes), sum(edges))
    assert (got["nodes, fewest"], got["nodes, most"]) == (min(nodes), max(nodes))
    assert got["nodes, mean"] == pytest.approx(standard.mean(nodes))
    assert got["edges, mean"] == pytest.approx(standard.mean(edges))
    assert got["label, mean"] == pytest.approx(standard.mean(labels), abs=1e-6)
    assert got["label, s.d."] == pytest.approx(standard.stdev(labels), abs=1e-6)
    assert "classes" not in got


def test_classes() -> None:
    got = statistics(count([graph(2, 0, [0, 2]), graph(2, 0, [2, 2]), graph(2, 0, [-1])]))
    assert got["classes"] == 3
    assert [got[f"label {label}, share"] for label in range(3)] == [0.25, 0, 0.75]
    assert "label, mean" not in got
    assert "classes" not in statistics(count([graph(2, 1)]))
    assert "label, s.d." not in statistics(count([graph(2, 1, 0.5)]))


@pytest.mark.parametrize("y", [[0.5, 1.5, 2.0], [0, 1, 4], None])
def test_counts_of_splits_add_up(y: list[float] | None) -> None:
    graphs = [graph(n, n, None if y is None else y[n - 1]) for n in (1, 2, 3)]
    both = joined([count(graphs[:1]), count(graphs[1:])])
    assert statistics(both) == statistics(count(graphs))


def test_images() -> None:
    images = torch.zeros(5, 3, 8, 6, dtype=torch.uint8)
    counts = count(ImageSet(images, torch.tensor([0, 0, 1, 1, 1]), ["a", "b", "empty"]))
    expected = {"images": 5, "classes": 3, "images a class, fewest": 0, "images a class, most": 3}
    assert statistics(counts) == {**expected, "height": 8, "width": 6}
    both = {**expected, "images": 10, "classes": 6, "height": 8, "width": 6}
    assert statistics(joined([counts, counts])) == both


def test_describing_a_users_file(real_data: Path) -> None:
    found = describe(open_user_data(real_data / "single_graph" / "cora.npz"))
    assert (found["nodes"], found["edges"]) == (2708, 2 * 5278)
    splits = [found[f"split {name}"] for name in ("train", "val", "test")]
    assert splits == [140, 500, 1000]
    shares = [value for name, value in found.items() if name.endswith("share")]
    assert len(shares) == 7
    assert sum(shares) == pytest.approx(1)
    assert found["node features"] == "1433 numbers"

    csv = real_data / "moleculenet" / "tox21.csv"
    found = describe(open_user_data(csv, target="NR-AR,SR-p53", skip_bad=True))
    assert found["graphs"] == 7368
    assert (found["left out"], found["of these, cannot be read"]) == (463, 8)
    assert found["NR-AR, share of yes"] == pytest.approx(0.0424, abs=1e-4)
