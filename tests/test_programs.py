"""The programs in benchmarks/ and examples/ run, in a small way. Times are not looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*args: object) -> str:
    command = [sys.executable, *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["layers", "kernels", "parts"])
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


def test_examples() -> None:
    assert "(100, 64) -> (100, 64)" in run("examples/three_lines.py")
    text = run("examples/all_networks.py", "--table", 7, "--repeats", 1)
    assert "10 networks, 0 with another number of parameters" in text


def test_the_training_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    small = ["--datasets", "PATTERN", "--shrink", 0.005, "--repeats", 1, "--json", file]
    run("benchmarks/training.py", *small)
    (table,) = json.loads(file.read_text())["tables"].values()
    assert [row["network"] for row in table] == ["FOG", "GCN", "GCN+FOG"]


def test_the_demo(tmp_path: Path) -> None:
    small = ["--output", tmp_path, "--epochs", 2, "--fraction", 0.01]
    assert (tmp_path / "report.html").as_uri() in run("examples/demo.py", *small)
    page = (tmp_path / "report.html").read_text()
    assert "gcn+fog" in page
    assert "no proof" in page
    assert "gcn+fog" in run("examples/demo.py", *small), "a second call takes the runs as they are"
