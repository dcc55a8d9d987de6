import copy
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import fognn.models
from fognn.models import TASKS, Task, count_parameters, create_model, list_models

pytest.importorskip("huggingface_hub")
import huggingface_hub.hub_mixin
from safetensors.torch import load_file, save_file

from fognn.models.hub import PretrainedNet
from fognn.utils.errors import FileError

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
        "README.md", "config.json", "model.safetensors",
    ]  # fmt: skip

    other = PretrainedNet.from_pretrained(tmp_path / "net")
    assert not other.training
    assert other.model_config == net.model_config
    for key, value in net.state_dict().items():
        assert torch.equal(other.state_dict()[key], value)
    assert torch.equal(other(*given), net.eval()(*given))
    assert str(other) == str(net)  # dropout and what else has no weights

    bare = create_model(name, task, **settings)
    bare.load_state_dict(load_file(tmp_path / "net" / "model.safetensors"))
    assert torch.equal(bare.eval()(*given), net(*given))


def test_it_is_a_model_of_the_hub() -> None:
    net = PretrainedNet("GCN", "ZINC", channels=16)
    assert isinstance(net, huggingface_hub.PyTorchModelHubMixin)
    assert net.model_config["name"] == "gcn"
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
        "name": "graphsage+fog",
        "task": {"level": "graph", "out_channels": 1, "node_tokens": 28, "edge_tokens": 4},
        "channels": 16, "layers": 2, "dropout": 0.5, "aggr": "mean", "benchmark": False, "h1": None,
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
        folder = tmp_path / built.model_config["name"]
        built.save_pretrained(folder)
        text = (folder / "README.md").read_text()
        recipe = next(line for line in text.splitlines() if line.startswith("PretrainedNet("))
        again = eval(recipe, {"PretrainedNet": PretrainedNet, "Task": Task})
        assert again.model_config == built.model_config


def test_the_norm_of_fog_is_kept(tmp_path: Path) -> None:
    settings = {"fog_norm": "layer_norm", "fog_act": "gelu", "fog_eps": 0.1}
    PretrainedNet("gcn+fog", "zinc", channels=16, **settings).save_pretrained(tmp_path)
    net = PretrainedNet.from_pretrained(tmp_path)
    assert settings.items() <= net.model_config.items()
    fog = net.module.blocks[0].conv.fog
    assert (type(fog.norm_1).__name__, type(fog.act).__name__) == ("LayerNorm", "GELU")
    assert fog.norm_1.eps == 0.1


def test_saving_again_replaces_the_network_and_keeps_the_card(tmp_path: Path) -> None:
    PretrainedNet("gcn", "zinc", channels=16).save_pretrained(tmp_path)
    (tmp_path / "README.md").write_text("my words")
    (tmp_path / "notes.txt").write_text("mine too")
    PretrainedNet("gat", OWN, channels=8).save_pretrained(tmp_path)
    assert PretrainedNet.from_pretrained(tmp_path).model_config["name"] == "gat"
    assert (tmp_path / "README.md").read_text() == "my words"
    assert len(list(tmp_path.iterdir())) == 4


def test_a_full_disk_leaves_the_old_network(tmp_path: Path) -> None:
    old = PretrainedNet("gcn", "zinc", channels=16)
    old.save_pretrained(tmp_path)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limit[1]))
    try:
        with pytest.raises(FileError, match=r"could not be written .*disk"):
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


def saved(folder: Path) -> Path:
    PretrainedNet("gcn", "zinc", channels=16, layers=2).save_pretrained(folder)
    return folder


