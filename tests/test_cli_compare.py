"""``fognn compare`` as a user runs it."""

import html
import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from command_line import Run
from tiny_runs import molecules

from fognn.data import write_graphs
from fognn.models.hosts import HOSTS

LAYERS = """
from torch_geometric.nn import TAGConv
from fognn.models import register_host

@register_host("of-the-user")
def layer(in_channels, out_channels):
    return TAGConv(in_channels, out_channels, K=1)
"""
SMALL = ["--budget", "6000", "--lr", "0.01", "--epochs", "1", "--set", "machine.threads=1", "-q"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOGNN_IMPORT", "")
    monkeypatch.setitem(HOSTS, "of-the-user", HOSTS["gcn"])
    monkeypatch.delitem(HOSTS, "of-the-user")
    monkeypatch.chdir(tmp_path)
    write_graphs("graphs.npz", molecules(30))
    Path("my_layers.py").write_text(LAYERS)
    Path("broken.py").write_text("1 / 0")


def test_compare_with_a_layer_of_the_user_and_predict(run: Run, tmp_path: Path) -> None:
    own = ["--hosts", "of-the-user", "--import", "my_layers.py", "--seeds", "1"]
    code, out, err = run("compare", "graphs.npz", *own, *SMALL)
    assert (code, err) == (0, "")
    assert "of-the-user+FOG" in out
    assert (tmp_path / "results" / "compare" / "graphs.jsonl").read_text().count("\n") == 2
    command = re.search(r"fognn (predict .*)", out)
    assert command is not None
    code, out, err = run(*command[1].replace("INPUT", "graphs.npz").split())
    assert (code, out) == (0, "predictions.csv: 30 predictions\n"), err


def test_the_page_leads_with_the_data_and_a_verdict_and_repeats_its_runs(run: Run) -> None:
    seeds = ["--hosts", "gcn,gin", "--seeds", "2"]
    code, _, err = run("compare", "graphs.npz", *seeds, *SMALL)
    assert (code, err) == (0, "")
    page = html.unescape(Path("runs/compare/graphs/report/index.html").read_text())
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.partition("<main>")[2]))
    places = [shown.index(text) for text in ("graphs 30", "split train 24", "GCN+FOG against GCN")]
    assert places == sorted(places)
    assert "GIN+FOG against GIN" in shown
    assert "training seeds of one split" in shown
    commands = re.findall(r"<td>(fognn train [^<]*)</td>", page)
    assert len(commands) == 2 * 4
    code, _, err = run(*shlex.split(commands[-1])[1:], "-o", "again", "-q")
    assert code == 0, err
    again = json.loads(Path("again/result.json").read_text())
    lines = Path("results/compare/graphs.jsonl").read_text().splitlines()
    found = [json.loads(line)["result"] for line in lines]
    (first,) = [result for result in found if result["command"] == commands[-1]]
    assert again["test"] == first["test"]
    assert again["val"] == first["val"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hosts", "gni"], "hosts.*'gni'.*'gin'"),
        (["--hosts", "gin+fog"], "hosts.*gin"),
        (["--hosts", "gatedgcn-e", "--set", "data.task=x"], "task.*'x'"),
        (["--budget", "20"], "budget.*20"),
        (["--budget", "0"], "budget.*0"),
        (["--rates", "0.1,fast"], "rates.*0.1,fast"),
        (["--rates", "0"], "rates"),
        (["--rates", "0.1", "--lr", "0.2"], "lr.*rates"),
        (["--seeds", "0"], "seeds.*0"),
        (["--name", "../x"], r"name.*'\.\./x'"),
        (["--set", "model.channels=8"], "model.channels"),
        (["--import", "nothing.py"], "nothing.py"),
        (["--import", "broken.py"], "broken.py.*ZeroDivisionError"),
        (["-o", "graphs.npz"], "output.*graphs.npz"),
    ],
)
def test_bad_input_is_one_line(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run("compare", "graphs.npz", "--hosts", "gcn", "--budget", "6000", *arguments)
    assert (code, out) == (1, "")
    assert re.search(message, err), err
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_pt_file_is_read(run: Run) -> None:
    torch.save(molecules(30), "saved.pt")
    code, out, err = run("compare", "saved.pt", "--hosts", "gcn", "--seeds", "1", *SMALL)
    assert code == 0, err
    assert "GCN+FOG" in out
