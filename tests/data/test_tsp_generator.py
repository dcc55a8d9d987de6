import hashlib
import itertools
import sys

import numpy as np
import pytest

import fognn.data.tsp_generator as generator
from fognn.data.tsp import TSP
from fognn.data.tsp_generator import generate_tsp, random_instance

pytest.importorskip("fast_tsp")

QUICK = {"nodes": (5, 8), "seconds": 0.001, "workers": 1}


def instances(path):
    arrays = dict(np.load(path))
    for n, end in zip(arrays["n"].astype(int), arrays["n"].astype(int).cumsum(), strict=True):
        yield arrays["c"][end - n : end], arrays["t"][end - n : end]


def length(points, tour):
    tour = list(tour)
    return np.linalg.norm(points[tour] - points[tour[1:] + tour[:1]], axis=1).sum()


def test_same_seed_same_instances_for_ever():
    whole = hashlib.sha256()
    for index in range(20):
        points = random_instance(index, "val", seed=3)
        whole.update(np.ascontiguousarray(points, dtype="<f4").tobytes())
    assert whole.hexdigest() == "55a33924d6a81bc5f4044db65369bea43d83c791fd96de5d727cb2d9b7da898a"


def test_law_of_instances():
    points = [random_instance(index) for index in range(2000)]
    sizes = np.array([len(instance) for instance in points])
    assert sizes.min() == 50
    assert sizes.max() == 500
    assert abs(sizes.mean() - 275) < 5 * np.sqrt((451**2 - 1) / 12 / 2000)
    whole = np.concatenate(points).astype(np.float64)
    assert whole.min() >= 0
    assert whole.max() < 1
    count = len(whole)
    assert np.abs(whole.mean(0) - 0.5).max() < 5 * np.sqrt(1 / 12 / count)
    assert np.abs((whole**2).mean(0) - 1 / 3).max() < 5 * np.sqrt(4 / 45 / count)
    assert abs(np.corrcoef(whole.T)[0, 1]) < 5 / np.sqrt(count)


def test_tours_are_shortest(tmp_path):
    path = generate_tsp(tmp_path / "tsp_test.npz", 20, "test", seed=1, **QUICK)
    for index, (points, tour) in enumerate(instances(path)):
        assert np.array_equal(points, random_instance(index, "test", 1, (5, 8)))
        assert sorted(tour) == list(range(len(points)))
        best = min(
            length(points, (0, *rest)) for rest in itertools.permutations(range(1, len(points)))
        )
        # The solver sees distances in steps of 1 / 46,000.
        assert length(points, tour) == pytest.approx(best, abs=8 / 46_000)


def test_instances_depend_on_the_seed_only(tmp_path):
    one = generate_tsp(tmp_path / "a.npz", 3, seed=1, **QUICK)
    more = generate_tsp(tmp_path / "b.npz", 18, seed=1, **{**QUICK, "seconds": 0.002})
    other = generate_tsp(tmp_path / "c.npz", 3, seed=2, **QUICK)
    points = [[c.tolist() for c, _ in instances(path)] for path in (one, more, other)]
    assert points[0] == points[1][:3]
    assert points[0] != points[2]


def test_all_workers_and_the_dataset_reads_it(tmp_path):
    path = tmp_path / "tsp" / "tsp_val.npz"
    generate_tsp(path, 40, "val", nodes=(30, 40), seconds=0.01, workers=2)
    data = TSP(tmp_path, "val", data=tmp_path)
    assert len(data) == 40
    for index, graph in enumerate(data):
        assert np.array_equal(graph.x.numpy(), random_instance(index, "val", 0, (30, 40)))
    assert [p.name for p in path.parent.glob("*parts*")] == []


def test_goes_on_after_an_interruption(tmp_path, monkeypatch):
    path = tmp_path / "tsp.npz"
    solve, solved = generator._solve, []

    def interrupted(chunk):
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append(chunk.start)
        return solve(chunk)

    monkeypatch.setattr(generator, "_solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generate_tsp(path, 60, **QUICK)
    assert not path.exists()
    monkeypatch.setattr(
        generator, "_solve", lambda chunk: solved.append(chunk.start) or solve(chunk)
    )
    # Another setting does not take what was solved.
    generate_tsp(tmp_path / "other.npz", 20, seed=9, **QUICK)
    assert solved == [0, 16, 0, 16]
    generate_tsp(path, 60, **QUICK)
    assert solved == [0, 16, 0, 16, 32, 48]
    whole = generate_tsp(tmp_path / "whole.npz", 60, **QUICK)
    for (c, _), (d, _) in zip(instances(path), instances(whole), strict=True):
        assert np.array_equal(c, d)
    assert sorted(p.name for p in tmp_path.glob("*parts*")) == []


def test_done_is_done(tmp_path, monkeypatch):
    path = generate_tsp(tmp_path / "tsp.npz", 3, **QUICK)
    monkeypatch.setattr(generator, "_solve", lambda chunk: pytest.fail("solved again"))
    before = path.read_bytes()
    assert generate_tsp(path, 3, **QUICK).read_bytes() == before
    with pytest.raises(ValueError, match=r"path must be a new file, .* seed 0, .*asked .* seed 5"):
        generate_tsp(path, 3, seed=5, **QUICK)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("path", "tsp.txt"),
        ("num_graphs", 0),
        ("split", "dev"),
        ("seed", -1),
        ("nodes", (9, 8)),
        ("nodes", (2, 8)),
        ("nodes", (5, 40_000)),
        ("seconds", 0.0),
        ("seconds", float("inf")),
        ("workers", 0),
        ("num_graphs", 2.5),
        ("seed", True),
        ("nodes", (5.5, 8)),
        ("workers", 1.5),
    ],
)
def test_bad_arguments(tmp_path, argument, value):
    arguments = {"path": tmp_path / "tsp.npz", "num_graphs": 2, **QUICK, argument: value}
    with pytest.raises(ValueError, match=f"generate_tsp: {argument} must be .*, got"):
        generate_tsp(**arguments)
    assert list(tmp_path.iterdir()) == []


def test_without_the_solver_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_tsp", None)
    with pytest.raises(ImportError, match=r"pip install \"fognn\[tsp\]\""):
        generate_tsp(tmp_path / "tsp.npz", 2, **QUICK)
