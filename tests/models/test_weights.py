import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import fognn
from fognn.models import TASKS, Task, create_model
from fognn.models.own_host import RESERVED
from fognn.models.weights import (
    Weights,
    kept_file,
    kept_names,
    pretrained_model,
    read_weights,
    weights_folders,
    write_weights,
)
from fognn.utils.errors import FileError

CONFIG: dict[str, Any] = {"model": {"name": "gcn+fog", "channels": 16, "layers": 2, "norm": "sym"}}
FILE = Path("weights/zinc/gcn+fog.safetensors")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOGNN_WEIGHTS", raising=False)
    monkeypatch.setattr("fognn.models.weights.__file__", str(tmp_path / "a" / "b" / "c.py"))
    monkeypatch.chdir(tmp_path)


def weights(task: str = "zinc") -> Weights:
    net = create_model("gcn+fog", task, channels=16, layers=2, norm="sym")
    fields = json.loads(json.dumps(TASKS[task].to_dict()))
    return Weights("zinc/gcn+fog-seed3", 3, 7, CONFIG, fields, net.state_dict())


def content(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The tensors, and the header."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    return data[8 + size :], json.loads(data[8 : 8 + size])


def rewrite(path: Path, tensors: bytes, header: str) -> None:
    text = header.encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + tensors)


def test_there_and_back() -> None:
    own = weights()
    write_weights(FILE, own)
    read = read_weights(FILE)
    assert replace(read, tensors={}) == replace(own, tensors={})
    assert (read.model, read.settings["channels"]) == ("gcn+fog", 16)
    assert list(read.tensors) == sorted(own.tensors)
    for name, value in own.tensors.items():
        assert torch.equal(read.tensors[name], value)
    first = FILE.read_bytes()
    write_weights(FILE, read)
    assert FILE.read_bytes() == first, "the same weights, the same bytes"
    assert [path.name for path in FILE.parent.iterdir()] == [FILE.name]


def test_the_network_by_its_name() -> None:
    own = weights()
    write_weights(FILE, own)
    for task in ("zinc", "ZINC", TASKS["zinc"]):
        net = create_model("GCN+FOG", task, pretrained=True)
        assert net.training, "as in timm"
        for name, value in net.state_dict().items():
            assert torch.equal(value, own.tensors[name])
    create_model("gcn+fog", "zinc", pretrained=True, channels=16, norm="sym", h1=None)
    for setting, value in (("channels", 64), ("norm", "mean"), ("h1", 3), ("layers", True)):
        with pytest.raises(ValueError, match=rf"create_model: {setting} must be .*got {value!r}"):
            create_model("gcn+fog", "zinc", pretrained=True, **{setting: value})
    with pytest.raises(ValueError, match=r"task must be one of .*fognn\.load"):
        create_model("gcn+fog", Task("node", 2, node_tokens=3, edge_tokens=1), pretrained=True)
    with pytest.raises(ValueError, match=r"task must be one of .*got None"):
        create_model("fewshot-fog", pretrained=True)
    with pytest.raises(ValueError, match="name must be a known one, got 'gnc'"):
        create_model("gnc", "zinc", pretrained=True)


def test_imdb_multi_is_in_the_table_of_limits() -> None:
    own = replace(weights("imdb-multi"), key="limits/gcn+fog-imdb-multi-seed0")
    write_weights(Path("weights/limits/gcn+fog-imdb-multi.safetensors"), own)
    net = create_model("gcn+fog", "imdb-multi", pretrained=True)
    assert torch.equal(net.state_dict()["head.mlp.0.weight"], own.tensors["head.mlp.0.weight"])


def test_pretrained_is_no_setting_of_a_network() -> None:
    write_weights(FILE, weights())
    with pytest.raises(ValueError, match="no setting 'pretrained'"):
        fognn.models.PretrainedNet("gcn+fog", "zinc", pretrained=True)
    with pytest.raises(ValueError, match="no setting 'pretrained'"):
        fognn.train("zinc", "gcn+fog", **{"model.pretrained": True})
    assert "pretrained" in RESERVED, "nor of a registered layer"
    # A file that asks for itself.
    settings = CONFIG["model"] | {"pretrained": True}
    write_weights(FILE, replace(weights(), config={"model": settings}))
    with pytest.raises(FileError, match="no setting 'pretrained'"):
        create_model("gcn+fog", "zinc", pretrained=True)


