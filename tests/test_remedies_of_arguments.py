"""Whatever a message about an argument of a command or of a function tells the user to do works."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import command_line
import pytest
import torch
from chaos.samples import molecules_csv
from own_images import untrained_few_shot, write_image, write_support
from tiny_images import write_cifar
from tiny_runs import molecules, tiny
from torch_geometric.nn import GCN, TAGConv

import fognn
from fognn.loader import PackedLoader
from fognn.models import PretrainedNet, register_host
from fognn.models.registry import HOSTS
from fognn.paper import protocol
from fognn.paper.tables import plan
from fognn.sweep.compare_runs import networks
from fognn.training import Config, Stopped, fit, loop, predict, predict_images
from fognn.training.own_data import check_own
from fognn.training.signals import StopSignals
from fognn.utils.errors import FileError
from fognn.utils.own_code import import_file

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(run: command_line.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str]:
        done = run(*arguments)
        return done.returncode, done.stdout + done.stderr

    return call


def test_see_fognn_models(run: Run) -> None:
    code, text = run("models", "nothing*")
    assert code == 1
    assert "got 'nothing*'; see fognn models" in text
    code, text = run("models")
    assert code == 0
    assert run("models", text.splitlines()[-1].split()[0])[0] == 0


def test_task_classification(run: Run, tmp_path: Path) -> None:
    molecules_csv(tmp_path)
    train = ["train", "molecules.csv", "gcn", "--target-column", "kind", "--epochs", "1", "-o", "a"]
    train += ["--threads", "1", "--set", "model.channels=8", "--set", "model.layers=1"]
    code, text = run(*train)
    assert code == 1
    assert "--task classification takes each text as a class" in text
    code, text = run(*train, "--task", "classification")
    assert code == 0, text


@pytest.mark.parametrize("unset", [True, False])
def test_info_without_a_home_directory(
    run: Run, monkeypatch: pytest.MonkeyPatch, unset: bool
) -> None:
    for name in ("FOGNN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    if unset:  # and a user whom the system does not know, as in some containers
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    else:
        monkeypatch.setenv("FOGNN_CACHE", "~nosuchuser/x")
    code, text = run("info")
    assert code == 0
    line = next(line for line in text.splitlines() if line.startswith("cache "))
    assert "begins with a home directory that is not known" in line
    assert "set HOME (FOGNN_CACHE for the cache)" in line
    monkeypatch.setenv("FOGNN_CACHE", str(Path.cwd() / "cache"))
    code, text = run("info")
    assert code == 0
    assert str(Path.cwd() / "cache") in text


def test_use_seeds() -> None:
    with pytest.raises(ValueError, match="values must not have 'seed'; use seeds"):
        plan("zinc", ["gcn"], values={"seed": 3})
    assert {planned.config.seed for planned in plan("zinc", ["gcn"], seeds=[3])} == {3}


def test_metric_accuracy_or_another_split(tmp_path: Path) -> None:
    def passes(metric: str, seed: int) -> bool:
        try:
            check_own(protocol(path, "gcn", 0, {"metric": metric, "data.seed": seed}))
        except ValueError as error:
            if "take --metric accuracy or another split" not in str(error):
                raise
            return False
        return True

    path, graphs = str(tmp_path / "a.pt"), molecules(40, classes=2)
    for number, graph in enumerate(graphs):
        graph.y[:] = number < 10
    torch.save(graphs, path)
    found = {passes("roc_auc", seed): seed for seed in range(30)}
    assert set(found) == {False, True}, "another split helps"
    assert passes("accuracy", found[False])


def test_import_the_file_that_registers_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGNN_IMPORT", "")
    monkeypatch.setitem(HOSTS, "mine", HOSTS["gcn"])
    monkeypatch.delitem(HOSTS, "mine")
    torch.save(molecules(40), tmp_path / "a.pt")
    register_host("mine")(lambda in_channels, out_channels: TAGConv(in_channels, out_channels, K=1))
    with pytest.raises(ValueError, match="import the file that registers 'mine'"):
        networks(str(tmp_path / "a.pt"), ["mine"], 6000, {})
    del HOSTS["mine"]  # a new process does not have it
    (tmp_path / "layers_of_mine.py").write_text(
        "from torch_geometric.nn import TAGConv\n"
        "from fognn.models import register_host\n\n\n"
        '@register_host("mine")\n'
        "def layer(in_channels, out_channels):\n"
        "    return TAGConv(in_channels, out_channels, K=1)\n"
    )
    import_file(tmp_path / "layers_of_mine.py")
    assert len(networks(str(tmp_path / "a.pt"), ["mine"], 6000, {})) == 2


def test_move_each_batch() -> None:
    graphs = molecules(4)
    with pytest.raises(ValueError, match=r"on the CPU, got meta; move each batch with batch\.to"):
        PackedLoader([graph.to("meta") for graph in molecules(4)], 2)
    assert [batch.to("meta").x.device.type for batch in PackedLoader(graphs, 2)] == ["meta"] * 2


def test_save_the_network_again(tmp_path: Path) -> None:
    net = PretrainedNet("gcn", "zinc", channels=8, layers=1)
    net.save_pretrained(tmp_path / "net")
    (tmp_path / "net" / "config.json").write_text("{")
    with pytest.raises(FileError, match=r"is no whole JSON file .*: save the network again"):
        PretrainedNet.from_pretrained(tmp_path / "net")
    net.save_pretrained(tmp_path / "net")
    PretrainedNet.from_pretrained(tmp_path / "net")


def test_load_a_run_folder(tmp_path: Path) -> None:
    fit(tiny(training__epochs=1), tmp_path / "run", quiet=True)
    with pytest.raises(FileError, match=r"for a run folder, use fognn\.load"):
        PretrainedNet.from_pretrained(tmp_path / "run")
    assert isinstance(fognn.load(tmp_path / "run"), torch.nn.Module)


def test_images_and_graphs_have_networks_of_their_own(run: Run, tmp_path: Path) -> None:
    write_support(tmp_path / "DIR", {"cat": 1, "dog": 2})
    write_image(tmp_path / "IMAGE", format="PNG")
    untrained_few_shot(tmp_path / "images.ckpt")
    torch.save(molecules(12), tmp_path / "INPUT.pt")
    values = {"training.epochs": 1, "model.channels": 8, "machine.threads": 1}
    fit(protocol("INPUT.pt", "gcn", 0, values), tmp_path / "graphs", quiet=True)
    code, text = run("predict", "images.ckpt", "INPUT.pt", "-o", "out.csv")
    assert code == 1
    advice = "use fognn predict RUN --support DIR --query IMAGE (fognn.training.predict_images), or"
    assert f"got 'images.ckpt': {advice} fognn.load(run) for the network itself" in text
    code, text = run("predict", "images.ckpt", "--support", "DIR", "--query", "IMAGE")
    assert code == 0, text
    assert predict_images("images.ckpt", "DIR", "IMAGE").probabilities.shape == (1, 2)
    net = fognn.load("images.ckpt")
    support, labels = torch.rand(1, 5, 3, 32, 32), torch.arange(5)[None]
    assert net(support, labels, torch.rand(1, 3, 32, 32)).shape == (1, 5)

    code, text = run("predict", "graphs", "--support", "DIR", "--query", "IMAGE")
    assert code == 1
    assert "got 'graphs': use fognn predict RUN INPUT -o FILE for a network of graphs" in text
    code, text = run("predict", "graphs", "INPUT.pt", "-o", "FILE")
    assert code == 0, text
    assert predict("graphs", "INPUT.pt", tmp_path / "out.csv") == 12


@pytest.mark.parametrize("k_shot", [1, 2])
def test_train_a_network_for_more_classes(run: Run, tmp_path: Path, k_shot: int) -> None:
    write_support(tmp_path / "support", {str(number): 1 for number in range(7)})
    write_image(tmp_path / "query.png")
    untrained_few_shot(tmp_path / "net.ckpt", data__k_shot=k_shot)
    predicts = ["--support", "support", "--query", "query.png"]
    code, text = run("predict", "net.ckpt", *predicts)
    assert code == 1
    found = re.search(r"train one for 7 \(fognn (train .*)\)$", text.strip())
    assert found is not None, text
    write_cifar(tmp_path / "data", 3)
    small = ["--epochs", "1", "--batch-size", "2", "--threads", "1", "-q", "--data", "data"]
    for setting in ("training.steps=1", "data.episodes=2", "model.embedding=8"):
        small += ["--set", setting]
    code, text = run(*shlex.split(found[1]), *small, "-o", "run", "--no-ledger")
    assert code == 0, text
    assert fognn.load("run").n_way == 7
    assert Config.read(tmp_path / "run" / "config.yaml").data.k_shot == k_shot
    code, text = run("predict", "run", *predicts)
    assert code == 0, text


def test_the_same_python_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stop(StopSignals):
        asked = True

        def __init__(self) -> None:
            self.before = {}

    def forget() -> None:  # as a new process does
        monkeypatch.setattr("fognn.training.given._GRAPHS", {})
        monkeypatch.setattr("fognn.training.given._MODULES", {})

    graphs, net = molecules(40), GCN(1, 8, 1, 1)
    for graph in graphs:
        graph.x, graph.y = torch.ones(graph.num_nodes, 1), torch.rand(graph.num_nodes)
    given: dict[str, Any] = {"epochs": 2, "threads": 1, "quiet": True, "folder": tmp_path / "a"}
    with monkeypatch.context() as patch:
        patch.setattr(loop, "StopSignals", Stop)
        with pytest.raises(Stopped, match="to resume: "):
            fognn.train(graphs, net, **given)
    forget()
    with pytest.raises(ValueError, match=r"call fognn\.train with the same object"):
        fognn.train(config=tmp_path / "a" / "config.yaml", **given)
    assert fognn.train(graphs, net, **given).epochs == 2
    assert "resumes" in (tmp_path / "a" / "log.txt").read_text()
    forget()
    with pytest.raises(ValueError, match=r"or fognn\.load\(run, module=network\) to load its weig"):
        fognn.load(tmp_path / "a")
    fognn.load(tmp_path / "a", module=net)
