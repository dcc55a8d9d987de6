import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fognn.models import TASKS, PretrainedNet, Task, create_model, list_models
from fognn.nn import FOG
from fognn.utils.errors import FileError

FEW_SHOT = {"n_way": 3, "embedding": 8, "image_size": 28, "image_channels": 1, "hidden": 4}
OWN = Task("edge", out_channels=3, node_channels=4, edge_channels=2)


def inputs(task: Task | None) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    if task is None:
        return torch.rand(2, 3, 1, 28, 28), torch.tensor([[0, 1, 2]] * 2), torch.rand(2, 1, 28, 28)
    x = torch.randint(28, (6,)) if task.node_tokens else torch.rand(6, task.node_channels)
    edges = torch.randint(4, (9,)) if task.edge_tokens else torch.rand(9, task.edge_channels)
    return x, torch.randint(6, (2, 9)), edges


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PretrainedNet("gcn+fog", "zinc", channels=16, layers=2).save_pretrained(tmp_path / "net")
    return tmp_path / "net"


@pytest.mark.parametrize("name", ["fog", "gin+fog", "gatedgcn-e", "pna", "fewshot-gnn+fog"])
def test_a_network_comes_back(tmp_path: Path, name: str) -> None:
    assert name in list_models()
    for task in (None,) if name.startswith("fewshot") else ("zinc", OWN):
        settings = {"channels": 16, "layers": 2, "dropout": 0.25} if task else FEW_SHOT
        net = PretrainedNet(name, task, **settings)
        given = inputs(TASKS["zinc"] if task == "zinc" else task)
        net(*given)  # the running statistics of the norms are no longer those of a new network
        net.save_pretrained(tmp_path / "net")
        state = load_file(tmp_path / "net" / "model.safetensors")
        assert state.keys() == net.module.state_dict().keys()
        loaded = PretrainedNet.from_pretrained(tmp_path / "net")
        assert not loaded.training
        assert loaded.model_config == net.model_config
        assert torch.equal(loaded(*given), net.eval()(*given))


@pytest.mark.parametrize("first", [True, False, None])
def test_the_order_of_fog_is_kept(folder: Path, first: bool | None) -> None:
    """A folder that was written without the setting has the paper's order."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["fog_act_first"]
    path.write_text(json.dumps(config if first is None else config | {"fog_act_first": first}))
    net = PretrainedNet.from_pretrained(folder)
    fogs = [module for module in net.modules() if isinstance(module, FOG)]
    assert [fog.act_first for fog in fogs] == [first is not False] * 2


def test_a_folder_that_cannot_be_loaded(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"folder must be .*got 'somebody/net'"):
        PretrainedNet.from_pretrained("somebody/net")
    config, weights = folder / "config.json", folder / "model.safetensors"
    good, data = config.read_text(), weights.read_bytes()
    for text in ("", "[1]", '{"name": "gnc"}', good.replace("16", "18")):
        config.write_text(text)
        with pytest.raises(FileError, match=str(folder)):
            PretrainedNet.from_pretrained(folder)
    config.write_text(good)
    weights.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError, match="truncated or corrupt"):
        PretrainedNet.from_pretrained(folder)
    save_file(create_model("gin", "zinc").state_dict(), weights)
    with pytest.raises(FileError, match=str(folder)):
        PretrainedNet.from_pretrained(folder)