def test_where_weights_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "zinc/gcn+fog"
    assert weights_folders() == [Path("weights")]
    write_weights(FILE, weights())
    assert kept_file(name) == FILE
    assert kept_file("ZINC/GCN+FOG") == FILE
    assert kept_file(FILE) == FILE
    # The clone comes first.
    clone = tmp_path / "clone"
    (clone / "fognn" / "models").mkdir(parents=True)
    monkeypatch.setattr(
        "fognn.models.weights.__file__", str(clone / "fognn" / "models" / "weights.py")
    )
    assert weights_folders() == [Path("weights")], "a wheel"
    (clone / "pyproject.toml").touch()
    assert kept_file(name) == FILE
    write_weights(clone / FILE, weights())
    assert kept_file(name) == clone / FILE
    # FOGNN_WEIGHTS is the only one.
    monkeypatch.setenv("FOGNN_WEIGHTS", str(tmp_path / "mine"))
    with pytest.raises(ValueError, match=r"got 'zinc/gcn\+fog'; kept here: none; the wheel"):
        kept_file(name)
    write_weights(tmp_path / "mine/zinc/gat.safetensors", weights())
    with pytest.raises(ValueError, match=r"kept here: zinc/gat; .*FOGNN_WEIGHTS"):
        kept_file(name)
    with pytest.raises(ValueError, match=r"'gcn\+fog' and 'zinc'.*kept here: zinc/gat; the wheel"):
        create_model("gcn+fog", "zinc", pretrained=True)
    assert kept_names() == ["zinc/gat"]
    # A folder of that name comes first; other words are no names.
    Path("zinc/gat").mkdir(parents=True)
    for other in ("zinc/gat", "gat", "../weights/zinc/gat", "a/b/c", "/zinc/gat", "zinc/.gat"):
        assert kept_file(other) is None


@pytest.mark.parametrize("keep", [0, 5, 10, 0.5, 0.99])
def test_a_file_that_is_cut_off(keep: float) -> None:
    write_weights(FILE, weights())
    data = FILE.read_bytes()
    FILE.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    assert_one_line("no whole network")


def assert_one_line(message: str) -> None:
    for read in (
        lambda: fognn.load("zinc/gcn+fog"),
        lambda: pretrained_model("gcn+fog", "zinc", {}),
    ):
        with pytest.raises(FileError, match=message) as found:
            read()
        assert "\n" not in str(found.value)
        assert str(FILE) in str(found.value)
        assert len(str(found.value)) < 600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "metadata must have 'fognn'"),
        ("", "no whole network"),
        ("[" * 100_000, "no whole network"),
        ('{"a":' * 100_000, "no whole network"),
        ("[1]", "of format 1"),
        ('{"format": 2}', "of format 1"),
        ('{"format": 1, "key": 3}', "valid 'key'"),
        (
            '{"format": 1, "key": "a", "seed": 1, "epoch": 1, "config": [], "task": null}',
            "'config'",
        ),
        (
            '{"format": 1, "key": "a", "seed": 1, "epoch": 1, "config": {}, "task": null}',
            "config.model",
        ),
    ],
)
def test_metadata_of_another_program(text: str | None, message: str) -> None:
    FILE.parent.mkdir(parents=True)
    save_file({"a": torch.ones(2)}, FILE, None if text is None else {"fognn": text})
    assert_one_line(message)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("channels", 2**60, "channels must be at most"),
        ("channels", 32, "size mismatch"),
        ("layers", 10**6, "layers must be at most"),
        ("name", "gnc", "gnc"),
        ("width", 3, "no setting 'width'"),
        ("norm", [[]], "norm"),
    ],
)
def test_settings_of_another_network(key: str, value: Any, message: str) -> None:
    own = weights()
    write_weights(FILE, replace(own, config={"model": CONFIG["model"] | {key: value}}))
    # For load, the rest of the configuration is missing too.
    with pytest.raises(FileError, match=message):
        pretrained_model("gcn+fog", "zinc", {})
    task = (own.task or {}) | {"node_tokens": 2**50}
    write_weights(FILE, replace(own, task=task))
    assert_one_line("node_tokens must be at most")


def test_tensors_that_are_not_there() -> None:
    write_weights(FILE, weights())
    tensors, header = content(FILE)
    name = next(name for name in header if name != "__metadata__")
    header[name] |= {"shape": [2**40], "data_offsets": [0, 2**42]}
    rewrite(FILE, tensors, json.dumps(header))
    assert_one_line("no whole network")
    FILE.write_bytes((2**60).to_bytes(8, "little") + b"{}")  # the length of the header
    assert_one_line("no whole network")


class Touch:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("made",)


def test_nothing_is_unpickled() -> None:
    FILE.parent.mkdir(parents=True)
    torch.save({"model": Touch()}, FILE)
    assert_one_line("no whole network")
    FILE.unlink()
    os.mkfifo(FILE)
    assert kept_file(FILE) is None, "a pipe would block"
    assert not Path("made").exists()
