"""The order of FOG's norm and activation: one default, and the paper's order in its rows."""

from pathlib import Path

import pytest
import torch

from fognn.experiments import protocol
from fognn.models import create_model
from fognn.nn import FOG
from fognn.training import Config, ModelConfig
from fognn.training.data import task_of
from fognn.training.networks import untrained_model


@pytest.mark.parametrize("name", ["gin+fog", "fog", "gcn"])
def test_create_model_and_fognn_train_build_one_network(name: str, tmp_path: Path) -> None:
    lines = ["smiles,y", *(f"{'C' * n}O,{n}" for n in range(1, 21))]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    config = protocol(str(tmp_path / "x.csv"), name, 0, {"data.target": "y"})
    task = task_of(config.data)
    trained, made = untrained_model(config, task), create_model(name, task)
    made.load_state_dict(trained.state_dict())
    graph = (torch.zeros(3, 9, dtype=torch.long), torch.tensor([[0, 1], [1, 2]]))
    assert torch.equal(trained.eval()(*graph), made.eval()(*graph))
    layers = [module for module in made.modules() if isinstance(module, FOG)]
    assert not any(fog.act_first for fog in (FOG(4, 4), *layers))


def test_files_without_the_setting_have_the_paper_s_order() -> None:
    paper = protocol("zinc", "gcn+fog")
    assert paper.model.settings["fog_act_first"] is True
    old = paper.to_dict()
    del old["model"]["fog_act_first"]
    assert Config.from_dict(old) == paper


def test_a_new_config_names_the_order() -> None:
    assert ModelConfig("gcn+fog").settings == {"fog_act_first": False}
    renamed = protocol("zinc", "gcn").with_values({"model.name": "gcn+fog"})
    assert renamed.model.settings["fog_act_first"] is False
    digests = {
        renamed.with_values({"model.fog_act_first": first}).digest() for first in (False, True)
    }
    assert len(digests) == 2
