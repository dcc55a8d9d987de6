"""What a refactoring must not change: numbers of today's code, in pinned.json.

``python tests/test_pinned.py`` writes the file again, after a change of behaviour that is wanted.
"""

import contextlib
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import fognn
from fognn.experiments import build, rows
from fognn.experiments.tables import TABLES, plan
from fognn.models import TASKS, count_parameters, create_model, list_models
from fognn.training import Config

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PINNED = Path(__file__).with_name("pinned.json")
LEDGERS = sorted(p for p in RESULTS.rglob("*.jsonl") if "searches" not in p.parts)
SHORT = "train cluster {} --set data.fraction=0.0008 --batch-size 4 -q --set machine.threads=1"
DECIMALS = re.compile(r"[-−+]?\d+\.\d{3,}")


def command(*arguments: str, folder: Path = ROOT) -> str:
    """The output of ``fognn ...``, in this process: to import torch takes seconds."""
    from fognn.cli import main

    before, sys.argv = sys.argv, ["fognn", *arguments]
    shown = warnings.showwarning
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as output:
            main()
    except SystemExit as ended:
        if ended.code:
            raise AssertionError(f"fognn {arguments}: exit code {ended.code}") from ended
    finally:
        sys.argv, warnings.showwarning = before, shown
    return output.getvalue()


def counts() -> dict[str, int]:
    return {row.id: count_parameters(build(row)) for row in rows()}


def networks() -> dict[str, list[float]]:
    """Sums of the outputs, their absolute values, and the gradients, on one fixed batch."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(28, (40,), generator=generator)
    half = torch.randint(20, (2, 60), generator=generator)
    edge_attr = torch.randint(1, 4, (120,), generator=generator)
    graph = (x, torch.cat([half, half + 20], dim=1), edge_attr, torch.arange(40) // 20)
    images = torch.rand(2, 6, 3, 28, 28, generator=generator)
    episode = (images[:, :5], torch.arange(5).repeat(2, 1), images[:, 5])
    found = {}
    for name in pinned("networks"):
        torch.manual_seed(0)
        if name.startswith("fewshot"):
            net, batch = create_model(name, image_size=28).eval(), episode
        else:
            fog = {"h1": 8, "h2": 4, "fog_act_first": True} if "fog" in name else {}
            degrees = {"degrees": [0, 5, 10, 5]} if name.startswith("pna") else {}
            settings: dict[str, Any] = {"channels": 32, **fog, **degrees}
            net, batch = create_model(name, TASKS["zinc"], **settings), graph
        out = net(*batch)
        out.square().sum().backward()
        gradients = [p.grad for p in net.parameters() if p.grad is not None]
        found[name] = [
            out.sum().item(),
            out.abs().sum().item(),
            sum(g.abs().sum().item() for g in gradients),
            sum(g.norm().item() for g in gradients),
        ]
    return found


def tables() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in TABLES:
        lines = csv.DictReader(io.StringIO(command("table", name, "--csv")))
        keys = ("mean", "sd", "paper_mean", "paper_sd", "low", "high", "held_out")
        found[name] = {
            f"{line['data']} {line['network']}": [line["seeds"], line["parameters"]]
            + [float(line[key]) if line[key] else None for key in keys]
            for line in lines
        }
    for name in ("rates", "compare"):
        found[name] = sorted(DECIMALS.findall(command("table", name, "--csv")))
    return found


def runs() -> dict[str, str]:
    """The digest of each committed run's settings, and the key of each run that is planned."""
    found = {}
    for path in LEDGERS:
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found[f"{path.stem} {entry['key']}"] = Config.from_dict(entry["config"]).digest()
    for table in TABLES:
        for run in plan(table):
            found[f"plan {table} {run.label}"] = f"{run.key} {run.config.digest()}"
    return found


def training(folder: Path) -> list[dict[str, float]]:
    """The curves of four short runs on generated graphs."""
    found = []
    for model in ("gcn", "gcn+fog", "gatedgcn+fog", "gin"):
        place = folder / model.replace("+", "-")
        words = [*SHORT.format(model).split(), "--set", "training.epochs=3", "-o", str(place)]
        command(*words, folder=folder)
        with open(place / "metrics.csv", newline="") as file:
            for row in csv.DictReader(file):
                # Accuracies jump, and the validation loss multiplies last digits by thousands.
                found.append({key: float(row[key]) for key in ("epoch", "lr", "train_loss")})
        result = json.loads((place / "result.json").read_text())
        found.append({"fingerprint": result["fingerprint"], "parameters": result["parameters"]})
    return found


