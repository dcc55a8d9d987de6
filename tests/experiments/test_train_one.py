import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from kept_runs import kept_run, use_tiny_data
from tiny_runs import metrics, molecules, tiny

import fognn
from fognn.data.graph_files import write_graphs
from fognn.experiments import protocol, rows
from fognn.experiments import train as train_of_the_paper
from fognn.experiments.ledger import Ledger
from fognn.experiments.protocols import config_of
from fognn.experiments.tables import plan, run_folder
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
def place(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs go to a folder of the test's own, generated graphs to one for all tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOGNN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def test_the_packages_own_name() -> None:
    assert fognn.train is train_of_the_paper


def test_one_call(tmp_path: Path) -> None:
    result = fognn.train("cluster", "gcn", 1, lr=0.01, weight_decay=0.1, **SMALL)
    assert isinstance(result, Result)
    assert (result.data, result.model, result.seed, result.epochs) == ("CLUSTER", "gcn", 1, 2)
    assert result.folder.parts[:2] == ("runs", "cluster")
    assert result.folder.name.startswith("gcn-seed1-")
    config = Config.read(result.folder / "config.yaml")
    assert (config.training.lr, config.training.weight_decay) == (0.01, 0.1)
    assert config.data.fraction == 0.0008
    assert config.machine.threads == 1
    assert config.model.settings["channels"] == 16
    assert result.folder == run_folder(config)
    net = fognn.load(result.folder)
    assert net(torch.tensor([0, 1]), torch.tensor([[0, 1], [1, 0]])).shape == (2, 6)
    assert fognn.train("cluster", "gcn", 1, lr=0.01, weight_decay=0.1, **SMALL) == result


def test_the_same_from_its_config(tmp_path: Path) -> None:
    first = fognn.train("cluster", "gcn", folder=tmp_path / "a", **SMALL)
    again = fognn.train(config=tmp_path / "a" / "config.yaml", folder=tmp_path / "b", quiet=True)
    assert again.folder == tmp_path / "b"
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    other = fognn.train(
        config=tmp_path / "a" / "config.yaml",
        folder=tmp_path / "c",
        seed=5,
        epochs=1,
        quiet=True,
        **{"training.lr": 0.5},
    )
    assert (first.seed, other.seed, other.epochs) == (0, 5, 1)
    assert Config.read(tmp_path / "c" / "config.yaml").training.lr == 0.5


def test_every_argument_reaches_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("fognn.experiments.train_one.fit", lambda *given: seen.append(given))
    fognn.train(
        "imdb-multi", "gin", 3, "here", epochs=7, lr=0.25, weight_decay=0.5, batch_size=6,
        fraction=0.75, fold=4, precision="64-true", device="cpu", threads=2, ranks=3, compile=True,
        logger="tensorboard", command="again",
        **{"data.folder": Path("files"), "data.holdout": True},
    )  # fmt: skip
    ((config, folder, command, quiet, logger),) = seen
    base = protocol("imdb-multi", "gin", 3)
    expected = dataclasses.replace(
        base,
        data=dataclasses.replace(base.data, fraction=0.75, fold=4, folder="files", holdout=True),
        training=dataclasses.replace(
            base.training, epochs=7, lr=0.25, weight_decay=0.5, batch_size=6
        ),
        precision="64-true",
        machine=dataclasses.replace(base.machine, device="cpu", threads=2, ranks=3, compile=True),
    )
    assert config == expected
    assert (folder, command, quiet, logger) == ("here", "again", False, "tensorboard")
    fognn.train("imdb-multi", "gin")
    assert seen[1][0] == protocol("imdb-multi", "gin", 0), "nothing given, nothing changed"
    fognn.train("zinc", "gcn", weight_decay=0)
    assert seen[2][0].training.weight_decay == 0, "zero is a value"


def test_wrong_arguments(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(tiny().to_yaml())
    with pytest.raises(ValueError, match=r"train: config must be .* got data='zinc'"):
        fognn.train("zinc", config=tmp_path / "config.yaml")
    with pytest.raises(ValueError, match=r"train: config must be .* model='gcn'"):
        fognn.train(model="gcn", config=tmp_path / "config.yaml")
    for given in ({}, {"data": "zinc"}, {"model": "gcn"}):
        with pytest.raises(ValueError, match="train: data and model must be given"):
            fognn.train(**given)
    with pytest.raises(ValueError, match=r"none\.yaml does not exist"):
        fognn.train(config=tmp_path / "none.yaml")
    with pytest.raises(ValueError, match=r"model .*'gcm'; did you mean"):
        fognn.train("zinc", "gcm")
    with pytest.raises(ValueError, match=r"training\.lr must be .*above 0"):
        fognn.train("zinc", "gcn", lr=0.0)
    with pytest.raises(ValueError, match="unknown setting 'model'"):
        Config.read(tmp_path / "config.yaml").with_values({"model": 3})
    with pytest.raises(ValueError, match="unknown setting 'rate'"):
        fognn.train("zinc", "gcn", rate=3)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("data", "model", "expected"),
    [
        ("zinc", "GCN+FOG", "zinc/gcn+fog-seed0"),
        ("IMDB-MULTI", "gin", "limits/gin-imdb-multi-seed0"),
        ("zinc-without-node-features", "fog", "limits/fog-zinc-without-node-features-seed0"),
        ("miniImageNet", "gnn", "few-shot/gnn-1shot-seed0"),
        ("omniglot-5way-1shot", "fewshot-gnn+fog", "omniglot/gnn+fog-1shot-seed0"),
        ("CIFAR-FS-5way-5shot", "gnn", "cifar-fs/gnn-5shot-seed0"),
    ],
)
def test_folders_of_the_papers_runs(data: str, model: str, expected: str) -> None:
    assert run_folder(protocol(data, model)) == Path("runs") / expected


def test_train_and_reproduce_use_the_same_folder() -> None:
    for table in ("zinc", "limits", "widths"):
        for run in plan(table, seeds=2):
            assert run.folder(Path("runs")) == run_folder(run.config)
    wide, row = plan("widths", ["gcn+fog-c158"])[0], plan("zinc", ["gcn+fog"])[0]
    assert wide.folder(Path("runs")) == row.folder(Path("runs")), "tables 3 and 6 share a run"
    small = plan("zinc", ["gcn"], fraction=0.5)[0].folder(Path("runs"))
    assert small == run_folder(protocol("zinc", "gcn", 0, {"fraction": 0.5}))


def test_every_run_has_a_folder_of_its_own() -> None:
    configs = [config_of(row, seed) for row in rows() for seed in (0, 1)]
    configs += [protocol("zinc", "gcn", 0, {"training.lr": lr}) for lr in (0.5, 0.25)]
    configs += [protocol("zinc", "gcn", 0, {"model.channels": 8})]
    configs += [protocol("imdb-multi", "gin", 0, {"data.fold": fold}) for fold in (1, 2)]
    runs = {json.dumps(config.identity(), sort_keys=True): run_folder(config) for config in configs}
    assert len(set(runs.values())) == len(runs)


def test_where_a_run_runs_does_not_name_its_folder() -> None:
    values = {"machine.threads": 3, "machine.device": "cpu", "data.folder": "/data"}
    assert run_folder(protocol("zinc", "gcn", 0, values)) == Path("runs/zinc/gcn-seed0")


def test_folders_of_ones_own_files(tmp_path: Path) -> None:
    folders = []
    for place in ("a", "b"):
        write_graphs(tmp_path / place / "My-Graphs.npz", molecules(12))
        config = protocol(str(tmp_path / place / "My-Graphs.npz"), "gcn")
        folders.append(run_folder(config))
        assert folders[-1] == Path("runs") / f"my-graphs/gcn-seed0-{config.digest()}"
    assert folders[0] != folders[1], "two files of one name are two datasets"


def test_another_run_in_the_same_folder(tmp_path: Path) -> None:
    fit(tiny(training__epochs=2), tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match="holds another run"):
        fognn.train("cluster", "gcn", folder=tmp_path / "run", **SMALL)


def test_a_run_is_entered_into_the_ledger(tmp_path: Path) -> None:
    result = fognn.train("cluster", "gcn", results=tmp_path / "results", **SMALL)
    (entry,) = Ledger(tmp_path / "results" / "runs.jsonl").entries()
    assert (entry.table, entry.row, entry.seed) == ("runs", "", 0)
    assert entry.key == str(result.folder.relative_to("runs"))
    assert entry.result["fingerprint"] == result.fingerprint != ""
    assert str(tmp_path) not in (tmp_path / "results" / "runs.jsonl").read_text()
    fognn.train("cluster", "gcn", results=tmp_path / "results", **SMALL)
    assert len(Ledger(tmp_path / "results" / "runs.jsonl").entries()) == 1, "the same run once"


def test_weights_of_a_row_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_data(monkeypatch)
    kept_run(Path("runs/zinc/gat-seed0"), plan("zinc", ["gat"])[0])
    fognn.train("zinc", "gat", quiet=True)
    fognn.train("zinc", "gat", quiet=True, results="results")
    fognn.train("zinc", "gat", quiet=True, results="results", weights="mine")
    kept = sorted(path.as_posix() for path in Path().rglob("*.safetensors"))
    assert kept == ["mine/zinc/gat.safetensors", "weights/zinc/gat.safetensors"]


def test_own_files_leave_no_path_in_the_ledger(tmp_path: Path) -> None:
    write_graphs(tmp_path / "mine.npz", molecules(12))
    options = {"epochs": 1, "quiet": True, "model.channels": 8, "threads": 1}
    fognn.train(tmp_path / "mine.npz", "gcn", results=tmp_path / "results", **options)
    (entry,) = Ledger(tmp_path / "results" / "runs.jsonl").entries()
    assert (entry.data, entry.config["data"]["name"]) == ("mine.npz", "mine.npz")
    assert entry.result["command"].startswith("fognn train mine.npz gcn --seed 0 --set ")
    assert str(tmp_path) not in (tmp_path / "results" / "runs.jsonl").read_text()
