import copy
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import fognn
import fognn.models
from fognn.models import TASKS, Task, count_parameters, create_model, list_models

pytest.importorskip("huggingface_hub")
import huggingface_hub.hub_mixin
from torch_geometric.nn.model_hub import PyGModelHubMixin

from fognn.models.hub import PretrainedNet

FEW_SHOT = {"n_way": 3, "embedding": 8, "image_size": 28, "image_channels": 1, "hidden": 4}
OWN = Task("edge", out_channels=3, node_channels=4, edge_channels=2)


@pytest.fixture(autouse=True)
def no_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args, **kwargs):
        raise AssertionError("a test asked the internet for something")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def inputs(task: Task | None) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    if task is None:
        return torch.rand(2, 3, 1, 28, 28), torch.tensor([[0, 1, 2]] * 2), torch.rand(2, 1, 28, 28)
    x = torch.randint(28, (6,)) if task.node_tokens else torch.rand(6, task.node_channels)
    edges = torch.randint(4, (9,)) if task.edge_tokens else torch.rand(9, task.edge_channels)
    return x, torch.randint(6, (2, 9)), edges


CASES = [
    (name, task)
    for name in list_models()
    for task in ([None] if name.startswith("fewshot") else ["zinc", OWN])
]


@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_network_comes_back(tmp_path: Path, name: str, task: str | Task | None) -> None:
    settings = {"channels": 16, "layers": 2, "dropout": 0.25} if task else FEW_SHOT
    net = PretrainedNet(name, task, **settings)
    given = inputs(TASKS["zinc"] if task == "zinc" else task)
    net(*given)  # the running statistics of the norms are no longer those of a new network
    net.save_pretrained(tmp_path / "net")
    assert sorted(p.name for p in (tmp_path / "net").iterdir()) == [
        "README.md", "config.json", "model.pth",
    ]  # fmt: skip

    other = PretrainedNet.from_pretrained(tmp_path / "net")
    assert not other.training
    assert other.model_config == net.model_config
    for key, value in net.state_dict().items():
        assert torch.equal(other.state_dict()[key], value)
    assert torch.equal(other(*given), net.eval()(*given))
    assert str(other) == str(net)  # dropout and what else has no weights

    weights = torch.load(tmp_path / "net" / "model.pth", weights_only=True)
    bare = create_model(name, task, **settings)
    bare.load_state_dict(weights)
    assert torch.equal(bare.eval()(*given), net(*given))


def test_it_is_a_model_of_the_hub() -> None:
    net = PretrainedNet("GCN", "ZINC", channels=16)
    assert isinstance(net, PyGModelHubMixin)
    assert isinstance(net, huggingface_hub.ModelHubMixin)
    assert (net.model_name, net.dataset_name) == ("gcn", "zinc")
    clone = copy.deepcopy(net)
    assert clone.model_config == net.model_config
    assert set(clone.state_dict()) == {f"module.{key}" for key in net.module.state_dict()}


def test_config_is_for_people(tmp_path: Path) -> None:
    net = PretrainedNet("graphsage+fog", "zinc", channels=16, layers=2, dropout=0.5, aggr="mean",
                        benchmark=False, h1=None)  # fmt: skip
    net.save_pretrained(str(tmp_path))
    text = (tmp_path / "config.json").read_text()
    assert len(text.splitlines()) > 10
    assert json.loads(text) == {
        "library": "fognn",
        "version": fognn.__version__,
        "name": "graphsage+fog",
        "task": {
            "level": "graph", "out_channels": 1, "node_tokens": 28, "node_channels": None,
            "edge_tokens": 4, "edge_channels": None, "readout": "mean",
        },
        "settings": {"channels": 16, "layers": 2, "dropout": 0.5, "aggr": "mean",
                     "benchmark": False, "h1": None},
        "parameters": count_parameters(net),
    }  # fmt: skip


def test_model_card(tmp_path: Path) -> None:
    net = PretrainedNet("gcn+fog", "zinc", channels=16)
    net.save_pretrained(tmp_path / "a")
    card = huggingface_hub.ModelCard.load(tmp_path / "a" / "README.md")
    assert card.data.library_name == "fognn"
    assert {"graph-machine-learning", "fognn"} <= set(card.data.tags)
    assert "# gcn+fog for zinc" in card.text
    assert f"{count_parameters(net):,} parameters" in card.text
    assert "PretrainedNet('gcn+fog', 'zinc', channels=16)" in card.text

    # The line of the card is a program that builds the same network.
    for built in (PretrainedNet("gat", OWN, channels=16, heads=2), PretrainedNet("fewshot-fog")):
        built.save_pretrained(tmp_path / built.model_name)
        text = (tmp_path / built.model_name / "README.md").read_text()
        recipe = next(line for line in text.splitlines() if line.startswith("PretrainedNet("))
        again = eval(recipe, {"PretrainedNet": PretrainedNet, "Task": Task})
        assert again.model_config == built.model_config


def test_saving_again_replaces_the_network_and_keeps_the_card(tmp_path: Path) -> None:
    PretrainedNet("gcn", "zinc", channels=16).save_pretrained(tmp_path)
    (tmp_path / "README.md").write_text("my words")
    (tmp_path / "notes.txt").write_text("mine too")
    PretrainedNet("gat", OWN, channels=8).save_pretrained(tmp_path)
    assert PretrainedNet.from_pretrained(tmp_path).model_name == "gat"
    assert (tmp_path / "README.md").read_text() == "my words"
    assert len(list(tmp_path.iterdir())) == 4


