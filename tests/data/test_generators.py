import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fognn.data.generators import _Draws, generate_cluster, generate_pattern

MASK = 2**64 - 1
SIZE_MEAN, SIZE_VAR = 19.5, (30**2 - 1) / 12  # of an integer that is uniform in [5, 35)


def philox4x64(key: list[int], counter: list[int]) -> list[int]:
    """One block of Philox4x64-10 as published (Salmon et al., SC 2011)."""
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(10):
        low, high = c0 * 0xD2E7470EE14C6C93, c2 * 0xCA5A826395121157
        c0, c1, c2, c3 = (high >> 64) ^ c1 ^ k0, high & MASK, (low >> 64) ^ c3 ^ k1, low & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return [c0, c1, c2, c3]


def split_graphs(graphs):
    """Cuts flat arrays into (x, y, edge_index) of each graph."""
    node, edge = 0, 0
    for n, e in zip(graphs.n, graphs.e, strict=True):
        yield (
            graphs.x[node : node + n].astype(int),
            graphs.y[node : node + n].astype(int),
            graphs.edge_index[:, edge : edge + e].astype(int),
        )
        node, edge = node + n, edge + e


def digest(graphs) -> str:
    whole = hashlib.sha256()
    for array in graphs:
        whole.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return whole.hexdigest()


def test_philox_known_answers():
    # The vectors that Random123 publishes for philox4x64-10.
    zeros = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    ones = [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0]
    assert philox4x64([0, 0], [0] * 4) == zeros
    assert philox4x64([MASK] * 2, [MASK] * 4) == ones


