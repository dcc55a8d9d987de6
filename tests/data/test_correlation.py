import pytest
import torch

from fognn.data import generate_correlation


def test_labels_are_the_equation() -> None:
    data = generate_correlation(30, channels=3, degree=4, seed=5, matrix_seed=2)
    matrix = torch.randn(3, 3, generator=torch.Generator().manual_seed(2)) / (3 * 4**0.5)
    for v in range(30):
        neighbours = data.edge_index[0, data.edge_index[1] == v]
        wanted = sum(data.x[v] @ matrix @ data.x[u] for u in neighbours)
        torch.testing.assert_close(data.y[v], wanted)


@pytest.mark.parametrize(("num_nodes", "degree"), [(5, 4), (50, 2), (51, 6)])
def test_a_regular_undirected_graph_without_loops_or_multi_edges(num_nodes, degree) -> None:
    data = generate_correlation(num_nodes, degree=degree)
    assert data.edge_index.unique(dim=1).size(1) == num_nodes * degree
    assert torch.equal(data.edge_index[1].bincount(), torch.full((num_nodes,), degree))
    assert data.is_undirected()
    assert not data.has_self_loops()


def test_seeds() -> None:
    one, same = (generate_correlation(40, seed=3, matrix_seed=1) for _ in range(2))
    assert all(torch.equal(one[key], same[key]) for key in ("x", "edge_index", "y"))
    other = generate_correlation(40, seed=3, matrix_seed=2)
    assert torch.equal(one.x, other.x)
    assert not torch.equal(one.y, other.y)
    assert not torch.equal(one.x, generate_correlation(40, seed=4, matrix_seed=1).x)


def test_neither_side_alone_tells_the_label() -> None:
    data = generate_correlation(20_000, channels=3)
    source, target = data.edge_index
    total = torch.zeros_like(data.x).index_add_(0, target, data.x[source])
    products = (data.x.unsqueeze(2) * total.unsqueeze(1)).flatten(1)

    def explained(features: torch.Tensor) -> float:
        fit = torch.linalg.lstsq(features, data.y.unsqueeze(1)).solution
        return float(1 - ((features @ fit).squeeze(1) - data.y).var() / data.y.var())

    squares = [torch.cat([part, part**2], dim=1) for part in (data.x, total)]
    assert max(map(explained, squares)) < 0.01
    assert explained(products) > 0.999


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 4}, "num_nodes must be .*5.*got 4"),
        ({"degree": 3}, "degree must be even, got 3"),
        ({"degree": 0}, "degree must be a positive int, got 0"),
        ({"channels": 0}, "channels must be a positive int, got 0"),
        ({"seed": -1}, "seed must be .*got -1"),
        ({"matrix_seed": "a"}, "matrix_seed must be .*got 'a'"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate_correlation(**{"num_nodes": 10} | options)
