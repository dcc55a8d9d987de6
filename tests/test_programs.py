"""The programs in benchmarks/ and examples/ run, in a small way. Times are not looked at."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fognn.training import evaluate

ROOT = Path(__file__).parent.parent


def run(*args: object) -> str:
    command = [sys.executable, *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernels", "layers", "modern", "parts"])
def test_benchmarks(name: str, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    text = run(f"benchmarks/{name}.py", "--graphs", 6, "--repeats", 1, "--json", file)
    record = json.loads(file.read_text())
    assert {"command", "commit", "threads", "torch", "tables"} <= record.keys()
    for title, table in record["tables"].items():
        assert title in text
        assert table
    if name == "layers":  # torch's own count of what it allocates, not a time: it may be asserted
        ours, literal = (row["ratio"] for row in record["tables"]["Peak memory against edges"])
        assert ours <= 1.05
        assert literal > 5


@pytest.mark.slow
def test_the_few_shot_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    small = ["--cases", 3, "--episodes", 2, "--repeats", 1, "--threads", 1]
    run("benchmarks/few_shot.py", *small, "--json", file)
    steps, numbers = json.loads(file.read_text())["tables"].values()
    assert len(steps) == len(numbers) == 3
    for row in numbers:  # differences, not times: they may be asserted
        assert row["logits, 64 bit"] < 1e-10
        assert row["loss, 32 bit"] < 1e-3


@pytest.mark.slow
def test_the_loops_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    run("benchmarks/loops.py", "--only", "add_ends", "--repeats", 1, "--json", file)
    (table,) = json.loads(file.read_text())["tables"].values()
    assert {row["loop"] for row in table} == {"add_ends"}


def test_examples() -> None:
    assert "(100, 64) -> (100, 64)" in run("examples/three_lines.py")
    text = run("examples/all_networks.py", "--table", 7, "--repeats", 1)
    assert "10 networks, 0 with another number of parameters" in text


def test_sampled_neighbourhoods() -> None:
    small = ["--nodes", 500, "--epochs", 2, "--channels", 16]
    text = run("examples/neighbour_sampling.py", *small, "--network", "fog", "--fanout", 4, 3, 2)
    assert "epoch 1: loss" in text
    command = [sys.executable, "examples/neighbour_sampling.py", *map(str, small)]
    command += ["--sampler", "pyg"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if find_spec("pyg_lib") or find_spec("torch_sparse"):
        assert done.returncode == 0, done.stderr
        assert "epoch 1: loss" in done.stdout
    else:
        assert done.returncode == 1
        assert "needs pyg-lib or torch-sparse" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_scaling_benchmark(tmp_path: Path) -> None:
    file, plot = tmp_path / "out.json", tmp_path / "out.svg"
    small = ["--max-edges", 30_000, "--repeats", 1, "--json", file, "--plot", plot]
    assert "Exponents" in run("benchmarks/scaling.py", *small)
    tables = json.loads(file.read_text())["tables"]
    assert {"Measured", "Exponents", "Slopes against inner widths"} == tables.keys()
    peaks: dict[str, list[float]] = {}
    for row in tables["Measured"]:
        if row["series"] == "edges, 10,000 nodes":
            peaks.setdefault(row["layer"], []).append(row["peak MB"])
    # torch's own count again: three times the edges between the same nodes
    assert peaks["FOG"][1] < 1.05 * peaks["FOG"][0]
    assert peaks["FOG as written"][1] > 2 * peaks["FOG as written"][0]
    assert "peak memory of a step (GB)" in plot.read_text()
    # A second call measures nothing again.
    again = run("benchmarks/scaling.py", *small)
    assert "30,000 edges" not in again
    assert json.loads(file.read_text())["tables"] == tables


@pytest.mark.slow
def test_the_giant_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    size = ["--nodes", 3_000, "--edges", 30_000, "--channels", 16, "--layers", 2]
    assert run("benchmarks/giant.py", *size, "--check").count("both ways agree") == 2
    run("benchmarks/giant.py", *size, "--networks", "gcn+fog", "--rows", 700, "--json", file)
    made, inference = json.loads(file.read_text())["tables"].values()
    assert made[0]["largest in-degree"] > 100  # hubs: ten is the mean
    assert [row["way"] for row in inference] == ["plain", "rows"]
    assert inference[1]["difference"] < 1e-5


@pytest.mark.slow
def test_the_training_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    small = ["--datasets", "PATTERN", "--shrink", 0.005, "--repeats", 1, "--json", file]
    run("benchmarks/training.py", *small)
    (table,) = json.loads(file.read_text())["tables"].values()
    assert [row["network"] for row in table] == ["FOG", "GCN", "GCN+FOG"]


@pytest.mark.slow
def test_the_dead_units_benchmark(real_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    small = ["--seeds", 2, "--epochs", 1, "--fraction", 0.01, "--threads", 1, "--json", file]
    run("benchmarks/dead_units.py", *small)
    tox21, zinc = json.loads(file.read_text())["tables"].values()
    norms = ["paper", "eps 1e-2", "norm first", "layer norm"]
    assert [row["norm"] for row in tox21] == [*norms, "without FOG"]
    assert [row["norm"] for row in zinc] == norms
    assert {row["seeds"] for row in tox21 + zinc} == {2}
    assert len({row["of each seed"] for row in zinc}) == 4, "four different networks"
    assert all(len(row["95 % interval"].split()) == 2 for row in zinc[1:])


@pytest.mark.slow
def test_the_averaged_norms_benchmark(real_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    run("benchmarks/averaged_norms.py", "zinc/fog", "zinc/gin", "--threads", 1, "--json", file)
    (table,) = json.loads(file.read_text())["tables"].values()
    for row, name in zip(table, ("zinc/fog", "zinc/gin"), strict=True):
        scores = evaluate(name, threads=1)
        assert row["network"] == name
        assert row["running"] == pytest.approx(scores["mae_batches"], abs=1e-4)
        assert 0 < abs(row["difference"]) < 0.05


def test_the_demo(tmp_path: Path) -> None:
    small = ["--output", tmp_path, "--epochs", 1, "--graphs", 40, "--seeds", 1]
    page = tmp_path / "report" / "index.html"
    assert page.as_uri() in run("examples/demo.py", *small)
    assert "GCN+FOG" in page.read_text()
    assert "GCN+FOG" in run("examples/demo.py", *small), "a second call takes the runs as they are"


def test_the_correlation_benchmark(tmp_path: Path) -> None:
    file, plot = tmp_path / "out.json", tmp_path / "out.svg"
    small = ["--widths", 4, 8, "--seeds", 2, "--nodes", 200, "--steps", 20, "--threads", 1]
    run("benchmarks/correlation.py", *small, "--json", file, "--plot", plot)
    (table,) = json.loads(file.read_text())["tables"].values()
    assert [(row["layer"], row["width"]) for row in table] == [
        (layer, width) for layer in ("kron", "FOG", "hadamard", "concat", "GCN") for width in (4, 8)
    ]
    assert all(0 < row["smallest"] <= row["median error"] <= row["largest"] for row in table)
    assert "squared error / variance" in plot.read_text()