def test_a_full_disk_leaves_the_old_network(tmp_path: Path) -> None:
    old = PretrainedNet("gcn", "zinc", channels=16)
    old.save_pretrained(tmp_path)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limit[1]))
    try:
        with pytest.raises(OSError, match=r"could not be written .*: is the disk full"):
            PretrainedNet("gcn", "zinc", channels=64).save_pretrained(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert PretrainedNet.from_pretrained(tmp_path).model_config == old.model_config
    assert len(list(tmp_path.iterdir())) == 3


def test_map_location(tmp_path: Path) -> None:
    PretrainedNet("gcn", "zinc", channels=16).save_pretrained(tmp_path)
    net = PretrainedNet.from_pretrained(tmp_path, map_location="meta")
    assert all(value.is_meta for value in net.state_dict().values())


def test_a_setting_that_no_json_holds() -> None:
    with pytest.raises(
        ValueError, match=r"channels must be a number, a string or a boolean, .* got T"
    ):
        PretrainedNet("gcn", "zinc", channels=torch.tensor(16))
    with pytest.raises(ValueError, match="create_model: name must be a known one, got 'gnc'"):
        PretrainedNet("gnc", "zinc")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for name in (tmp_path / "nothing", "owner/network"):
        with pytest.raises(ValueError, match=r"must be a folder, got .*snapshot_download"):
            PretrainedNet.from_pretrained(name)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="save_directory must be a folder, got the file"):
        PretrainedNet("gcn", "zinc", channels=16).save_pretrained(tmp_path / "file")


def test_settings_come_from_the_config_alone(tmp_path: Path) -> None:
    PretrainedNet("gcn", "zinc", channels=16).save_pretrained(tmp_path)
    PretrainedNet.from_pretrained(tmp_path, local_files_only=True, token=None, revision=None)
    for given in ({"channels": 32}, {"name": "gat"}, {"strict": False}):
        key = next(iter(given))
        with pytest.raises(ValueError, match=f"{key} must not be given, config.json holds all"):
            PretrainedNet.from_pretrained(tmp_path, **given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "gnc"}, "describes no network of fognn .*: create_model: name must be a known"),
        ({"name": 3}, "describes no network of fognn"),
        ({"task": {"level": "graph"}}, "describes no network of fognn .*out_channels"),
        ({"task": {"depth": 3}}, "describes no network of fognn .*depth"),
        ({"settings": {"width": 3}}, "describes no network of fognn .*no setting 'width'"),
        ({"settings": {"channels": [3]}}, "describes no network of fognn .*got list"),
        ({"settings": {"channels": 32}}, "model.pth holds the weights of another network"),
        ({"name": "gat"}, "model.pth holds the weights of another network: missing blocks"),
    ],
)
def test_a_config_that_was_changed(tmp_path: Path, change: dict, message: str) -> None:
    PretrainedNet("gcn", "zinc", channels=16).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ValueError, match=message):
        PretrainedNet.from_pretrained(tmp_path)


def test_pushing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = {}

    class Api:
        """Stands for the hub, which is on the internet."""

        def __init__(self, token=None) -> None:
            pass

        def create_repo(self, repo_id, **kwargs):
            return huggingface_hub.RepoUrl(f"https://huggingface.co/{repo_id}")

        def upload_folder(self, repo_id, folder_path, **kwargs):
            pushed[repo_id] = PretrainedNet.from_pretrained(folder_path).model_config
            pushed["files"] = sorted(os.listdir(folder_path))

    monkeypatch.setattr(huggingface_hub.hub_mixin, "HfApi", Api)
    net = PretrainedNet("gcn", "zinc", channels=16)
    net.save_pretrained(tmp_path / "net", push_to_hub=True, repo_id="me/net")
    assert pushed["me/net"] == net.model_config
    assert pushed["files"] == ["README.md", "config.json", "model.pth"]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_offline_in_a_process_of_its_own(tmp_path: Path) -> None:
    code = f"""
import socket, sys
def refuse(*args, **kwargs): raise SystemExit("went to the internet")
socket.socket.connect = socket.getaddrinfo = refuse
import fognn.models
assert "huggingface_hub" not in sys.modules, "importing fognn.models is slow"
from fognn.models import PretrainedNet
PretrainedNet("gcn", "zinc", channels=16).save_pretrained({str(tmp_path)!r})
print(PretrainedNet.from_pretrained({str(tmp_path)!r}).model_config["parameters"])
"""
    done = run(code, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path / "home"))
    assert done.returncode == 0, done.stderr
    expected = count_parameters(create_model("gcn", "zinc", channels=16))
    assert done.stdout.split() == [str(expected)]


def test_without_huggingface_hub() -> None:
    code = """
import sys
sys.modules["huggingface_hub"] = None
from fognn.models import *
create_model("gcn", "zinc", channels=16)
from fognn.models import PretrainedNet
"""
    done = run(code)
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith("ImportError: PretrainedNet needs huggingface_hub")
    assert 'pip install "fognn[hub]"' in error


def test_the_name_is_found_when_it_is_asked_for() -> None:
    assert fognn.models.PretrainedNet is PretrainedNet
    with pytest.raises(AttributeError, match="has no attribute 'Pretrained'"):
        fognn.models.Pretrained  # noqa: B018