@given(seed=st.integers(0, MASK), graph=st.integers(0, 2**40), count=st.integers(1, 9))
def test_draws_are_philox(seed, graph, count):
    blocks = [philox4x64([seed, 3], [block, graph, 0, 0]) for block in (1, 2, 3)]
    words = [half for b in blocks for word in b for half in (word & 0xFFFFFFFF, word >> 32)]
    assert _Draws(seed, 3, graph).words(count).tolist() == words[:count]
    assert _Draws(seed, 3, graph).integers(30, 1).tolist() == [words[0] * 30 // 2**32]


@pytest.mark.parametrize(
    ("generate", "split", "seed", "expected"),
    [
        (
            generate_pattern,
            "train",
            0,
            "4db9cb5d51fc34eb74fa2941bbc2adcfad83ea80ae1886708ad840e44694e974",
        ),
        (
            generate_pattern,
            "test",
            2**64 - 1,
            "bc2f63598b1699d378e577814e13c82eb7eebdaa3c214b9d1e8811cccf94ddff",
        ),
        (
            generate_cluster,
            "train",
            0,
            "f568e4ad39e5f9b80e3e67762d04e5e53b3a3086447f2ed82008a5b85d03d795",
        ),
        (
            generate_cluster,
            "val",
            7,
            "09025e6f42d609951f82cfaaf09b88d58a20f4136136f774fa46e9d9667cb874",
        ),
    ],
)
def test_same_seed_same_graphs_for_ever(generate, split, seed, expected):
    assert digest(generate(split, 20, seed)) == expected


@pytest.mark.parametrize("generate", [generate_pattern, generate_cluster])
def test_seed_split_and_prefix(generate):
    few, more = generate("train", 3), generate("train", 110)
    assert digest(few) == digest(
        type(more)(
            more.n[:3],
            more.e[:3],
            more.x[: few.n.sum()],
            more.edge_index[:, : few.e.sum()],
            more.y[: few.n.sum()],
        )
    )
    assert digest(few) != digest(generate("train", 3, seed=1))
    assert digest(few) != digest(generate("val", 3))


@pytest.mark.parametrize("generate", [generate_pattern, generate_cluster])
def test_edges(generate):
    for x, y, edge_index in split_graphs(generate("val", 60)):
        n = len(x)
        assert len(y) == n
        source, target = edge_index
        key = target * n + source
        assert (np.diff(key) > 0).all()  # sorted by target, then source, and no edge twice
        assert source.max() < n
        assert target.max() < n
        assert (source != target).all()
        assert set(key) == set(source * n + target)


def test_pattern_law():
    count = 3000
    graphs = generate_pattern("train", count)
    # The paper's mean is one draw of 100 patterns, like ours.
    noise = np.sqrt(5 * SIZE_VAR / count + 2 * SIZE_VAR / 100)
    assert abs(graphs.n.mean() - 117.47) < 4 * noise

    joined = pairs = 0
    same, different, inner = [], [], []
    place, tokens = [], np.zeros(3, dtype=int)
    for index, (x, y, (source, target)) in enumerate(split_graphs(graphs)):
        size = int(y.sum())
        joined += ((y[source] == 1) & (y[target] == 0)).sum()
        pairs += size * (len(y) - size)
        place.append(y.nonzero()[0].mean() / (len(y) - 1))
        tokens += np.bincount(x[y == 0], minlength=3)
        sizes = _Draws(0, 1, index).sizes(5)
        assert sizes.sum() == len(y) - size
        same.append((sizes * (sizes - 1)).sum())
        different.append(sizes.sum() ** 2 - (sizes**2).sum())
        inner.append(((y[source] == 0) & (y[target] == 0)).sum())
    assert abs(joined / pairs - 0.5) < 5 * np.sqrt(0.25 / pairs)
    # Base edges are p * (pairs in a block) + q * (other pairs): two unknowns, 3,000 equations.
    (p, q), *_ = np.linalg.lstsq(np.stack([same, different], 1), np.array(inner), rcond=None)
    assert abs(p - 0.5) < 0.004
    assert abs(q - 0.35) < 0.002
    # Nodes are shuffled: the pattern lies in the middle on average.
    assert abs(np.mean(place) - 0.5) < 5 * np.std(place) / np.sqrt(count)
    share = tokens / tokens.sum()
    assert np.abs(share - 1 / 3).max() < 5 * np.sqrt(2 / 9 / tokens.sum())


def test_patterns_repeat_every_hundred_graphs_and_in_all_splits():
    def pattern(graph):
        x, y, (source, target) = graph
        inside = (y[source] == 1) & (y[target] == 1)
        degree = np.bincount(target[inside], minlength=len(y))
        return sorted(zip(x[y == 1], degree[y == 1], strict=True))

    train = [pattern(graph) for graph in split_graphs(generate_pattern("train", 205))]
    test = [pattern(graph) for graph in split_graphs(generate_pattern("test", 5))]
    assert train[:5] == train[100:105] == train[200:] == test
    assert len({tuple(nodes) for nodes in train[:100]}) == 100
    sizes = np.array([len(nodes) for nodes in train[:100]])
    assert sizes.min() >= 5
    assert sizes.max() <= 34
    assert abs(sizes.mean() - SIZE_MEAN) < 4 * np.sqrt(SIZE_VAR / 100)


def test_cluster_law():
    count = 2000
    graphs = generate_cluster("train", count)
    assert abs(graphs.n.mean() - 117.20) < 4 * np.sqrt(6 * SIZE_VAR / count)
    hits, trials = np.zeros((6, 6)), np.zeros((6, 6))
    sizes = []
    for x, y, (source, target) in split_graphs(graphs):
        size = np.bincount(y, minlength=6)
        sizes.append(size)
        np.add.at(hits, (y[source], y[target]), 1)
        trials += np.outer(size, size) - np.diag(size)
        marked = x.nonzero()[0]
        assert sorted(x[marked]) == [1, 2, 3, 4, 5, 6]
        assert (x[marked] == y[marked] + 1).all()
    expected = np.where(np.eye(6) == 1, 0.55, 0.25)
    # Both directions of a pair are one trial.
    bound = 5 * np.sqrt(expected * (1 - expected) / (trials / 2))
    assert (np.abs(hits / trials - expected) < bound).all()
    assert np.min(sizes) == 5
    assert np.max(sizes) == 34
