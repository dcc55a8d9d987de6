"""``fognn compare`` as a user runs it."""

import re
from pathlib import Path

import pytest
import torch
from command_line import Run
from tiny_runs import molecules

from fognn.models.registry import HOSTS

LAYERS = """
from torch_geometric.nn import TAGConv
from fognn.models import register_host

@register_host("of-the-user")
def layer(in_channels, out_channels):
    return TAGConv(in_channels, out_channels, K=1)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGNN_IMPORT", "")
    monkeypatch.setitem(HOSTS, "of-the-user", HOSTS["gcn"])
    monkeypatch.delitem(HOSTS, "of-the-user")
    monkeypatch.chdir(tmp_path)
    torch.save(molecules(30), "graphs.pt")
    Path("my_layers.py").write_text(LAYERS)
    Path("broken.py").write_text("1 / 0")


def test_compare_with_a_layer_of_the_user_and_predict(run: Run, tmp_path: Path) -> None:
    arguments = ["graphs.pt", "--hosts", "of-the-user", "--import", "my_layers.py", "--budget"]
    arguments += ["6000", "--seeds", "1", "--lr", "0.01", "--epochs", "1", "--threads", "1", "-q"]
    code, out, err = run("compare", *arguments)
    assert (code, err) == (0, "")
    assert "of-the-user+FOG" in out
    assert "one or two seeds decide nothing" in out
    assert "The pages: runs/compare/graphs/report/index.html" in out
    assert (tmp_path / "results" / "compare" / "graphs.jsonl").read_text().count("\n") == 2
    command = re.search(r"fognn (predict .*)", out)
    assert command is not None
    words = command[1].replace("INPUT", "graphs.pt").split()
    code, out, err = run(*words)
    assert (code, out) == (0, "predictions.csv: 30 predictions\n"), err
    code, out, err = run("evaluate", words[1], "--import", "my_layers.py")
    assert (code, "test_mae_items" in out) == (0, True), err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hosts", "gni"], "hosts .*'gni'; did you mean 'gin'"),
        (["--hosts", "gin+fog"], "hosts must be named without FOG"),
        (["--budget", "20"], r"budget .* got 20; the nearest is \d+"),
        (["--budget", "0"], "budget must be a positive int, got 0"),
        (["--rates", "0.1,fast"], "rates must be numbers, .*got '0.1,fast'"),
        (["--rates", "0"], r"rates must be different positive numbers, got \[0\.0\]"),
        (["--rates", "0.1", "--lr", "0.2"], "lr must not be given with rates"),
        (["--seeds", "0"], "seeds must be a positive int, got 0"),
        (["--time", "soon"], "time must be .*got 'soon'"),
        (["--name", "../x"], r"name must be .*got '\.\./x'"),
        (["--set", "model.channels=8"], "must not have 'model.channels'"),
        (["--import", "nothing.py"], "import must name a Python file .*'nothing.py'"),
        (["--import", "broken.py"], "'broken.py' must not raise, got ZeroDivisionError"),
        (["-o", "."], "output must be a new folder"),
    ],
)
def test_bad_input_is_one_line(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run("compare", "graphs.pt", "--hosts", "gcn", "--budget", "6000", *arguments)
    assert (code, out) == (1, "")
    assert re.search(message, err), err
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_host_that_needs_edge_features(run: Run) -> None:
    code, _, err = run("compare", "cluster", "--hosts", "gatedgcn-e")
    assert (code, err.count("\n")) == (1, 1)
    assert re.search("edge_tokens or edge_channels for 'gatedgcn-e'", err)
