from pathlib import Path

import pytest
import torch
from tiny_images import tiny_images, write_cifar
from tiny_runs import tiny
from torch.nn import Module

from fognn.experiments import protocol
from fognn.models import PretrainedNet
from fognn.training import Result, export, fit, load
from fognn.training.data import open_split
from fognn.training.evaluation import forward_batch


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Result:
    config = tiny(training__lr=0.05, training__epochs=4, model__dropout=0.5)
    return fit(config, tmp_path_factory.mktemp("runs") / "run", quiet=True)


NAMES = ("config.json", "model.safetensors", "README.md")


def same(first: Module, second: Module) -> bool:
    a, b = first.state_dict(), second.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_there_and_back(run: Result, tmp_path: Path, checkpoint: str) -> None:
    assert run.best_epoch < run.epochs, "else the two are the same"
    folder = export(run.folder, tmp_path / "hub" / "net", checkpoint)
    assert folder == tmp_path / "hub" / "net"
    net = load(run.folder, checkpoint)
    for twin in (PretrainedNet.from_pretrained(folder), load(folder)):
        assert isinstance(twin, PretrainedNet)
        assert same(twin.module, net)
        assert not any(module.training for module in twin.modules())
    batch = next(iter(open_split(tiny(), "val")))
    with torch.no_grad():
        assert torch.equal(forward_batch(load(folder), batch)[0], forward_batch(net, batch)[0])


def test_the_card_names_the_users_data(tmp_path: Path) -> None:
    lines = [f"{'C' * n}O,{n}" for n in range(1, 21)]
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "wine.csv").write_text("\n".join(["smiles,taste", *lines]) + "\n")
    values = {"data.target": "taste", "training.epochs": 2, "model.channels": 8}
    config = protocol(str(tmp_path / "secret" / "wine.csv"), "gcn+fog", 0, values)
    result = fit(config, tmp_path / "run", quiet=True)
    assert result.test is not None
    for name, at, epoch in (("run", "last", 2), ("run/best.ckpt", "best", result.best_epoch)):
        export(tmp_path / name, tmp_path / at, "last")  # the checkpoint of a file is its own
        card = (tmp_path / at / "README.md").read_text()
        assert "# gcn+fog for wine.csv" in card
        assert "Trained on `wine.csv` to predict the column `taste`, with seed 0." in card
        score = f"{result.metric} after epoch {epoch}: {result.test[at]['items']:.4f}."
        assert f"Test {score}" in card
        assert "secret" not in card
        recipe = next(line for line in card.splitlines() if line.startswith("PretrainedNet("))
        assert "wine" not in recipe
    (tmp_path / "run" / "result.json").unlink()  # as if it had not finished
    export(tmp_path / "run", tmp_path / "unfinished")
    card = (tmp_path / "unfinished" / "README.md").read_text()
    assert "`taste`, with seed 0. To load it" in card
    assert "Test" not in card


@pytest.mark.parametrize("n_way", [5, 3])
def test_few_shot(tmp_path: Path, n_way: int) -> None:
    config = tiny_images(
        write_cifar(tmp_path / "data"), "gnn+fog", data__n_way=n_way, training__epochs=1
    )
    fit(config, tmp_path / "run", quiet=True)
    export(tmp_path / "run", tmp_path / "net")
    net, twin = load(tmp_path / "run"), load(tmp_path / "net")
    assert isinstance(twin, PretrainedNet)
    assert same(twin.module, net)
    tasks = next(iter(open_split(config, "test")))
    with torch.no_grad():
        out = forward_batch(twin, tasks)[0]
        assert torch.equal(out, forward_batch(net, tasks)[0])
    assert out.shape == (4, n_way)
