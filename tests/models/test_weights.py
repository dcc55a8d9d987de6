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
from fognn.models.weights import (
    Weights,
    kept_file,
    read_weights,
    weights_folders,
    write_weights,
)
from fognn.nn import FOG
from fognn.utils.errors import FileError

CONFIG: dict[str, Any] = {"model": {"name": "gcn+fog", "channels": 16, "layers": 2, "norm": "sym"}}
FILE = Path("weights/zinc/gcn+fog.safetensors")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights but those of the working directory."""
    monkeypatch.delenv("FOGNN_WEIGHTS", raising=False)
    monkeypatch.setattr("fognn.models.weights.__file__", str(tmp_path / "a" / "b" / "c.py"))
    monkeypatch.setattr("fognn.models.weights.files", lambda package: tmp_path / "package")
    monkeypatch.chdir(tmp_path)


def weights(task: str = "zinc") -> Weights:
    net = create_model("gcn+fog", task, channels=16, layers=2, norm="sym")
    fields = json.loads(json.dumps(TASKS[task].to_dict()))
    return Weights("zinc/gcn+fog-seed3", 3, 7, CONFIG, fields, net.state_dict())


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
    for task in ("ZINC", TASKS["zinc"]):
        net = create_model("GCN+FOG", task, pretrained=True)
        assert net.training, "as in timm"
        for name, value in net.state_dict().items():
            assert torch.equal(value, own.tensors[name])
        # The file does not say it, so it is the paper's order.
        assert all(fog.act_first for fog in net.modules() if isinstance(fog, FOG))
    create_model("gcn+fog", "zinc", pretrained=True, channels=16, norm="sym", h1=None)
    for setting, value in (("channels", 64), ("norm", "mean"), ("h1", 3), ("layers", True)):
        with pytest.raises(ValueError, match=rf"create_model: {setting} must be .*got {value!r}"):
            create_model("gcn+fog", "zinc", pretrained=True, **{setting: value})
    with pytest.raises(ValueError, match=r"task must be one of .*fognn\.load"):
        create_model("gcn+fog", Task("node", 2, node_tokens=3, edge_tokens=1), pretrained=True)
    with pytest.raises(ValueError, match="unknown model 'gnc'"):
        create_model("gnc", "zinc", pretrained=True)
    with pytest.raises(ValueError, match=r"no weights for gin on zinc; kept here: zinc/gcn\+fog"):
        create_model("gin", "zinc", pretrained=True)


def test_imdb_multi_is_in_the_table_of_limits() -> None:
    own = replace(weights("imdb-multi"), key="limits/gcn+fog-imdb-multi-seed0")
    write_weights(Path("weights/limits/gcn+fog-imdb-multi.safetensors"), own)
    net = create_model("gcn+fog", "imdb-multi", pretrained=True)
    assert torch.equal(net.state_dict()["head.mlp.0.weight"], own.tensors["head.mlp.0.weight"])


def test_where_weights_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FOGNN_WEIGHTS, the clone, the working directory, the installed package."""
    name, clone = "zinc/gcn+fog", tmp_path / "clone"
    (clone / "fognn" / "models").mkdir(parents=True)
    (clone / "pyproject.toml").touch()
    file = str(clone / "fognn" / "models" / "weights.py")
    monkeypatch.setattr("fognn.models.weights.__file__", file)
    monkeypatch.setenv("FOGNN_WEIGHTS", str(tmp_path / "mine"))
    places = [tmp_path / "mine", clone / "weights", Path("weights")]
    places.append(tmp_path / "package" / "kept" / "weights")
    assert weights_folders() == places
    with pytest.raises(ValueError, match=r"got 'zinc/gcn\+fog'; kept here: none"):
        kept_file(name)
    for folder in reversed(places):
        write_weights(folder / "zinc/gcn+fog.safetensors", weights())
        assert kept_file("ZINC/GCN+FOG") == folder / "zinc/gcn+fog.safetensors"
        assert create_model("gcn+fog", "zinc", pretrained=True)
    assert kept_file(FILE) == FILE
    # A folder of that name comes first; other words are no names.
    Path(name).mkdir(parents=True)
    for other in (name, "gat", "../weights/zinc/gat", "a/b/c", "/zinc/gat", "zinc/.gat"):
        assert kept_file(other) is None


class Touch:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("made",)


def test_files_that_are_no_weights() -> None:
    write_weights(FILE, weights())
    data = FILE.read_bytes()
    for size in (0, 5, len(data) // 2, len(data) - 1):
        FILE.write_bytes(data[:size])
        with pytest.raises(FileError, match=r"gcn\+fog\.safetensors is truncated or corrupt"):
            create_model("gcn+fog", "zinc", pretrained=True)
    for text in (None, "", "[1]", '{"format": 2}', '{"format": 1, "key": "a"}'):
        save_file({"a": torch.ones(2)}, FILE, None if text is None else {"fognn": text})
        with pytest.raises(FileError, match="holds no network"):
            fognn.load("zinc/gcn+fog")
    for key, value in (("channels", 32), ("name", "gnc"), ("width", 3)):
        write_weights(FILE, replace(weights(), config={"model": CONFIG["model"] | {key: value}}))
        with pytest.raises(FileError, match="holds no network"):
            create_model("gcn+fog", "zinc", pretrained=True)
    torch.save({"model": Touch()}, FILE)
    with pytest.raises(FileError, match="truncated or corrupt"):
        fognn.load("zinc/gcn+fog")
    assert not Path("made").exists()