def graphs(count: int = 60) -> list[Data]:
    """Random graphs, and the number of their edges between nodes of different kinds."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(count):
        x = torch.randint(2, (12, 1), generator=generator)
        half = torch.randint(12, (2, 20), generator=generator)
        edge_index = torch.cat([half, half.flip(0)], dim=1)
        y = (x[edge_index[0]] != x[edge_index[1]]).sum() / 10
        found.append(Data(x=torch.cat([x, 1 - x], 1).float(), edge_index=edge_index, y=y.view(1)))
    return found


def comparison(folder: Path) -> dict[str, list[Any]]:
    """The answer of a small ``fognn compare``."""
    from fognn.data import write_graphs

    write_graphs(folder / "graphs.npz", graphs())
    arguments = "compare graphs.npz --hosts gcn --seeds 2 --budget 2000 --rates 0.01,0.003"
    command(*arguments.split(), "--set", "training.epochs=3", "-q", folder=folder)
    (path,) = (folder / "results" / "compare").glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        f"{line['model']} {line['seed']} {line['config']['training']['lr']}": [
            line["result"]["parameters"],
            line["result"]["fingerprint"],
            line["result"]["test"]["best"]["items"],
        ]
        for line in lines
    }


def datasets(data: Path) -> dict[str, str]:
    """Checksums of real datasets, as the committed runs have them."""
    from fognn.training.data import data_fingerprint

    found = {}
    for name, path in (("zinc/gcn-seed0", "zinc"), ("limits/gatedgcn-imdb-seed0", "limits")):
        for line in (RESULTS / f"{path}.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["key"] == name:
                config = Config.from_dict(entry["config"])
                config = config.with_values({"data.folder": str(data)})
                assert data_fingerprint(config) == entry["result"]["fingerprint"]
                found[name] = entry["result"]["fingerprint"]
    return found


def close(found: Any, pinned: Any, rel: float = 1e-4) -> None:
    """Equal, but for the last digits of numbers, which depend on the processor."""
    if isinstance(pinned, dict):
        assert sorted(found) == sorted(pinned)
        for key, value in pinned.items():
            close(found[key], value, rel)
    elif isinstance(pinned, list):
        assert len(found) == len(pinned)
        for one, other in zip(found, pinned, strict=True):
            close(one, other, rel)
    elif isinstance(pinned, float):
        assert found == pytest.approx(pinned, rel=rel, abs=1e-6)
    else:
        assert found == pinned


def pinned(part: str) -> Any:
    return json.loads(PINNED.read_text(encoding="utf-8"))[part]


@pytest.mark.parametrize("part", [counts, networks, tables], ids=lambda part: part.__name__)
def test_pinned(part: Callable[[], Any]) -> None:
    assert set(list_models()) >= set(pinned("networks"))  # other tests may register hosts
    close(json.loads(json.dumps(part())), pinned(part.__name__))


def test_runs_keep_their_keys_and_digests() -> None:
    found, before = runs(), pinned("runs")
    assert {key: found.get(key) for key in before} == before  # new runs may join


@pytest.mark.parametrize("part", [training, comparison], ids=lambda part: part.__name__)
def test_pinned_runs(part: Callable[[Path], Any], tmp_path: Path) -> None:
    # Each step multiplies what processors differ in: by 2e-3 after three epochs on two machines.
    close(json.loads(json.dumps(part(tmp_path))), pinned(part.__name__), rel=1e-2)


def test_datasets(real_data: Path) -> None:
    assert datasets(real_data) == pinned("datasets")


def test_killed_and_resumed_it_ends_in_the_same_bits(tmp_path: Path) -> None:
    words = [*SHORT.format("gcn+fog").split(), "--set", "training.epochs=6"]
    command(*words, "-o", "whole", folder=tmp_path)
    for _ in range(2):  # killed after an epoch that was not there before
        child = subprocess.Popen(
            [sys.executable, "-m", "fognn", *words, "-o", "killed"], cwd=tmp_path
        )
        before = epochs(tmp_path / "killed")
        while child.poll() is None and epochs(tmp_path / "killed") == before:
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
    command(*words, "-o", "killed", folder=tmp_path)
    one, other = (
        torch.load(tmp_path / name / "last.ckpt", weights_only=False)["model"]
        for name in ("whole", "killed")
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


def epochs(folder: Path) -> int:
    file = folder / "metrics.csv"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.slow
def test_every_kept_network_has_its_figure(real_data: Path) -> None:
    output = command("verify", "--all", "--data", str(real_data))
    assert re.search(r"\b(\d+) of \1 networks agree", output)


if __name__ == "__main__":
    import tempfile

    assert fognn
    content: dict[str, Any] = {part.__name__: part() for part in (counts, networks, tables, runs)}
    for part in (training, comparison):
        with tempfile.TemporaryDirectory() as place:
            content[part.__name__] = part(Path(place))
    content["datasets"] = datasets(Path(os.environ["FOGNN_DATA"]))
    PINNED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
