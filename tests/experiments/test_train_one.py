from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import metrics, molecules, tiny

import fognn
from fognn.data.graph_files import write_graphs
from fognn.experiments import protocol
from fognn.experiments.tables import run_folder
from fognn.training import Config, Result, fit

SMALL: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 4,
    "fraction": 0.0008,
    "threads": 1,
    "quiet": True,
    "model.channels": 16,
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_one_call() -> None:
    result = fognn.train("cluster", "gcn", 1, lr=0.01, weight_decay=0.1, **SMALL)
    assert isinstance(result, Result)
    assert (result.data, result.model, result.seed, result.epochs) == ("CLUSTER", "gcn", 1, 2)
    config = Config.read(result.folder / "config.yaml")
    assert (config.training.lr, config.training.weight_decay) == (0.01, 0.1)
    assert (config.data.fraction, config.machine.threads) == (0.0008, 1)
    assert result.folder == run_folder(config)
    net = fognn.load(result.folder)
    assert net(torch.tensor([0, 1]), torch.tensor([[0, 1], [1, 0]])).shape == (2, 6)
    assert fognn.train("cluster", "gcn", 1, lr=0.01, weight_decay=0.1, **SMALL) == result
    assert [path.name for path in Path().iterdir()] == ["runs"], "its run, and nothing else"


def test_the_same_from_its_config() -> None:
    fognn.train("cluster", "gcn", folder="a", **SMALL)
    again = fognn.train(config="a/config.yaml", folder="b", quiet=True)
    assert again.folder == Path("b")
    assert metrics(Path("a")) == metrics(Path("b"))
    values: dict[str, Any] = {"folder": "c", "quiet": True, "training.lr": 0.5}
    other = fognn.train(config="a/config.yaml", seed=5, epochs=1, **values)
    assert (other.seed, other.epochs) == (5, 1)
    assert Config.read(Path("c/config.yaml")).training.lr == 0.5


def test_wrong_arguments() -> None:
    Path("config.yaml").write_text(tiny().to_yaml())
    for arguments, named in (
        ({"data": "zinc", "config": "config.yaml"}, "config"),
        ({"data": "zinc"}, "data and model"),
        ({"config": "none.yaml"}, "none.yaml"),
        ({"data": "zinc", "model": "gcm"}, "model 'gcm'; did you mean"),
        ({"data": "zinc", "model": "gcn", "lr": 0.0}, r"\blr\b"),
        ({"data": "zinc", "model": "gcn", "rate": 3}, "'rate'"),
        ({"data": "zinc", "model": "gcn", "channels": "x"}, "channels"),
        ({"data": "zinc", "model": "gcn", "keep_weights": True}, "keep_weights"),
        ({"data": molecules(20), "model": torch.nn.Linear}, "the class Linear"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=named):
            fognn.train(**arguments)  # type: ignore[arg-type]
    assert not Path("runs").exists()


def test_folders(tmp_path: Path) -> None:
    for data, model, expected in (
        ("zinc", "GCN+FOG", "zinc/gcn+fog-seed0"),
        ("IMDB-MULTI", "gin", "limits/gin-imdb-multi-seed0"),
        ("zinc-without-node-features", "fog", "limits/fog-zinc-without-node-features-seed0"),
        ("miniImageNet", "gnn", "few-shot/gnn-1shot-seed0"),
        ("CIFAR-FS-5way-5shot", "gnn", "cifar-fs/gnn-5shot-seed0"),
    ):
        assert run_folder(protocol(data, model)) == Path("runs") / expected
    values = {"machine.threads": 3, "machine.device": "cpu", "data.folder": "/data"}
    assert run_folder(protocol("zinc", "gcn", 0, values)) == Path("runs/zinc/gcn-seed0")
    folders = []
    for place in ("a", "b"):  # two files of one name are two datasets
        write_graphs(tmp_path / place / "My-Graphs.npz", molecules(12))
        config = protocol(str(tmp_path / place / "My-Graphs.npz"), "gcn")
        folders.append(run_folder(config))
        assert folders[-1] == Path("runs") / f"my-graphs/gcn-seed0-{config.digest()}"
    assert folders[0] != folders[1]
    compressed = config.with_values({"data.name": "data/ESOL.csv.gz"})
    assert run_folder(compressed).parent == Path("runs/esol")


def test_another_run_in_the_same_folder() -> None:
    fit(tiny(training__epochs=2), "run", quiet=True)
    with pytest.raises(ValueError, match="another run"):
        fognn.train("cluster", "gcn", folder="run", **SMALL)
