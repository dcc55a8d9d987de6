"""FOG's layers in GraphGym, by their names in a config."""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, Data

pytest.importorskip("yacs", reason="GraphGym needs yacs")

from torch_geometric import graphgym
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import assert_cfg, cfg, set_cfg
from torch_geometric.graphgym.models.layer import LayerConfig

from fognn import FOG

FILE = Path(__file__).parents[2] / "examples" / "graphgym.py"
CONFIG = """
dataset: {task: graph, task_type: classification, node_encoder: false, edge_dim: 3}
model: {type: gnn, loss_fun: cross_entropy, graph_pooling: mean}
gnn: {layers_pre_mp: 1, layers_mp: 2, layers_post_mp: 1, dim_inner: 16, layer_type: LAYER}
optim: {optimizer: adam, base_lr: 0.01}
fog: {channels: 4, eps: 0.01}
"""


@pytest.fixture(scope="module", autouse=True)
def layers() -> None:
    spec = importlib.util.spec_from_file_location("fog_in_graphgym", FILE)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def read(layer: str, folder: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG.replace("LAYER", layer))
    set_cfg(cfg)
    cfg.merge_from_file(str(folder / "config.yaml"))
    assert_cfg(cfg)
    cfg.run_dir, cfg.accelerator = str(folder), "cpu"


def batch() -> Batch:
    torch.manual_seed(0)
    return Batch.from_data_list(
        [
            Data(
                x=torch.randn(6, 5),
                edge_index=torch.randint(0, 6, (2, 14)),
                edge_attr=torch.randn(14, 3),
                y=torch.tensor([i % 2]),
            )
            for i in range(8)
        ]
    )


@pytest.mark.parametrize("layer", ["fogconv", "gcnconv_fog", "generaledgeconv_fog"])
def test_a_config_builds_a_network_that_learns(layer: str, tmp_path: Path) -> None:
    read(layer, tmp_path)
    model = graphgym.create_model(to_device=False, dim_in=5, dim_out=2)
    fogs = [module for module in model.modules() if isinstance(module, FOG)]
    assert [fog.out_channels for fog in fogs] == [16 if layer == "fogconv" else 4] * 2
    assert fogs[0].norm_1.module.eps == 0.01
    model.training_step(batch())["loss"].backward()
    assert all(p.grad is not None for p in model.parameters())


def test_the_layer_is_fog_and_the_host(tmp_path: Path) -> None:
    read("gcnconv_fog", tmp_path)
    layer = register.layer_dict["gcnconv_fog"](LayerConfig(dim_in=5, dim_out=16)).eval()
    data = batch()
    p = layer.fog(data.x, data.edge_index)
    q = layer.host.model(data.x, data.edge_index)
    torch.testing.assert_close(layer(data).x, torch.cat([p, q], dim=1))