def assert_one_line(folder: Path, message: str) -> None:
    with pytest.raises(FileError, match=message) as found:
        PretrainedNet.from_pretrained(folder)
    assert "\n" not in str(found.value)
    assert str(folder) in str(found.value)
    assert len(str(found.value)) < 600


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "gnc"}, "create_model: name must be a known one, got 'gnc'"),
        ({"name": 3}, "name must be a known one, got 3"),
        ({"name": "gat"}, "Missing key.*blocks"),
        ({"task": {"level": "graph"}}, "out_channels"),
        ({"task": {"depth": 3}}, "depth"),
        ({"task": 3}, "task must be .*got 3"),
        ({"width": 3}, "no setting 'width'"),
        ({"channels": [3]}, "channels must be .*got list"),
        ({"channels": 32}, "size mismatch"),
        ({"token": "x"}, "token"),
        ({"model_id": "x"}, "model_id"),
    ],
)
def test_a_config_that_was_changed(tmp_path: Path, change: dict, message: str) -> None:
    file = saved(tmp_path) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert_one_line(tmp_path, f"holds no whole network of fognn .*{message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no whole JSON file"),
        ('{"name": "gcn", ', "is no whole JSON file"),
        ("\x00\xff", "is no whole JSON file"),
        ("[" * 100_000, "is no whole JSON file"),
        ("[1, 2]", "must have the keys 'name' and 'task', got list"),
        ('{"model_type": "bert", "size": 8}', r"'name' and 'task', got \['model_type', 'size'\]"),
    ],
)
def test_a_config_of_another_program(tmp_path: Path, text: str, message: str) -> None:
    (saved(tmp_path) / "config.json").write_text(text, encoding="latin1")
    assert_one_line(tmp_path, rf"config\.json.*{message}")


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_missing_file(tmp_path: Path, missing: str) -> None:
    (saved(tmp_path) / missing).unlink()
    assert_one_line(tmp_path, f"must hold {missing}, as save_pretrained.*fognn.load")


@pytest.mark.parametrize("keep", [0, 5, 10, 0.5, 0.99])
def test_weights_that_are_cut_off(tmp_path: Path, keep: float) -> None:
    file = saved(tmp_path) / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    assert_one_line(tmp_path, "holds no whole network")


@pytest.mark.parametrize("change", ["missing", "extra", "shape"])
def test_weights_of_another_network(tmp_path: Path, change: str) -> None:
    file = saved(tmp_path) / "model.safetensors"
    weights = load_file(file)
    key = "head.mlp.0.weight"
    if change == "missing":
        del weights[key]
    elif change == "extra":
        weights["gate"] = torch.ones(1)
    else:
        weights[key] = weights[key].t().contiguous()
    save_file(weights, file)
    assert_one_line(tmp_path, "gate" if change == "extra" else key)


class Copy:
    """Copies a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return shutil.copyfile, (__file__, str(self.path))


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "model.pth"])
def test_no_pickle_is_read(tmp_path: Path, name: str) -> None:
    (saved(tmp_path / "net") / "model.safetensors").unlink()
    torch.save({"weight": Copy(tmp_path / "made")}, tmp_path / "net" / name)
    assert_one_line(tmp_path / "net", "holds no whole network|must hold model.safetensors")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("at", [0, 1])
def test_a_save_that_is_cut_off_leaves_the_old_network_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    saved(tmp_path)
    moves, replace = [], os.replace

    def cut_off(*paths):
        if str(paths[1]).startswith(str(tmp_path)) and ".tmp-" not in str(paths[1]):
            moves.append(paths)
        if len(moves) > at:
            raise KeyboardInterrupt
        replace(*paths)

    monkeypatch.setattr(os, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt):
        PretrainedNet("gat", "zinc", channels=16).save_pretrained(tmp_path)
    assert_one_line(tmp_path, r"must hold config\.json")
    assert not list(tmp_path.glob(".tmp-*"))


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
    assert pushed["files"] == ["README.md", "config.json", "model.safetensors"]


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
net = PretrainedNet.from_pretrained({str(tmp_path)!r})
print(fognn.models.count_parameters(net))
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("channels", value) for value in (10**5, 10**9, 2**62, 10**400, -(10**9), 1e300)],
        *[("layers", value) for value in (10**4, 10**9, 2**70)],
    ],
)
def test_nonsense_sizes(tmp_path: Path, key: str, value: float) -> None:
    file = saved(tmp_path) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    got = re.escape(str(value)[:5])
    assert_one_line(tmp_path, f"config.json: {key} must be at most .*, got {got}")


def test_nonsense_sizes_of_the_task(tmp_path: Path) -> None:
    file = saved(tmp_path) / "config.json"
    config = json.loads(file.read_text())
    config["task"]["node_tokens"] = 2**50
    file.write_text(json.dumps(config))
    assert_one_line(tmp_path, f"config.json: node_tokens must be at most .*, got {2**50}")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_deep_json(tmp_path: Path, name: str, text: str) -> None:
    file = saved(tmp_path) / name
    size = len(text).to_bytes(8, "little") if name == "model.safetensors" else b""
    file.write_bytes(size + text.encode())
    assert_one_line(tmp_path, "no whole")


def test_sizes_of_tensors_that_are_not_there(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
    content = len(header).to_bytes(8, "little") + header.encode()
    (saved(tmp_path) / "model.safetensors").write_bytes(content)
    assert_one_line(tmp_path, "holds no whole network")
